"""Which parts of two runs are the same thing: ops by role, kernels by name, renamed ones by place and grid.

Nothing is dropped: a part without a partner is a row of one side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from nsysmodel.comparison.snapshot import DeviceSnapshot, Part

LEAST_AGREEMENT = 0.5
"""Share of a kernel's places that must point to the same partner before two names are one."""

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pair:
    """Parts of A and B that do the same work; one of them may be empty.

    `how` says why they belong together: `op`, `name`, `renamed` (same places and grids) or `replaced` (same
    places, other kernels).
    """

    kind: str
    label: str
    a: tuple[str, ...]
    b: tuple[str, ...]
    how: str


def pair_parts(a: Sequence[DeviceSnapshot], b: Sequence[DeviceSnapshot]) -> tuple[Pair, ...]:
    """Pairs over all parts of both sides, each part in exactly one pair.

    Several snapshots of a side are runs of the same thing; their parts are taken together.
    """
    parts_a, parts_b = _parts(a), _parts(b)
    pairs = list(_ops([n for k, n in parts_a if k == "op"], [n for k, n in parts_b if k == "op"]))
    for kind in ("graph", "copy", "gap", "overlap"):
        names = dict.fromkeys(n for k, n in chain(parts_a, parts_b) if k == kind)
        pairs += [
            Pair(kind, name, (name,) * ((kind, name) in parts_a), (name,) * ((kind, name) in parts_b), "name")
            for name in names
        ]
    return (*pairs, *_kernels(a, b, parts_a, parts_b))


def _parts(runs: Sequence[DeviceSnapshot]) -> dict[Key, Part]:
    """Parts of all runs of a side by kind and name, in the order in which they first appear."""
    found: dict[Key, Part] = {}
    for run in runs:
        for part in run.parts:
            found.setdefault((part.kind, part.name), part)
    return found


def _ops(a: Sequence[str], b: Sequence[str]) -> Iterator[Pair]:
    """Ops whose ids overlap belong together: `rope` and `kv_write` in A, `rope+kv_write` in B."""
    ids = dict.fromkeys(part for label in (*a, *b) for part in label.split("+"))
    groups = _Groups(ids)
    for label in (*a, *b):
        first, *rest = label.split("+")
        for other in rest:
            groups.join(first, other)
    for members in groups.all():
        mine = tuple(label for label in a if label.split("+")[0] in members)
        theirs = tuple(label for label in b if label.split("+")[0] in members)
        if mine or theirs:
            yield Pair("op", _op_label(mine or theirs, theirs), mine, theirs, "op")


def _op_label(one: tuple[str, ...], other: tuple[str, ...]) -> str:
    """The ids of a group in the order of execution, each once."""
    longest = max((*one, *other), key=lambda label: label.count("+"))
    return "+".join(dict.fromkeys([*longest.split("+"), *(i for label in one for i in label.split("+"))]))


class _Groups:
    """Disjoint sets of names."""

    def __init__(self, names: Sequence[Key] | dict[str, None] | Sequence[str]) -> None:
        self._of = {name: name for name in names}

    def root(self, name: object) -> object:
        while self._of[name] != name:  # type: ignore[index]
            name = self._of[name]  # type: ignore[index]
        return name

    def join(self, one: object, other: object) -> None:
        self._of[self.root(other)] = self.root(one)  # type: ignore[index,assignment]

    def all(self) -> list[list[object]]:
        groups: dict[object, list[object]] = {}
        for name in self._of:
            groups.setdefault(self.root(name), []).append(name)
        return list(groups.values())


