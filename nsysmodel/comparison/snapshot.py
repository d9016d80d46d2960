"""A run reduced to what a comparison needs; small enough to keep as a baseline.

A snapshot holds names of kernels and ops, times per step and facts of GPU, workload and model. It holds no
path, host, user or environment.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nsysmodel.errors import ExportError

SCHEMA = "nsysmodel.baseline/1"
Unit = Literal["step", "repetition", "window"]


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the steps, as `judge.steptable.StepPart`, with what the model says of it.

    `floor_ns` is the mean per step; None where no model judged it. `ratio` is None where it must not be set
    against the time: bound by launches, waiting included. `values_ns` has a value for each step.
    """

    kind: str
    name: str
    values_ns: tuple[int, ...]
    launches: float = 0.0
    kernels: tuple[str, ...] = ()
    kernel_class: str = ""
    floor_ns: float | None = None
    bound: str = ""
    ratio: float | None = None


@dataclass(frozen=True, slots=True)
class DeviceSnapshot:
    """One process on one device.

    `gpu` holds `name`, `sm_count`, `clock_hz`, `bandwidth_bytes_per_s` where the export says them.
    `unit` is what the windows are: steps, repetitions of the kernel sequence, or the whole activity.
    """

    process: int
    device: int
    gpu: Mapping[str, Any]
    unit: Unit
    method: str
    layers: int
    coverage: float
    workload: Mapping[str, Any]
    steps: tuple[int, ...]
    windows_ns: tuple[int, ...]
    parts: tuple[Part, ...]
    sequence: tuple[tuple[int, str], ...] = ()
    kernel_time_ns: int = 0
    found: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One run. `model` is None where none was asked for; `status` is that of the verdict then."""

    file: str
    version: str
    model: Mapping[str, Any] | None
    status: Literal["ok", "cannot_judge"]
    headline: str
    graph_mode: str
    completeness: str
    devices: tuple[DeviceSnapshot, ...]
    synthetic: bool = False
    notes: tuple[str, ...] = field(default=())

    @property
    def judged(self) -> bool:
        """True where its ops may be used."""
        return self.model is not None and self.status == "ok"

    def to_dict(self) -> dict[str, Any]:
        """The baseline file as a mapping ready for JSON."""
        return {"schema": SCHEMA, **_plain(self)}


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def render_snapshot(snapshot: Snapshot) -> str:
    """The baseline as text: small lists on one line, the same run gives the same bytes."""
    return json.dumps(snapshot.to_dict(), separators=(",", ":"), allow_nan=False) + "\n"


def is_baseline(path: Path) -> bool:
    """True for a file that begins as a baseline does."""
    try:
        with path.open("rb") as stream:
            head = stream.read(200)
    except OSError:
        return False
    return head.lstrip().startswith(b"{") and SCHEMA.rpartition("/")[0].encode() in head


def read_snapshot(path: Path) -> Snapshot:
    """A baseline from its file.

    Raises:
        ExportError: it is no baseline, of another version, or damaged.
    """
    from nsysmodel.comparison.baseline_schema import parse

    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(
            f"{path.name} cannot be read as a baseline.", "nsysmodel baseline save writes one."
        ) from error
    return parse(data, path.name)
