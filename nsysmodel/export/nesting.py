"""Which range contains a point: for many points and many ranges at once, thread by thread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from nsysmodel.export.reader import PROCESS_MASK

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from nsysmodel.export.reader import Ints


def innermost(ranges: pd.DataFrame, thread: Ints, start: Ints, end: Ints) -> Ints:
    """Index label of the range that started last among those around each point; −1 for none.

    Args:
        ranges: rows of the NVTX frame; within a thread and domain they nest.
        thread: thread key of each point; 0 for none.
        start: start of each point; a range must contain it.
        end: not used: a call cannot outlast a range of its own thread.
    """
    import numpy as np

    result = np.full(len(thread), -1, dtype=np.int64)
    began = np.full(len(thread), np.iinfo(np.int64).min)
    ranges = ranges[ranges["end_ns"] > ranges["start_ns"]]
    points = _by_value(thread)
    groups: Iterable[tuple[Any, pd.DataFrame]] = ranges.groupby(
        ["global_tid", "domain"], observed=True, sort=False
    )
    for key, group in groups:
        at = points.get(int(key[0]))
        if at is None:
            continue
        found = _innermost(group["start_ns"].to_numpy(), group["end_ns"].to_numpy(), start[at])
        hit = found >= 0
        row = np.where(hit, found, 0)
        when = group["start_ns"].to_numpy()[row]
        better = hit & (when >= began[at])
        result[at[better]] = group.index.to_numpy()[row[better]]
        began[at[better]] = when[better]
    return result


def _innermost(start: Ints, end: Ints, point: Ints) -> Ints:
    """Position of the innermost of nested ranges around each point.

    Starts and ends in order of time raise and lower the depth. At depth d the innermost range is the last
    one that began at depth d.
    """
    import numpy as np

    opened = np.lexsort((-end, start))
    count = len(start)
    time = np.concatenate([start[opened], end])
    is_start = np.arange(2 * count) < count
    # At one time ends come before starts; starts keep their order, outer before inner.
    order = np.lexsort((np.concatenate([np.arange(count), np.arange(count)]), is_start, time))
    depth = np.cumsum(np.where(is_start[order], 1, -1))
    position_of_start = np.flatnonzero(is_start[order])
    begun = opened[order[position_of_start]]
    level = depth[position_of_start]
    by_level = np.lexsort((position_of_start, level))
    size = 2 * count + 1
    codes = level[by_level] * size + position_of_start[by_level]

    last = np.searchsorted(time[order], point, side="right") - 1
    inside = last >= 0
    now = depth[np.where(inside, last, 0)]
    inside &= now > 0
    at = np.searchsorted(codes, now * size + last, side="right") - 1
    inside &= at >= 0
    row = begun[by_level[np.where(inside, at, 0)]]
    inside &= (start[row] <= point) & (point < end[row])
    return np.where(inside, row, -1)


def outermost(
    ranges: pd.DataFrame,
    thread: Ints,
    start: Ints,
    end: Ints,
    *,
    threads: Literal["launching", "any"] = "launching",
) -> Ints:
    """Index label of the range that started first among those around each point; −1 for none."""
    import numpy as np

    result = np.full(len(thread), -1, dtype=np.int64)
    owner = thread if threads == "launching" else thread & PROCESS_MASK
    column = "global_tid" if threads == "launching" else "global_pid"
    points = _by_value(owner)
    for key, first, last, label in _maximal(ranges, column):
        at = points.get(key)
        if at is None:
            continue
        row = np.searchsorted(last, end[at])
        inside = row < len(last)
        row = np.where(inside, row, 0)
        inside &= first[row] <= start[at]
        result[at[inside]] = label[row[inside]]
    return result


def _maximal(ranges: pd.DataFrame, column: str) -> Iterator[tuple[int, Ints, Ints, Ints]]:
    """By thread or process: starts, ends and labels of the ranges that no other one contains."""
    import numpy as np

    for key, group in ranges.groupby(column, sort=False):
        start, end = group["start_ns"].to_numpy(), group["end_ns"].to_numpy()
        order = np.lexsort((-end, start))
        start, end, label = start[order], end[order], group.index.to_numpy()[order]
        before = np.concatenate([[np.iinfo(np.int64).min], np.maximum.accumulate(end)[:-1]])
        kept = end > before
        yield int(key), start[kept], end[kept], label[kept]  # type: ignore[arg-type]


def _by_value(values: Ints) -> dict[int, np.ndarray[Any, Any]]:
    """Positions of each value other than 0."""
    import numpy as np
    import pandas as pd

    codes, uniques = pd.factorize(values)
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(uniques) + 1))
    return {
        int(value): order[bounds[i] : bounds[i + 1]] for i, value in enumerate(uniques.tolist()) if value != 0
    }
