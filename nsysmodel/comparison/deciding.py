"""The verdict of a comparison: one of five words, one sentence, why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nsysmodel import units
from nsysmodel.comparison.result import (
    CHANGES,
    ComparisonVerdict,
    DevicePair,
    Measure,
    OpChange,
    Status,
)

SHOWN = 4
MATERIAL = 0.01
"""Share of a step that must be on one side only before the headline speaks of the common part."""


def verdict(
    pairs: Sequence[DevicePair], ops: Sequence[OpChange], against: Sequence[str]
) -> ComparisonVerdict:
    """The verdict over all device pairs.

    `not_comparable` where anything speaks against the comparison; `mixed` where something got better and
    something worse, the steps themselves included; else the one direction, or `no_change`.
    """
    counts: dict[str, int] = {change: sum(op.change == change for op in ops) for change in CHANGES}
    if against:
        head = against[0] if len(against) == 1 else f"{against[0].rstrip('.')}, and {len(against) - 1} more."
        told = [*against[1:], *(f"Measured anyway: {_sentence(pairs)}" for _ in pairs[:1])]
        return ComparisonVerdict("not_comparable", f"Not comparable: {head}", tuple(told), counts)
    changes = {*(op.change for op in ops), *(pair.step.change for pair in pairs)}
    better, worse = "improved" in changes, "regressed" in changes
    status: Status = (
        "mixed" if better and worse else "improved" if better else "regressed" if worse else "no_change"
    )
    word = {"improved": "Improved", "regressed": "Regressed", "mixed": "Mixed", "no_change": "No change"}
    if status in ("improved", "regressed", "mixed") and all(p.step.change == "unchanged" for p in pairs):
        head = f"{word[status]}: {_counted(counts)}, not the {pairs[0].unit} as a whole; {_sentence(pairs)}"
    else:
        head = f"{word[status]}: {_sentence(pairs)}"
    return ComparisonVerdict(status, head, tuple(_reasons(pairs, ops)), counts)


def _counted(counts: Mapping[str, int]) -> str:
    """How many rows changed, in words.

    >>> _counted({"improved": 1, "regressed": 2})
    '2 parts slower, 1 faster'
    """
    words = [(counts[change], word) for change, word in (("regressed", "slower"), ("improved", "faster"))]
    (first, word), *rest = [item for item in words if item[0]]
    return ", ".join([f"{first} part{'s' * (first != 1)} {word}", *(f"{n} {w}" for n, w in rest)])


def _sentence(pairs: Sequence[DevicePair]) -> str:
    pair = pairs[0]
    text = (
        f"a {pair.unit} takes {units.ns(pair.step.a_ns)} in A and {units.ns(pair.step.b_ns)} in B, "
        f"{told(pair.step)}."
    )
    lonely = max(pair.only_a_ns / max(pair.step.a_ns or 1, 1), pair.only_b_ns / max(pair.step.b_ns or 1, 1))
    if lonely >= MATERIAL and pair.common.difference_ns is not None:
        text += (
            f" The kernels that both sides have take {units.ns(pair.common.a_ns)} and "
            f"{units.ns(pair.common.b_ns)}, {told(pair.common)}."
        )
    return text


def told(measure: Measure) -> str:
    """A change in words with its uncertainty."""
    if measure.change_ratio is None:
        return "which cannot be set side by side"
    size = units.percent(abs(measure.change_ratio), 2)
    more = (measure.difference_ns or 0) > 0
    word = "the same" if not measure.difference_ns else f"{size} {'slower' if more else 'faster'}"
    chance = ", which may be chance" if measure.reason.startswith("may be chance") else ""
    return f"{word} ({uncertainty(measure)}){chance}"


def uncertainty(measure: Measure) -> str:
    """The noise beside a change: half the interval or what the runs shift by themselves, the larger."""
    if measure.low_ns is None or measure.high_ns is None or not measure.a_ns:
        return "noise unknown"
    half = max((measure.high_ns - measure.low_ns) / 2, measure.noise_ns)
    return f"noise ±{units.percent(half / measure.a_ns, 2)}"


def _reasons(pairs: Sequence[DevicePair], ops: Sequence[OpChange]) -> list[str]:
    """The largest changes, then what is on one side only, then the step where it says something else."""
    changed = [op for op in ops if op.change in ("improved", "regressed")]
    changed.sort(key=lambda op: -abs(op.measure.difference_ns or 0.0))
    reasons = [_line(op, pairs) for op in changed[:SHOWN]]
    if len(changed) > SHOWN:
        reasons.append(f"{len(changed) - SHOWN} more changed.")
    for change, side in (("only_a", "A"), ("only_b", "B")):
        lonely = [op for op in ops if op.change == change]
        if lonely:
            time = sum((op.measure.a_ns or 0) + (op.measure.b_ns or 0) for op in lonely)
            names = ", ".join(short(op.op) for op in lonely[:3]) + (", …" if len(lonely) > 3 else "")
            reasons.append(f"Only in {side}: {names}; {units.ns(time)} a {pairs[0].unit}.")
    if not changed and all(pair.step.change == "unchanged" for pair in pairs):
        reasons.append(f"The {pairs[0].unit}: {pairs[0].step.reason}.")
    idle = _idle(pairs[0])
    if idle:
        reasons.append(idle)
    return reasons


def _line(op: OpChange, pairs: Sequence[DevicePair]) -> str:
    measure = op.measure
    ratio = measure.change_ratio or 0.0
    what = short(op.op)
    if op.how == "replaced":
        what = f"{_several(op.a_parts)} → {_several(op.b_parts)}"
    where = f" on device {pairs[op.pair].device}" if len(pairs) > 1 else ""
    sign = "+" if ratio > 0 else "−"
    return (
        f"{what}{where}: {units.ns(measure.a_ns)} → {units.ns(measure.b_ns)} "
        f"({sign}{units.percent(abs(ratio), 2)}; {measure.reason})."
    )


def _several(names: Sequence[str]) -> str:
    more = f" + {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return " + ".join(short(name, 40) for name in names[:SHOWN]) + more


def _idle(pair: DevicePair) -> str:
    """Idle time, where it moves the step more than its kernels do."""
    gaps = sum(part.difference_ns for part in pair.waterfall if part.kind == "gap")
    rest = pair.b_mean_ns - pair.a_mean_ns - gaps
    if pair.step.change == "unchanged" or abs(gaps) <= abs(rest):
        return ""
    return f"Idle time accounts for {units.ns(gaps)} of the mean {pair.unit}'s {units.ns(gaps + rest)}."


def short(name: str, width: int = 60) -> str:
    """A kernel's name without arguments and well-known namespaces; an op id stays as it is."""
    from nsysmodel.report.text import kernel_name

    return kernel_name(name, width)
