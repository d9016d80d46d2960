"""What runs have in common: shared facts, groups that may be set side by side, and the sentence on top."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from nsysmodel.batch.summary import FACTS
from nsysmodel.batch.types import BatchUsageError, Fact, Group, RunRow

SAME = ("model", "gpu", "phase", "batch", "context", "tokens", "dtype", "quant", "kv_dtype", "tp", "ep", "dp")
"""Facts that two runs must share before their step times say anything about each other."""

NONE = "none"
WORDS = {"gpu": "GPU", "gpus": "GPUs", "tp": "TP", "ep": "EP", "dp": "DP", "kv_dtype": "KV", "nsys": "nsys"}


def check_keys(keys: Sequence[str], labels: Iterable[str]) -> tuple[str, ...]:
    """Keys to group by: the given ones, else those of `SAME`; `none` makes one group of all.

    Args:
        keys: as the user gives them.
        labels: keys of all labels.

    Raises:
        BatchUsageError: a key is neither a fact nor a label of any run.
    """
    if not keys:
        return SAME
    if list(keys) == [NONE]:
        return ()
    known = sorted(set(labels))
    for key in keys:
        if key not in FACTS and key not in known:
            raise BatchUsageError(
                f"No run has {key!r} to group by.",
                f"Facts: {', '.join(FACTS)}; labels: {', '.join(known) or 'none'}.",
            )
    return tuple(keys)


def common(rows: Sequence[RunRow]) -> tuple[dict[str, Fact], tuple[str, ...]]:
    """Facts and labels that all readable runs share, and names of those in which they differ."""
    readable = [row for row in rows if row.status != "failed"]
    names = [*dict.fromkeys(key for row in readable for key in row.labels)]
    names = [*names, *(fact for fact in FACTS if fact not in names)]
    shared: dict[str, Fact] = {}
    varying = []
    for name in names:
        values = [row.value(name) for row in readable]
        if all(value is None for value in values):
            continue
        # A run that was not joined says nothing of its workload; that is no difference.
        strict = name == "model" or any(name in row.labels for row in readable)
        distinct = {value for value in values if strict or value is not None}
        first = next(value for value in values if value is not None)
        if distinct == {first}:
            shared[name] = first
        else:
            varying.append(name)
    return shared, tuple(varying)


def groups(rows: Sequence[RunRow], keys: Sequence[str]) -> tuple[Group, ...]:
    """Readable runs with equal values of `keys`, groups in the order of their first run."""
    found: dict[tuple[Fact | None, ...], list[RunRow]] = {}
    for row in rows:
        if row.status != "failed":
            found.setdefault(tuple(row.value(key) for key in keys), []).append(row)
    telling = [k for k, _ in enumerate(keys) if len({values[k] for values in found}) > 1]
    made = [_group(keys, values, members, telling) for values, members in found.items()]
    if len(made) > 1:
        made = [replace(group, title=group.title or "others") for group in made]
    return tuple(made)


def _group(
    keys: Sequence[str], values: Sequence[Fact | None], members: Sequence[RunRow], telling: Sequence[int]
) -> Group:
    times = [row.step_ns for row in members if row.step_ns is not None]
    return Group(
        title=title({keys[k]: value for k in telling if (value := values[k]) is not None}),
        keys={key: value for key, value in zip(keys, values, strict=True) if value is not None},
        runs=tuple(row.name for row in members),
        least_ns=min(times, default=None),
        median_ns=statistics.median(times) if times else None,
        most_ns=max(times, default=None),
    )


def title(values: Mapping[str, Fact]) -> str:
    """Values as people write them.

    >>> title({"phase": "decode", "batch": 8, "tp": 4}), title({})
    ('decode · batch 8 · TP 4', '')
    """
    shown = []
    for key, value in values.items():
        text = f"{value:,}" if isinstance(value, int) else str(value)
        bare = key in ("model", "gpu", "phase", "dtype")
        shown.append(text if bare else f"{WORDS.get(key, key.replace('_', ' '))} {text}")
    return " · ".join(shown)


def headline(rows: Sequence[RunRow]) -> str:
    """How many runs, what became of them, and how far from the roofline the judged ones are."""
    judged = [row.fraction_of_roofline for row in rows if row.fraction_of_roofline is not None]
    count = f"{len(rows):,} run{'' if len(rows) == 1 else 's'}"
    first = f"{count}: no step was judged"
    if judged:
        low, high = f"{min(judged) * 100:.0f}", f"{max(judged) * 100:.0f}"
        span = f"{low} %" if low == high else f"{low} to {high} %"
        whole = f"{len(judged):,} judged ({span} of the roofline)"
        first = f"{count}: {span} of the roofline" if len(judged) == len(rows) else f"{count}: {whole}"
    rest = []
    for status, words in (
        ("cannot_judge", "cannot be judged"),
        ("no_model", "without a model"),
        ("failed", "failed"),
    ):
        number = sum(row.status == status for row in rows)
        if number:
            rest.append(f"{number:,} {words}")
    return f"{', '.join([first, *rest])}."
