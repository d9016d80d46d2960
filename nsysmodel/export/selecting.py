"""Choosing a part of an export: a process, a device, a span of time, the inside of NVTX ranges."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsysmodel.errors import ExportError

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.run import Run


def select(
    run: Run,
    rows: pd.DataFrame,
    *,
    process: int | None = None,
    device: int | None = None,
    time_range: tuple[int, int] | None = None,
    nvtx: str | None = None,
) -> pd.DataFrame:
    """Rows of kernels, copies or memsets that lie in the selection, with their index kept.

    Args:
        run: the export.
        rows: a frame of `run`.
        process: OS process id.
        device: CUDA ordinal.
        time_range: start and end in ns; rows that overlap it are kept whole.
        nvtx: regular expression; rows launched inside a range whose text matches.

    Raises:
        ExportError: nothing is left, or the expression is none.
    """
    if not len(rows):
        return rows
    kept = rows
    if process is not None:
        kept = _some(kept[kept["process"] == process], f"process {process}", _values(rows, "process"))
    if device is not None:
        kept = _some(kept[kept["device"] == device], f"device {device}", _values(rows, "device"))
    if time_range is not None:
        inside = (kept["end_ns"] > time_range[0]) & (kept["start_ns"] < time_range[1])
        first, last = int(rows["start_ns"].min()), int(rows["end_ns"].max())
        kept = _some(
            kept[inside], "that time range", f"The export covers {first / 1e9:.3f} to {last / 1e9:.3f} s."
        )
    if nvtx is not None:
        kept = _inside_ranges(run, kept, nvtx)
    return kept


def _inside_ranges(run: Run, rows: pd.DataFrame, text: str) -> pd.DataFrame:
    from nsysmodel.export.joins import ranges_of

    try:
        found = ranges_of(run, rows, text)
    except re.error as error:
        raise ExportError(
            f"{text!r} is not a regular expression: {error}.", "Escape signs such as ( and [."
        ) from None
    known = run.nvtx()["text"].value_counts().index[:3].tolist()
    hint = (
        f"Ranges of this export: {', '.join(map(str, known))}."
        if known
        else "This export has no NVTX ranges."
    )
    return _some(rows[found >= 0], f"NVTX ranges that match {text!r}", hint)


def _some(rows: pd.DataFrame, what: str, hint: str) -> pd.DataFrame:
    if len(rows):
        return rows
    raise ExportError(f"Nothing ran on the GPU in {what}.", hint)


def _values(rows: pd.DataFrame, column: str) -> str:
    values = sorted(rows[column].unique().tolist())
    return f"The export has {column} {', '.join(map(str, values[:8]))}."
