"""The time of every used step, part by part: what a comparison of two runs works on.

Each kernel belongs to its op or, where no op claims it, to its name. With copies, gaps by cause and overlap
the parts of a step sum to its window exactly, in integer ns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nsysmodel.account.build import build_activity
from nsysmodel.account.gaps import find_gaps
from nsysmodel.account.types import Window
from nsysmodel.account.waterfall import Waterfall, waterfall
from nsysmodel.intervals import Ints
from nsysmodel.join.types import Join
from nsysmodel.judge.cases import Case

KERNEL_NAMES = 6
"""Kernel names that a part keeps, most time first."""


@dataclass(frozen=True, slots=True)
class StepPart:
    """One part of the steps.

    Attributes:
        kind: `op`, `kernel` (no op claims it), `graph` (traced as a whole), `copy`, `gap` or `overlap`.
        name: op label, kernel name, `copies`, cause of the gap, …
        values_ns: time in each step; negative for overlap.
        launches: kernels that start in a step, on average.
        kernels: names of its kernels, most time first.
    """

    kind: str
    name: str
    values_ns: Ints
    launches: float = 0.0
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StepTable:
    """The used steps of one process on one device, in order of time.

    Attributes:
        steps: their numbers among all steps that were found.
        windows_ns: their lengths; the values of the parts sum to them.
        parts: every part; only those of kind `overlap` are negative.
        sequence: for each kernel of a usual step in order of start: the part it belongs to (its place among
            `parts`) and its launch shape.
    """

    steps: tuple[int, ...]
    windows_ns: Ints
    parts: tuple[StepPart, ...]
    sequence: tuple[tuple[int, str], ...]


def step_table(case: Case, join: Join, *, judged: bool) -> StepTable:
    """The parts of the used steps.

    Args:
        judged: where False, the ops of the join are not used: every kernel belongs to its name.
    """
    windows = [Window(step.index, step.start_ns, step.end_ns) for step in join.used]
    codes, labels = _codes(case, join, judged)
    keys = [f"{kind}:{name}" for kind, name in labels]
    activity, names = build_activity(
        case.kernels, case.copies, case.memsets, case.graph_traces, case.api_calls, codes
    )
    gaps = find_gaps(activity, windows, keys, case.api_calls, case.syncs, case.overhead, names)
    account = waterfall(activity, windows, keys, {}, gaps)
    inside = _window_of(case, windows)
    found = _parts(account, dict(zip(keys, labels, strict=True)))
    place = {f"{part.kind}:{part.name}": number for number, part in enumerate(found)}
    parts = tuple(
        _described(case, codes, keys.index(key), inside, len(windows), part) if key in place and part.kind in
        ("op", "kernel") else part
        for key, part in zip([f"{part.kind}:{part.name}" for part in found], found, strict=True)
    )  # fmt: skip
    lengths = np.array([window.duration_ns for window in windows], np.int64)
    sequence = _sequence(case, codes, keys, place, inside, len(windows))
    return StepTable(tuple(window.index for window in windows), lengths, parts, sequence)


def _codes(case: Case, join: Join, judged: bool) -> tuple[Ints, list[tuple[str, str]]]:
    """For each kernel the label it belongs to, and the labels: ops first, then kernel names."""
    ops = [("op", label) for label in join.labels.op_labels] if judged else []
    names = case.kernels["name"].astype("category")
    code = names.cat.codes.to_numpy(np.int64) + len(ops)
    if judged:
        code = np.where(join.labels.op >= 0, join.labels.op, code)
    return np.asarray(code, np.int64), [*ops, *(("kernel", str(name)) for name in names.cat.categories)]


def _window_of(case: Case, windows: Sequence[Window]) -> Ints:
    """The window in which each kernel starts; -1 outside all."""
    starts = case.kernels["start_ns"].to_numpy(np.int64)
    result = np.full(len(starts), -1, np.int64)
    for number, window in enumerate(windows):
        result[(starts >= window.start_ns) & (starts < window.end_ns)] = number
    return result


def _parts(account: Waterfall, labels: dict[str, tuple[str, str]]) -> list[StepPart]:
    """The parts of the account by kind and name; empty ones are left out."""
    values = np.array(account.per_window, np.int64).reshape(len(account.windows), len(account.parts))
    result = []
    for number, part in enumerate(account.parts):
        if not values[:, number].any():
            continue
        if part.op is not None:
            kind, name = labels[part.op]
        elif part.kind == "unmodeled":
            kind, name = "graph", part.label
        else:
            kind, name = part.kind, part.cause or part.label
        result.append(StepPart(kind, name, values[:, number]))
    return result


def _described(
    case: Case, codes: Ints, code: int, inside: Ints, windows: int, part: StepPart
) -> StepPart:  # fmt: skip
    """A part with its launches and the names of its kernels."""
    rows = (codes == code) & (inside >= 0)
    own = case.kernels[rows]
    times = own.groupby("name", observed=True)["duration_ns"].sum().sort_values(ascending=False)
    kernels = tuple(str(name) for name in times.index[:KERNEL_NAMES])
    return StepPart(part.kind, part.name, part.values_ns, len(own) / max(windows, 1), kernels)


def _sequence(
    case: Case, codes: Ints, keys: Sequence[str], place: dict[str, int], inside: Ints, windows: int
) -> tuple[tuple[int, str], ...]:
    """Kernels of the first step that has as many of them as most steps have."""
    if not windows or not (inside >= 0).any():
        return ()
    counts = np.bincount(inside[inside >= 0], minlength=windows)
    usual = int(np.bincount(counts).argmax())
    rows = np.flatnonzero(inside == int(np.flatnonzero(counts == usual)[0]))
    frame = case.kernels.iloc[rows]
    shape = frame[["grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z"]].to_numpy(np.int64)
    texts = ["×".join(map(str, row[:3])) + " | " + "×".join(map(str, row[3:])) for row in shape.tolist()]
    return tuple(
        (place[keys[code]], text)
        for code, text in zip(codes[rows].tolist(), texts, strict=True)
        if keys[code] in place
    )
