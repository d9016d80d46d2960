"""Transfers: copies and memsets against the link that they cross, and what no kernel hides of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from nsysmodel import intervals, units
from nsysmodel.account.small import started_in
from nsysmodel.account.types import Window, window_spans
from nsysmodel.hardware.types import Hardware
from nsysmodel.intervals import Ints, Spans
from nsysmodel.result import TransferRow

if TYPE_CHECKING:
    import pandas as pd

LATENCY_NS: Final = 2_000
"""A copy that takes less than this at the link's rate is decided by its latency: no ratio."""

STAGED: Final = 1.25
"""A pageable copy this far below its link is worth a word."""

DRAM_COPY: Final = "DRAM, read and written"
DRAM_SET: Final = "DRAM, written"


def transfers(
    copies: pd.DataFrame,
    memsets: pd.DataFrame,
    kernels: Spans,
    windows: Sequence[Window] | None = None,
    hardware: Hardware | None = None,
) -> tuple[TransferRow, ...]:
    """One row per kind of copy and memory, most time first.

    Args:
        copies, memsets: rows of one process and device, columns as in `export.columns`.
        kernels: the set of times in which kernels (or traced graphs) run.
        windows: only what starts in these windows; everything where None.
        hardware: for the links' rates; without, rows carry no rate to compare with.
    """
    rows = []
    for frame, kinds, memories in (
        (copies, _texts(copies, "kind"), _memory(copies)),
        (memsets, ["memset"] * len(memsets), _texts(memsets, "memory")),
    ):
        groups: dict[tuple[str, str], list[int]] = {}
        used = _used(frame, windows)
        for row in used.tolist():
            groups.setdefault((kinds[row], memories[row]), []).append(row)
        for (kind, memory), members in groups.items():
            rows.append(_row(frame, np.array(members), kind, memory, kernels, windows, hardware))
    return tuple(sorted(rows, key=lambda row: (-row.total_ns, row.kind, row.memory)))


def _used(frame: pd.DataFrame, windows: Sequence[Window] | None) -> Ints:
    if windows is None:
        return np.arange(len(frame), dtype=np.int64)
    return np.flatnonzero(started_in(frame["start_ns"].to_numpy(np.int64), windows) >= 0)


def _texts(frame: pd.DataFrame, column: str) -> list[str]:
    if column not in frame:
        return [""] * len(frame)
    return [str(value) for value in frame[column].astype(object).where(frame[column].notna(), "")]


def _memory(copies: pd.DataFrame) -> list[str]:
    """The host's side of a copy to or from the host (pageable or pinned); else both sides."""
    source, target = _texts(copies, "src_kind"), _texts(copies, "dst_kind")
    named = []
    for kind, read, written in zip(_texts(copies, "kind"), source, target, strict=True):
        if kind.endswith("HtoD"):
            named.append(read)
        elif kind.endswith("DtoH"):
            named.append(written)
        else:
            named.append(read if read == written else f"{read} to {written}")
    return named


def _row(
    frame: pd.DataFrame,
    rows: Ints,
    kind: str,
    memory: str,
    kernels: Spans,
    windows: Sequence[Window] | None,
    hardware: Hardware | None,
) -> TransferRow:
    start = frame["start_ns"].to_numpy(np.int64)[rows]
    end = frame["end_ns"].to_numpy(np.int64)[rows]
    size = int(frame["bytes"].to_numpy(np.int64)[rows].sum())
    total = int((end - start).sum())
    active = intervals.union(start, end)
    if windows is not None:
        active = intervals.intersect(active, intervals.union(*window_spans(windows)))
    rate = size / total * 1e9 if size and total else None
    link, link_rate = link_of(kind, hardware)
    why_not = _not_judged(size / rows.size, link, link_rate, hardware)
    ratio = link_rate / rate if rate and link_rate and not why_not else None
    exposed = intervals.subtract(active, kernels).length_ns
    return TransferRow(
        kind=kind,
        memory=memory,
        count=int(rows.size),
        bytes=size,
        total_ns=total,
        exposed_ns=exposed,
        bytes_per_s=rate,
        link=link,
        link_bytes_per_s=link_rate,
        ratio=ratio,
        hidden_ns=active.length_ns - exposed,
        explanation=why_not or _staged(memory, ratio),
    )


def link_of(kind: str, hardware: Hardware | None) -> tuple[str, float | None]:
    """The link that a kind of copy crosses, and its rate in one direction where known."""
    if kind == "memset":
        return DRAM_SET, hardware.bandwidth_bytes_per_s.value if hardware else None
    if kind.endswith("DtoD"):
        return DRAM_COPY, hardware.bandwidth_bytes_per_s.value / 2 if hardware else None
    if kind.endswith(("HtoD", "DtoH")):
        wanted: tuple[str, ...] = ("c2c", "pcie")
    elif kind == "PtoP":
        wanted = ("nvlink", "pcie")
    else:
        return "", None
    for name in wanted:
        found = hardware.links.get(name) if hardware else None
        if found is not None:
            return found.name, found.bytes_per_s
    return "", None


def _not_judged(mean_bytes: float, link: str, rate: float | None, hardware: Hardware | None) -> str:
    """Why the link does not decide how long such a copy takes; empty where it does."""
    if not rate:
        return "The rate of its link is not known." if mean_bytes else ""
    if mean_bytes / rate * 1e9 < LATENCY_NS:
        return f"{units.bytes_(mean_bytes)} each: the latency of a copy decides, not the link."
    cached = link in (DRAM_COPY, DRAM_SET) and hardware is not None and hardware.l2_bytes
    if cached and hardware is not None and mean_bytes <= hardware.l2_bytes:
        return f"{units.bytes_(mean_bytes)} each may stay in the {units.bytes_(hardware.l2_bytes)} of L2."
    return ""


def _staged(memory: str, ratio: float | None) -> str:
    """Pageable host memory goes through a buffer of the driver, so the link is not what limits it."""
    if memory != "pageable" or ratio is None or ratio < STAGED:
        return ""
    return "Pageable memory is copied through a buffer of the driver; pinned memory would use the link."
