"""The aligner against brute force, and the parts of the join that need no export."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nsysmodel.join.template import FORBIDDEN, Group, Template
from nsysmodel.join.viterbi import Costs, best_path
from nsysmodel.model.types import Op
from nsysmodel.theory.cost import ZERO

WIDTH = 3
OWN = np.tile(np.arange(WIDTH), (3, 3, 1))
"""Every kernel serves one slot."""


def _template(skip: np.ndarray, loops: tuple[tuple[int, int, int, float], ...] = ()) -> Template:
    """One head, one layer that may repeat, one tail; the head follows the tail."""
    ops = tuple(Op(f"op{i}", "norm", ZERO, ("norm",)) for i in range(3 * WIDTH))
    groups = tuple(
        Group(kind, layer, ops[g * WIDTH : (g + 1) * WIDTH], tuple(range(WIDTH)))
        for g, (kind, layer) in enumerate((("head", -1), ("layer", 0), ("tail", -1)))
    )
    transition = np.array(
        [[FORBIDDEN, 0.0, FORBIDDEN], [FORBIDDEN, 0.0, 0.0], [0.0, FORBIDDEN, FORBIDDEN]], float
    )
    slots = np.arange(3 * WIDTH).reshape(3, WIDTH)
    return Template(
        groups, ops, slots, skip, transition, np.array([0.0, 1.0, 1.0]), np.zeros(3), loops,
        np.ones(3), FORBIDDEN, FORBIDDEN,
    )  # fmt: skip


def _brute_force(template: Template, costs: Costs, chain: list[int]) -> float:
    """Cheapest cost over every assignment of kernels to slots, by dynamic programming over single states."""
    groups, width = template.slot_op.shape
    states = list(itertools.product(range(groups), range(width)))
    skip = template.skip

    def between(g: int, low: int, high: int) -> float:
        return float(skip[g, low:high].sum())

    def enter(source: tuple[int, int] | None, target: tuple[int, int]) -> float:
        g, w = target
        if source is None:
            return float(template.start[g]) + between(g, 0, w)
        options = [FORBIDDEN]
        sg, sw = source
        if sg == g and sw < w:
            options.append(between(g, sw + 1, w))
        options.append(between(sg, sw + 1, width) + float(template.transition[sg, g]) + between(g, 0, w))
        for lg, origin, to, price in template.loops:
            if lg == g == sg and sw == origin and to <= w:
                options.append(price + between(g, to, w))
        return min(options)

    value: dict[tuple[int, int], float] = {}
    for i, kernel in enumerate(chain):
        new: dict[tuple[int, int], float] = {}
        for state in states:
            sources: list[tuple[int, int] | None] = [None] if i == 0 else list(states)
            first = (state[0], int(costs.opening[(kernel, *state)]))
            reach = min(
                (0.0 if s is None else value[s]) + enter(s, target)
                for s in sources
                for target in (state, first)
            )
            best = reach + costs.enter[(kernel, *state)]
            if i == 0:
                best = min(best, enter(None, state) + costs.extra[kernel] + 0.5)
            else:
                best = min(
                    best, value[state] + costs.stay[(kernel, *state)], value[state] + costs.extra[kernel]
                )
            new[state] = float(best)
        value = new
    return min(cost + between(g, w + 1, width) + float(template.finish[g]) for (g, w), cost in value.items())


_COST = st.floats(0, 8).map(lambda x: round(x, 2))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(_COST, min_size=9, max_size=9),
    st.lists(_COST, min_size=54, max_size=54),
    st.lists(_COST, min_size=3, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=7),
    st.booleans(),
    st.lists(st.integers(0, 2), min_size=27, max_size=27),
)
def test_the_path_is_the_cheapest(
    skips: list[float], prices: list[float], extra: list[float], chain: list[int], loop: bool, back: list[int]
) -> None:
    template = _template(np.array(skips).reshape(3, 3), ((1, 2, 0, 0.25),) if loop else ())
    table = np.array(prices).reshape(2, 3, 3, 3)
    opening = np.maximum(OWN - np.array(back).reshape(3, 3, 3), 0)
    costs = Costs(table[0], table[1], np.array(extra), opening)
    path = best_path(template, costs, np.array(chain))
    assert path.cost == pytest.approx(_brute_force(template, costs, chain), abs=1e-3)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(_COST, min_size=9, max_size=9),
    st.lists(_COST, min_size=54, max_size=54),
    st.lists(_COST, min_size=3, max_size=3),
    st.lists(st.integers(0, 2), min_size=2, max_size=9),
)
def test_the_traced_path_costs_what_it_says(
    skips: list[float], prices: list[float], extra: list[float], chain: list[int]
) -> None:
    template = _template(np.array(skips).reshape(3, 3))
    table = np.array(prices).reshape(2, 3, 3, 3)
    costs = Costs(table[0], table[1], np.array(extra), OWN)
    path = best_path(template, costs, np.array(chain))
    slots = [(int(g), int(w)) for g, w in zip(path.group, path.slot, strict=True)]
    served = [i for i, (_, w) in enumerate(slots) if w >= 0]
    # Before the first served kernel a path may stand at any slot: a capture can begin inside a layer.
    for i in served[1:]:
        if path.stayed[i]:
            before = [j for j in served if j < i]
            assert slots[before[-1]] == slots[i]
        elif not path.entered[i]:
            before = [j for j in served if j < i]
            assert slots[before[-1]][0] == slots[i][0]
            assert slots[before[-1]][1] == path.came_from[i]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(_COST, min_size=9, max_size=9),
    st.lists(_COST, min_size=54, max_size=54),
    st.lists(_COST, min_size=3, max_size=3),
    st.lists(st.integers(0, 2), min_size=1, max_size=12),
    st.integers(1, 9),
    st.booleans(),
    st.lists(st.integers(0, 2), min_size=27, max_size=27),
)
def test_what_is_remembered_of_a_state_is_what_would_be_computed_again(
    skips: list[float],
    prices: list[float],
    extra: list[float],
    block: list[int],
    times: int,
    loop: bool,
    back: list[int],
) -> None:
    template = _template(np.array(skips).reshape(3, 3), ((1, 2, 0, 0.25),) if loop else ())
    table = np.array(prices).reshape(2, 3, 3, 3)
    chain = np.array(block * times + block[:1] * times)
    opening = np.maximum(OWN - np.array(back).reshape(3, 3, 3), 0)
    path = best_path(template, Costs(table[0], table[1], np.array(extra), opening), chain)
    # Where every kernel is an identity of its own, no move is taken twice.
    own = Costs(table[0][chain], table[1][chain], np.array(extra)[chain], opening[chain])
    anew = best_path(template, own, np.arange(len(chain)))
    assert path.cost == anew.cost
    for field in ("group", "slot", "entered", "stayed", "came_from"):
        assert np.array_equal(getattr(path, field), getattr(anew, field)), field


def test_an_extra_kernel_costs_nothing_but_itself() -> None:
    template = _template(np.full((3, 3), 5.0))
    enter = np.full((2, 3, 3), 20.0)
    for g, w in itertools.product(range(3), range(3)):
        enter[0, g, w] = 0.0
    enter[1] = 20.0
    costs = Costs(enter, np.full((2, 3, 3), 20.0), np.array([4.0, 1.0]), OWN[:2])
    clean = best_path(template, costs, np.array([0] * 9))
    stray = best_path(template, costs, np.array([0] * 4 + [1] + [0] * 5))
    assert clean.cost == pytest.approx(0.0)
    assert stray.cost == pytest.approx(1.0)
    assert stray.slot[4] == -1
    assert (np.delete(stray.slot, 4) == clean.slot).all()


def _joint(opening: int) -> Costs:
    """Kernel 0 serves any slot; kernel 1 only the last of the layer, from `opening` on."""
    enter = np.full((2, 3, 3), 20.0)
    enter[0] = 0.0
    enter[1, 1, 2] = 0.0
    both = OWN[:2].copy()
    both[1, 1, 2] = opening
    return Costs(enter, np.full((2, 3, 3), 20.0), np.full(2, 9.0), both)


def test_a_kernel_that_does_two_ops_leaves_none_out() -> None:
    template = _template(np.full((3, 3), 5.0))
    chain = np.array([0, 0, 0, 0, 1, 0, 0, 0])
    path = best_path(template, _joint(1), chain)
    assert path.cost == pytest.approx(0.0)
    assert (path.slot[4], path.came_from[4]) == (2, 0)
    assert best_path(template, _joint(2), chain).cost == pytest.approx(5.0)


def test_nothing_is_refunded_for_an_op_that_another_kernel_served() -> None:
    """What a kernel is known to do is no reward for calling the kernel before it something else."""
    template = _template(np.full((3, 3), 5.0))
    chain = np.array([0, 0, 0, 0, 0, 1, 0, 0, 0])
    path = best_path(template, _joint(1), chain)
    assert path.cost == pytest.approx(0.0)
    assert path.slot.tolist() == [0, 1, 2, 0, 1, 2, 0, 1, 2]
    assert path.came_from[5] == 1
