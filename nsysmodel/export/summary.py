"""Statistics of kernels, copies and memsets by group, computed as nsys computes its own summaries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from nsysmodel.export.reader import Ints
    from nsysmodel.export.run import Run

    Floats = np.ndarray[Any, np.dtype[np.float64]]

KernelGroup = Literal["name", "short", "grid", "op", "stream", "device", "nvtx"]
STATISTICS = ("time_pct", "total_ns", "instances", "avg_ns", "med_ns", "min_ns", "max_ns", "stddev_ns")
NO_RANGE = "<no range>"
NO_OP = "<unmodeled>"
_AT_ONCE = 1 << 17

_PLACES = {"stream": ("process", "device", "stream"), "device": ("process", "device")}


def kernel_summary(run: Run, by: KernelGroup = "name", kernels: pd.DataFrame | None = None) -> pd.DataFrame:
    """Kernel time by group, most time first.

    The numbers are those of `cuda_gpu_kern_sum`: `time_pct` of the time of all kernels, `stddev_ns` the
    sample standard deviation (0 for a single instance).

    Args:
        run: the export.
        by: `name`, `short` (short name), `grid` (name and launch shape), `stream`, `device`, `nvtx` (deepest
            range around the launch), `op` (needs a column `op` in `kernels`).
        kernels: some rows of `run.kernels()`; all of them where None.

    Returns:
        `time_pct, total_ns, instances, avg_ns, med_ns, min_ns, max_ns, stddev_ns`, then what identifies the
        group, with `name` last where there is one.
    """
    kernels = run.kernels() if kernels is None else kernels
    return grouped(kernels, _kernel_keys(run, by, kernels))


Table = dict[str, "np.ndarray[Any, Any]"]
"""Columns of one length; texts as objects."""


def needed_columns(by: str) -> tuple[str, ...]:
    """Columns of the kernel frame that name the groups; those of launches come on top for `nvtx`."""
    if by in _PLACES:
        return _PLACES[by]
    if by == "grid":
        return ("name", *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"))
    return {"short": ("short_name",), "op": ("op",), "nvtx": ("graph_node_id",)}.get(by, ("name",))


def _kernel_keys(run: Run, by: KernelGroup, kernels: pd.DataFrame) -> dict[str, Any]:
    """Columns that identify a group, in the order in which they are shown."""
    if by in _PLACES:
        return {column: kernels[column] for column in _PLACES[by]}
    if by == "short":
        return {"name": kernels["short_name"]}
    if by == "grid":
        return {"grid": shape(kernels, "grid"), "block": shape(kernels, "block"), "name": kernels["name"]}
    if by == "nvtx":
        from nsysmodel.export.joins import nvtx_of

        return {"name": _filled(nvtx_of(run, kernels), NO_RANGE)}
    if by == "op":
        return {"op": _filled(kernels["op"], NO_OP)}
    return {"name": kernels["name"]}


def shape(kernels: pd.DataFrame, what: Literal["grid", "block"]) -> pd.Categorical:
    """Launch shapes as text: `80x1x1`."""
    import pandas as pd

    from nsysmodel.export.reader import categories

    x, y, z = (kernels[f"{what}_{axis}"].to_numpy() for axis in "xyz")
    small = all(int(size.min(initial=0)) >= 0 and int(size.max(initial=0)) < 1 << 16 for size in (y, z))
    if small and int(x.min(initial=0)) >= 0 and int(x.max(initial=0)) < 1 << 31:
        codes, packed = pd.factorize(x << 32 | y << 16 | z)
        sizes = [(one >> 32, one >> 16 & 0xFFFF, one & 0xFFFF) for one in packed.tolist()]
    else:
        codes, uniques = pd.factorize(pd.MultiIndex.from_arrays([x, y, z]))
        sizes = list(uniques)
    return categories(codes, ["x".join(str(int(size)) for size in three) for three in sizes])


def _filled(names: pd.Series[Any], none: str) -> pd.Series[Any]:
    import pandas as pd

    if not isinstance(names.dtype, pd.CategoricalDtype):
        names = names.astype("category")
    if none not in names.cat.categories:
        names = names.cat.add_categories([none])
    return names.fillna(none)


def grouped(rows: pd.DataFrame, keys: dict[str, Any], sums: Sequence[str] = ()) -> pd.DataFrame:
    """The statistics of `duration_ns` by group, and the sums of further integer columns."""
    import numpy as np
    import pandas as pd

    frame = pd.DataFrame({name: _plain(values) for name, values in keys.items()}, copy=False)
    if not len(rows):
        return pd.DataFrame({name: _empty(name) for name in (*STATISTICS, *sums, *keys)})
    group, first = _numbered(frame)
    result = statistics(group, rows["duration_ns"].to_numpy(), np.bincount(group))
    for column in sums:
        total = np.zeros(len(first), dtype=np.int64)
        np.add.at(total, group, rows[column].to_numpy())
        result[column] = total
    heads = frame.iloc[first].reset_index(drop=True)
    table = pd.concat([pd.DataFrame(result), heads], axis=1)
    by = ["total_ns", *(name for name in keys)]
    return table.sort_values(by, ascending=[False, *[True] * len(keys)], kind="stable").reset_index(drop=True)


def _numbered(frame: pd.DataFrame) -> tuple[Ints, Ints]:
    """Number of each row's group, groups in order of their first rows, and those rows."""
    import numpy as np
    import pandas as pd

    group = seen = np.zeros(len(frame), dtype=np.int64)
    for name in frame.columns:
        values = frame[name]
        named = isinstance(values.dtype, pd.CategoricalDtype)
        codes, found = pd.factorize(
            values.cat.codes.to_numpy() if named else values.to_numpy(), use_na_sentinel=False
        )
        # Both counts are at most that of the rows, so their product fits.
        group, seen = pd.factorize(group * len(found) + codes)
    first = np.empty(len(seen), dtype=np.int64)
    first[group[::-1]] = np.arange(len(group) - 1, -1, -1)
    return group, first


