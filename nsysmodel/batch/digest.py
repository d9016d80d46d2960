"""When a result is still good: digests of the export and of everything else that the result depends on."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nsysmodel.batch.types import Request
from nsysmodel.errors import ExportError
from nsysmodel.workload import WorkloadRequest

FORMAT = 1
"""Raised when what a batch writes per run changes without a new version of the package."""

_CHUNK = 1 << 20


def options_digest(request: Request, workload: WorkloadRequest, version: str) -> str:
    """Digest of what a result depends on beside the export: model, flags, catalogue files, version.

    The model counts as it was read, not by its path: a file that changed is another model.
    """
    files = [_file_digest(Path(path)) for path in request.hardware.files]
    parts = [FORMAT, version, request.model, workload, request.hardware, request.selection, files]
    text = json.dumps(canonical(parts), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def run_key(path: str, options: str) -> str:
    """Digest of one result: of the export's content and name, and of the options.

    Raises:
        ExportError: the export cannot be read.
    """
    whole = hashlib.sha256(f"{options}\0{os.path.basename(path)}\0".encode("utf-8", "surrogateescape"))
    try:
        for part in _parts(Path(path)):
            whole.update(f"{part.name}\0{_file_digest(part)}\0".encode("utf-8", "surrogateescape"))
    except FileNotFoundError:
        raise ExportError(f"There is no file {os.path.basename(path)}.", "Check the path.") from None
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "the path is not a path").lower()
        raise ExportError(
            f"{os.path.basename(path)} cannot be read: {reason}.", "Check the path and permissions."
        ) from error
    return whole.hexdigest()


def canonical(value: Any) -> Any:
    """A value as JSON that does not depend on the order of sets and mappings, or on the process."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {item.name: canonical(getattr(value, item.name)) for item in dataclasses.fields(value)}
        return {"type": type(value).__name__, **fields}
    if isinstance(value, Mapping):
        return [[canonical(key), canonical(value[key])] for key in sorted(value, key=repr)]
    if isinstance(value, (set, frozenset)):
        return sorted((canonical(item) for item in value), key=repr)
    if isinstance(value, (list, tuple)):
        return [canonical(item) for item in value]
    if isinstance(value, re.Pattern):
        return [value.pattern, value.flags]
    slots = getattr(type(value), "__slots__", None) or sorted(vars(value))
    return {"type": type(value).__name__, **{name: canonical(getattr(value, name)) for name in slots}}


def _parts(path: Path) -> list[Path]:
    """The files that make up an export: itself with what SQLite left beside it, or those of its folder."""
    if path.is_dir():
        return sorted(item for item in path.iterdir() if item.is_file())
    side = [path.with_name(path.name + suffix) for suffix in ("-wal", "-journal")]
    return [path, *(item for item in side if item.is_file())]


def _file_digest(path: Path) -> str:
    digest = hashlib.sha256()
    if not path.is_file():
        if path.exists():
            raise ExportError(f"{path.name} is not a regular file.", "Give the path of an exported file.")
        raise FileNotFoundError(path)
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
