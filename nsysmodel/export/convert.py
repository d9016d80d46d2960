"""Files that become a SQLite export first: compressed ones, and reports that nsys itself must export."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from pathlib import Path
from typing import IO, cast

from nsysmodel.errors import ExportError
from nsysmodel.progress import tell

_BLOCK = 1 << 20
_LEAVE_FREE = 1 << 28


def decompress(path: Path, folder: Path, *, gzipped: bool) -> Path:
    """Unpack a gzip or zstd file into `folder`.

    Raises:
        ExportError: the data are damaged, are not a SQLite file, or do not fit on the disk.
    """
    target = folder / path.with_suffix("").name
    try:
        with _reader(path, gzipped) as packed, target.open("wb") as out:
            _pour(packed, out, path.name, folder)
    except ExportError:
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ExportError(
            f"{path.name} cannot be unpacked: it is damaged or cut off.", "Copy it again."
        ) from error
    return target


def _reader(path: Path, gzipped: bool) -> IO[bytes]:
    if gzipped:
        return cast("IO[bytes]", gzip.open(path, "rb"))
    import zstandard

    # Parallel compressors write many frames; the default reader stops after the first.
    reader: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(
        path.open("rb"), read_across_frames=True, closefd=True
    )
    return reader


def _pour(packed: IO[bytes], out: IO[bytes], name: str, folder: Path) -> None:
    """Copy block by block; stop before the disk is full, and at once where it is no database."""
    first, unpacked = True, 0
    while block := packed.read(_BLOCK):
        unpacked += len(block)
        tell("unpacking", unpacked)
        if first and not block.startswith(b"SQLite format 3\x00"):
            raise ExportError(
                f"{name} does not contain a SQLite export.", "Compress the .sqlite file itself, not a report."
            )
        first = False
        if shutil.disk_usage(folder).free < _LEAVE_FREE:
            raise ExportError(
                f"{name} does not fit on the disk for temporary files.",
                "Unpack it yourself, or set TMPDIR to a larger disk.",
            )
        out.write(block)
    if first:
        raise ExportError(f"{name} is empty.", "Compress the .sqlite file again.")


def from_report(path: Path, folder: Path) -> Path:
    """Export a report with nsys into `folder`.

    Raises:
        ExportError: nsys is not on PATH, or it failed; the hint has the command to run.
    """
    command = f"nsys export --type sqlite --output {path.stem}.sqlite {path.name}"
    nsys = shutil.which("nsys")
    if nsys is None:
        raise ExportError(
            f"{path.name} is a report that only nsys can read, and nsys is not on PATH.",
            f"Where nsys is installed: {command}",
        )
    target = folder / f"{path.stem}.sqlite"
    tell("exporting with nsys")
    arguments = [nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(target)]
    done = subprocess.run(
        [*arguments, str(path.resolve())], stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode != 0 or not target.is_file():
        raise ExportError(
            f"nsys export failed on {path.name} with exit status {done.returncode}.",
            f"An nsys older than the one that captured cannot read it. See what it says: {command}",
        )
    return target
