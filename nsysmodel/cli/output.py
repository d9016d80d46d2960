"""Writing results: whole or not at all, and never over a file that is not ours."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from nsysmodel.errors import OutputError
from nsysmodel.progress import settle

TAG = 'generator" content="nsysmodel'
"""What our own HTML carries; a file with it may be replaced without asking."""
SQLITE = b"SQLite format 3\0"
"""How every SQLite file begins."""


def check_writable(path: str | None, *, force: bool, named: bool) -> None:
    """Raise before any work is done if `write_output` would refuse.

    Args:
        path: where the result goes; `-` or None is standard output.
        force: replace whatever is there.
        named: the user named this very file with `-o`, so it may be replaced.

    Raises:
        OutputError: the folder does not exist, the path is a folder, or a foreign file is in the way. A
            SQLite file is never replaced, whatever was asked: it is a capture that took work to make.
    """
    if path is None or path == "-":
        return
    target = Path(path)
    if target.is_dir():
        raise OutputError(f"{path} is a folder.", "Name a file with -o.")
    if not target.parent.is_dir():
        raise OutputError(
            f"The folder {target.parent} does not exist.", "Create it first, or name another with -o."
        )
    if _head(target, len(SQLITE)) == SQLITE:
        raise OutputError(
            f"{path} is a SQLite file; a result is never written over one.", "Name another file."
        )
    if target.exists() and not (force or named or _is_ours(target)):
        raise OutputError(
            f"{path} exists and was not written by nsysmodel.", "Name another file with -o, or use --force."
        )


def write_output(path: str | None, data: str | bytes, *, force: bool = False, named: bool = True) -> None:
    """Write a result to a file or to standard output.

    The data go to a temporary file beside the target, which then takes its place: a reader never sees
    half a file, and a failed write leaves what was there.

    Raises:
        OutputError: see `check_writable`; also when the disk refuses.
    """
    raw = data.encode("utf-8") if isinstance(data, str) else data
    settle()
    if path is None or path == "-":
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        return
    check_writable(path, force=force, named=named)
    target = Path(path)
    try:
        if target.exists() and not target.is_file():
            # /dev/stdout, a named pipe: cannot be replaced, only written to.
            target.write_bytes(raw)
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(raw)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, os.path.realpath(target))
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror}.", "Name another place with -o."
        ) from error


def _is_ours(path: Path) -> bool:
    """True for an HTML page that carries our generator tag."""
    return TAG.encode() in _head(path, 4096)


def _head(path: Path, size: int) -> bytes:
    """First bytes of a regular file; nothing of what cannot be read."""
    if not path.is_file():
        return b""
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError:
        return b""


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
