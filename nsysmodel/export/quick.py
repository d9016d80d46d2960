"""The summary of all kernels straight from the pages of an export: without frames and without pandas."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from nsysmodel.export.gpu_frames import NO_DEVICE, NO_PROCESS, NO_STREAM
from nsysmodel.export.reader import or_default, process_of
from nsysmodel.export.summary import Table, statistics_of_blocks

if TYPE_CHECKING:
    import numpy as np

    from nsysmodel.export.durations import Durations
    from nsysmodel.export.reader import Ints
    from nsysmodel.export.run import Run

_RAW = {
    "name": ("demangledName",),
    "short": ("shortName",),
    "grid": ("demangledName", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    "stream": ("globalPid", "deviceId", "streamId"),
    "device": ("globalPid", "deviceId"),
}
"""Columns of the kernel table that tell groups apart."""


@dataclass(frozen=True, slots=True)
class _Key:
    """What a column of the summary says of some identities, and in which order equals are listed."""

    value: np.ndarray[Any, Any]
    rank: Ints


def quick_summary(run: Run, by: str) -> Table | None:
    """The columns of `kernel_summary` of all kernels, made without frames or pandas; several times faster.

    Returns:
        None where it takes frames: for an export with something odd about its kernels, or by `op` and `nvtx`.
    """
    import numpy as np

    if by not in _RAW:
        return None
    found = run.durations(_RAW[by])
    keys = None if found is None else _keys(run, by, found)
    if found is None or keys is None:
        return None
    ranks = np.stack([key.rank for key in keys.values()], axis=1)
    # Two ids of one text, or two raw values of one meaning, are one group.
    merged, first, group = np.unique(ranks, axis=0, return_index=True, return_inverse=True)
    group, count = group.reshape(-1), found.count
    if len(merged) < len(ranks):
        count = np.bincount(group, count).astype(np.int64)
        ranks = merged
    else:
        first = group = np.arange(len(ranks))
    table = statistics_of_blocks(found.blocks, group, count)
    table |= {name: key.value[first] for name, key in keys.items()}
    order = np.lexsort((*ranks.T[::-1], -table["total_ns"]))
    return {name: values[order] for name, values in table.items()}


def _keys(run: Run, by: str, found: Durations) -> dict[str, _Key] | None:
    """Columns that identify a group; None where one of them is missing for some kernel."""

    raw = found.identity
    if "globalPid" in raw:
        if (raw["globalPid"] == NO_PROCESS).any():
            return None
        places = {
            "process": process_of(raw["globalPid"]),
            "device": or_default(raw["deviceId"], none=(NO_DEVICE,)),
        }
        if by == "stream":
            places["stream"] = or_default(raw["streamId"], none=(NO_STREAM,))
        return {name: _Key(value, value) for name, value in places.items()}
    texts = run.texts(raw["shortName" if by == "short" else "demangledName"])
    if texts is None:
        return None
    keys = {}
    if by == "grid":
        for what in ("grid", "block"):
            sizes = zip(*(raw[f"{what}{axis}"].tolist() for axis in "XYZ"), strict=True)
            keys[what] = _text_key(["x".join(map(str, size)) for size in sizes], found.first)
    return {**keys, "name": _text_key(texts, found.first)}


def _text_key(texts: list[str], first: Ints) -> _Key:
    """Texts in the order in which they come up in the export, as the categories of frames are."""
    import numpy as np

    seen: dict[str, int] = {}
    for i in np.argsort(first).tolist():
        seen.setdefault(texts[i], len(seen))
    value = np.empty(len(texts), dtype=object)
    value[:] = texts
    return _Key(value, np.array([seen[text] for text in texts], dtype=np.int64))