def statistics(group: Ints, duration: Ints, count: Ints) -> Table:
    """The statistics of durations by group, a value for each group; see `statistics_of_blocks`.

    Args:
        group: of each row, counted from 0.
        duration: of each row.
        count: rows of each group; none is empty.
    """
    import numpy as np

    pieces = [slice(first, first + _AT_ONCE) for first in range(0, len(group), _AT_ONCE)]
    blocks = [(duration[piece], group[piece]) for piece in pieces]
    return statistics_of_blocks(blocks, np.arange(len(count)), count)


def statistics_of_blocks(blocks: Sequence[tuple[Ints, Ints]], group: Ints, count: Ints) -> Table:
    """The statistics of durations by group, a value for each group.

    Medians and standard deviations come from the durations in order; integers stay integers.

    Args:
        blocks: of rows: the duration of each, and its code.
        group: of each code, counted from 0.
        count: rows of each group; none is empty.
    """
    import numpy as np

    from nsysmodel.ordering import by_group

    starts = np.zeros(len(count), dtype=np.int64)
    np.cumsum(count[:-1], out=starts[1:])
    ordered = by_group(blocks, group, len(count))
    total, squares = _sums(ordered, starts, count)
    low = ordered[starts + (count - 1) // 2].astype(np.int64)
    high = ordered[starts + count // 2].astype(np.int64)
    whole = int(total.sum())
    return {
        "time_pct": total * 100 / whole if whole else np.zeros(len(total)),
        "total_ns": total,
        "instances": count.astype(np.int64),
        "avg_ns": total / count,
        "med_ns": low + (high - low) / 2,
        "min_ns": ordered[starts].astype(np.int64),
        "max_ns": ordered[starts + count - 1].astype(np.int64),
        "stddev_ns": np.sqrt(squares / np.maximum(count - 1, 1)),
    }


def _sums(duration: Ints, starts: Ints, count: Ints) -> tuple[Ints, Floats]:
    """Sum of the durations and of their squared distances from the mean, by group.

    Some groups at a time, to stay in the cache.
    """
    import numpy as np

    total, squares = np.empty(len(starts), dtype=np.int64), np.empty(len(starts))
    stops = starts + count
    first = 0
    while first < len(starts):
        last = max(int(np.searchsorted(stops, starts[first] + _AT_ONCE, side="right")), first + 1)
        here, rows = slice(first, last), duration[starts[first] : stops[last - 1]]
        bounds = starts[here] - starts[first]
        total[here] = np.add.reduceat(rows, bounds, dtype=np.int64)
        distance = rows - np.repeat(total[here] / count[here], count[here])
        distance *= distance
        squares[here] = np.add.reduceat(distance, bounds)
        first = last
    return total, squares


_FLOATS = ("time_pct", "avg_ns", "med_ns", "stddev_ns")


def _empty(name: str) -> pd.Series[Any]:
    import pandas as pd

    texts = ("name", "op", "grid", "block", "kind", "memory")
    return pd.Series([], dtype=object if name in texts else "float64" if name in _FLOATS else "int64")


def _plain(values: Any) -> Any:
    """Values without the index of the frame that they come from; names as text, sorted as text."""
    return values.array if hasattr(values, "array") else values


def memory_summary(run: Run, by: Literal["kind", "stream", "device"] = "kind") -> pd.DataFrame:
    """Copies and memsets by kind of operation and of memory, most time first.

    `bytes_per_s` is bytes over the summed durations; it is the rate of one copy at a time, not of a link
    that several copies share. Percentages are of the time of all copies and memsets.
    """
    import pandas as pd

    copies, memsets = run.copies(), run.memsets()
    kinds = pd.concat([copies["kind"].astype(object), pd.Series(["memset"] * len(memsets), dtype=object)])
    route = copies["src_kind"].astype(object) + " to " + copies["dst_kind"].astype(object)
    memory = pd.concat([route, memsets["memory"].astype(object)])
    columns = ["duration_ns", "bytes", "process", "device", "stream"]
    rows = pd.concat([copies[columns], memsets[columns]], ignore_index=True)
    keys: dict[str, Any] = {"kind": kinds.to_numpy(), "memory": memory.to_numpy()}
    keys |= {column: rows[column] for column in _PLACES.get(by, ())}
    table = grouped(rows, keys, sums=("bytes",))
    rate = table["bytes"] * 1e9 / table["total_ns"].where(table["total_ns"] > 0)
    table.insert(list(table.columns).index("bytes") + 1, "bytes_per_s", rate.astype("float64"))
    return table