def _kernels(
    a: Sequence[DeviceSnapshot],
    b: Sequence[DeviceSnapshot],
    parts_a: dict[Key, Part],
    parts_b: dict[Key, Part],
) -> Iterator[Pair]:
    names_a = [name for kind, name in parts_a if kind == "kernel"]
    names_b = [name for kind, name in parts_b if kind == "kernel"]
    set_a, set_b = set(names_a), set(names_b)
    for name in (name for name in names_a if name in set_b):
        yield Pair("kernel", name, (name,), (name,), "name")
    lonely_a = [name for name in names_a if name not in set_b]
    lonely_b = [name for name in names_b if name not in set_a]
    same, changed = _links(a[0], b[0], set(lonely_a), set(lonely_b))
    groups = _Groups([*(("a", name) for name in lonely_a), *(("b", name) for name in lonely_b)])
    for one, other in (*same, *changed):
        groups.join(("a", one), ("b", other))
    for members in groups.all():
        chosen: list[Key] = members  # type: ignore[assignment]
        mine = tuple(name for side, name in chosen if side == "a")
        theirs = tuple(name for side, name in chosen if side == "b")
        renamed = len(mine) == len(theirs) == 1 and (mine[0], theirs[0]) in same
        label = theirs[0] if theirs else mine[0]
        how = "renamed" if renamed else "replaced" if mine and theirs else "name"
        yield Pair("kernel", label, mine, theirs, how)


Links = list[tuple[str, str]]


def _links(a: DeviceSnapshot, b: DeviceSnapshot, only_a: set[str], only_b: set[str]) -> tuple[Links, Links]:
    """Names of A and B that run at the same places: with the same grid, and with another one.

    A place is a run of kernels that only one side knows, between two kernels or ops that both know.
    """
    same: Counter[tuple[str, str]] = Counter()
    changed: Counter[tuple[str, str]] = Counter()
    runs_b = _runs(b, only_b)
    for place, stretches in _runs(a, only_a).items():
        for mine, theirs in zip(stretches, runs_b.get(place, ()), strict=False):
            _match(mine, theirs, same, changed)
    mine_total, their_total = _totals(a, only_a), _totals(b, only_b)

    def agrees(pair: tuple[str, str], count: int) -> bool:
        return count >= LEAST_AGREEMENT * min(mine_total[pair[0]], their_total[pair[1]])

    sure = [pair for pair, count in same.items() if agrees(pair, count)]
    taken = {name for pair in sure for name in pair}
    return sure, [
        pair
        for pair, count in changed.items()
        if agrees(pair, count) and pair[0] not in taken and pair[1] not in taken
    ]


Stretch = list[tuple[str, str]]
"""Kernel names with their launch shapes, in order."""


def _runs(side: DeviceSnapshot, only: set[str]) -> dict[tuple[str, str], list[Stretch]]:
    """Stretches of kernels of one side by what both sides know around them."""
    found: dict[tuple[str, str], list[Stretch]] = {}
    before, current = "^", []
    for place, shape in (*side.sequence, (-1, "")):
        part = side.parts[place] if place >= 0 else None
        if part is not None and part.kind == "kernel" and part.name in only:
            current.append((part.name, shape))
            continue
        after = f"{part.kind}:{part.name}" if part is not None else "$"
        if current:
            found.setdefault((before, after), []).append(current)
        before, current = after, []
    return found


def _match(mine: Stretch, theirs: Stretch, same: Counter[tuple[str, str]],
           changed: Counter[tuple[str, str]]) -> None:  # fmt: skip
    """Pair two stretches: equal grids in order first; what is left on both sides was replaced."""
    rest_a, rest_b = list(mine), list(theirs)
    if len(mine) == len(theirs):
        equal = [k for k in range(len(mine)) if mine[k][1] == theirs[k][1]]
        for k in equal:
            same[mine[k][0], theirs[k][0]] += 1
        rest_a = [item for k, item in enumerate(mine) if k not in set(equal)]
        rest_b = [item for k, item in enumerate(theirs) if k not in set(equal)]
    if len(rest_a) == len(rest_b):
        pairs = zip(rest_a, rest_b, strict=True)
        changed.update(Counter((one[0], other[0]) for one, other in pairs))
        return
    for one in dict.fromkeys(name for name, _ in rest_a):
        for other in dict.fromkeys(name for name, _ in rest_b):
            count = min(sum(n == one for n, _ in rest_a), sum(n == other for n, _ in rest_b))
            changed[one, other] += count


def _totals(side: DeviceSnapshot, only: set[str]) -> Counter[str]:
    names = (side.parts[place].name for place, _ in side.sequence if side.parts[place].kind == "kernel")
    return Counter(name for name in names if name in only)
