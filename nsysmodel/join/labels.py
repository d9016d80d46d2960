"""From a path through the template to labels: op, layer, step, executions, confidence of each kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from nsysmodel.join.beliefs import GENERIC_CLASSES, MISFIT, covers_op, unnamed
from nsysmodel.join.costs import Identity
from nsysmodel.join.knowledge import op_belief
from nsysmodel.join.template import DRAFT, Group, Template
from nsysmodel.join.types import Bools, Bundle, Codes, Floats, Ints
from nsysmodel.join.viterbi import Costs, Path
from nsysmodel.join.vocabulary import KernelClass

NEVER_JOINT = frozenset(
    {"quantize", "residual_add", "moe_permute", "topk", "attn_allgather", "moe_dispatch", "moe_combine"}
)
"""Small ops that an unnamed kernel is not assumed to contain."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Labels in execution order, before steps get their windows.

    `op` indexes `labels` (-1 extra); `layer` is -1 outside layers; `step` counts passes from 0, -1 before the
    first; `first` marks the kernel that opens an op; `bundle` indexes `bundles`, the places it stands for.
    `group` is the group of the template, -1 for extra kernels.
    """

    op: Codes
    layer: Codes
    step: Codes
    first: Bools
    confidence: Floats
    labels: tuple[str, ...]
    bundle: Codes
    bundles: tuple[Bundle, ...]
    group: Codes


def passes(template: Template, path: Path) -> tuple[Ints, Ints]:
    """(step, layer) of each kernel of a path; extra kernels take those of the kernel before them.

    A step begins where the path enters the head, or a layer straight after the tail.
    """
    count = len(path.slot)
    step, layer = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
    served = np.flatnonzero(path.slot >= 0)
    if not len(served):
        return step, layer
    tail = len(template.groups) - 1
    group = path.group[served]
    entered = path.entered[served]
    before = np.concatenate(([tail], group[:-1]))
    in_layer = (group > 0) & (group < tail)
    new_step = entered & ((group == 0) | (in_layer & (before == tail)))
    new_step[0] = True
    number = np.cumsum(new_step) - 1
    if len(template.groups) > 3 and template.groups[2].layer == 1:
        depth = np.where(in_layer, group - 1, -1)
    else:
        passed = np.cumsum(entered & in_layer)
        opening = np.flatnonzero(new_step)
        base: Ints = (passed - (entered & in_layer))[opening]
        depth = np.where(in_layer, passed - base[number] - 1, -1)
        depth = np.where(in_layer, np.maximum(depth, 0), -1)
    step[served], layer[served] = number, depth
    return _carry(step, served), _between(layer, step, served)


def _carry(values: Ints, served: Ints) -> Ints:
    """Extra kernels take the value of the last served kernel before them."""
    holder = np.full(len(values), -1, np.int64)
    holder[served] = np.arange(len(served))
    last = np.maximum.accumulate(holder)
    return np.where(last >= 0, values[served[np.maximum(last, 0)]], -1)


def _between(layer: Ints, step: Ints, served: Ints) -> Ints:
    """Extra kernels inside a layer (served before and after by the same pass) carry that layer."""
    result = layer.copy()
    holder = np.full(len(layer), -1, np.int64)
    holder[served] = np.arange(len(served))
    last = np.maximum.accumulate(holder)
    extra = np.flatnonzero((holder < 0) & (last >= 0) & (last < len(served) - 1))
    left, right = served[last[extra]], served[last[extra] + 1]
    same = (layer[left] == layer[right]) & (step[left] == step[right])
    result[extra[same]] = layer[left[same]]
    return result


def chain_labels(
    template: Template, path: Path, costs: Costs, chain: Ints, identities: tuple[Identity, ...]
) -> Chain:
    """Label the kernels of a path; `chain` holds their identities."""
    step, layer = passes(template, path)
    names: dict[str, int] = {}
    places: dict[Bundle, int] = {}
    op, bundle = np.full(len(chain), -1, np.int64), np.full(len(chain), -1, np.int64)
    served = np.flatnonzero(path.slot >= 0)
    until = _next_slots(template, path, served)
    before = _left_behind(path, served)
    own = (path.group, path.slot, path.stayed.astype(np.int64))
    after = path.came_from[served] - _done_in_part(served, chain, identities)
    columns = [chain[served], *(array[served] for array in own), after, until, before[:, 0], before[:, 1]]
    if len(served):
        unique, inverse = _distinct_rows(columns)
        found = [serves(template, identities[k[0]], *k[1:]) for k in unique.tolist()]
        codes = np.array([_intern(names, label) for label, _ in found], np.int64)
        places_of = np.array([_intern(places, place) for _, place in found], np.int64)
        op[served], bundle[served] = codes[inverse.reshape(-1)], places_of[inverse.reshape(-1)]
    confidence = np.zeros(len(chain))
    cost = costs.enter[chain[served], path.group[served], path.slot[served]]
    stay = costs.stay[chain[served], path.group[served], path.slot[served]]
    best = np.clip(np.where(path.stayed[served], np.minimum(stay, cost), cost), 0.0, MISFIT)
    confidence[served] = np.exp(-0.25 * best)
    first = np.zeros(len(chain), bool)
    first[served] = ~path.stayed[served] & _new_places(template, path, served)
    for run, inside in _unnamed_runs(template, path, served, chain, identities):
        ops = template.groups[path.group[run[0]]].ops
        op[run] = _intern(names, "+".join(dict.fromkeys(ops[w].id for w in inside)))
        group = template.groups[path.group[run[0]]]
        bundle[run] = _intern(places, tuple((_region(group), group.positions[w]) for w in inside))
        first[run] = False
        first[run[0]] = True
    draft = np.array([op is DRAFT for op in template.ops] + [False], bool)
    drafted = served[draft[template.slot_op[path.group[served], path.slot[served]]]]
    trailing = np.append(_trailing_copies(template, path, served, chain, identities), drafted)
    op[trailing], bundle[trailing], first[trailing], confidence[trailing] = -1, -1, False, 0.0
    return Chain(op, layer, step, first, confidence, tuple(names), bundle, tuple(places), path.group)


def _distinct_rows(columns: list[Ints]) -> tuple[Ints, Ints]:
    """Distinct rows of a table of small integers from -1 on, and the number of each row among them."""
    key = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        key = key * (int(column.max()) + 2) + column + 1
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), inverse.reshape(-1)


def _intern(table: dict[Any, int], key: Any) -> int:
    """Number of a key, given out in order of first use."""
    return table.setdefault(key, len(table))


def _region(group: Group) -> str:
    return group.kind if group.kind in ("head", "tail") and group.layer < 0 else "layer"


def _new_places(template: Template, path: Path, served: Ints) -> Bools:
    """True for the first visit of a place in a pass: an op is executed once however often it is left."""
    positions = np.full(template.slot_op.shape, -1, np.int64)
    for g, group in enumerate(template.groups):
        positions[g, : len(group.positions)] = group.positions
    number = np.cumsum(path.entered)[served]
    keys = number * positions.size + positions[path.group[served], path.slot[served]]
    result = np.zeros(len(served), bool)
    rows = np.flatnonzero(~path.stayed[served])
    result[rows[np.unique(keys[rows], return_index=True)[1]]] = True
    return result


def _left_behind(path: Path, served: Ints) -> Ints:
    """For a kernel that enters a group: group and slot of the kernel served before it; -1 elsewhere."""
    result = np.full((len(served), 2), -1, np.int64)
    if len(served) > 1:
        entering = np.flatnonzero(path.entered[served[1:]]) + 1
        result[entering, 0] = path.group[served[entering - 1]]
        result[entering, 1] = path.slot[served[entering - 1]]
    return result


def _trailing_copies(
    template: Template, path: Path, served: Ints, chain: Ints, identities: tuple[Identity, ...]
) -> Ints:
    """Copies that end an attention: they lay its result out for the next op, and no op expects them."""
    copies = np.array([identity.kernel_class.kernel_class == "copy_cast" for identity in identities], bool)
    attention = np.array([op.id == "attention" for op in template.ops] + [False], bool)
    is_attention = attention[template.slot_op[path.group[served], path.slot[served]]]
    leaves = np.ones(len(served), bool)
    if len(served) > 1:
        leaves[:-1] = ~path.stayed[served[1:]]
    found: Ints = served[is_attention & leaves & path.stayed[served] & copies[chain[served]]]
    return found


def _done_in_part(served: Ints, chain: Ints, identities: tuple[Identity, ...]) -> Ints:
    """1 where the kernel served before is element-wise: it may be a part of an op that this one does too.

    A copy that eager RoPE begins with, before a kernel that is RoPE and cache write, is not the whole RoPE.
    """
    generic = np.array([i.kernel_class.kernel_class in GENERIC_CLASSES for i in identities], bool)
    result = np.zeros(len(served), np.int64)
    result[1:] = generic[chain[served[:-1]]]
    return result


def _next_slots(template: Template, path: Path, served: Ints) -> Ints:
    """For each served kernel the slot that its pass serves next; the slot itself where that is not known."""
    until = path.slot[served].copy()
    if len(served) > 1:
        inside = ~path.entered[served[1:]] & ~path.stayed[served[1:]]
        until[:-1] = np.where(inside, path.slot[served[1:]], until[:-1])
    return until


def serves(
    template: Template,
    identity: Identity,
    group: int,
    slot: int,
    stayed: int,
    after: int,
    until: int,
    left_group: int = -1,
    left_slot: int = -1,
) -> tuple[str, Bundle]:
    """Label and places of a kernel that serves `slot`; `after` is the last slot before it served by others.

    With it go the ops before it that it is known to do, those after it of the same family (q_a and kv_a as
    one product), and those that end the layer before (an all-reduce fused with the next norm), where nothing
    else serves them.
    """
    here = template.groups[group]
    slots = [slot]
    kernel = identity.kernel_class
    family = op_belief(here.ops[slot]).family
    ahead = slot + 1
    while family and not stayed and ahead < until and op_belief(here.ops[ahead]).family == family:
        slots.append(ahead)
        ahead += 1
    ends: list[int] = []
    if len(kernel.covers) > 1 and not stayed:
        back = slot - 1
        while back > after and covers_op(kernel, here.ops[back]):
            slots.insert(0, back)
            back -= 1
        if back < 0 and left_group >= 0:
            ends = _covered_end(template.groups[left_group], left_slot, kernel)
    region = _region(here)
    left = template.groups[left_group]
    place = [("previous" if region != "head" else "tail", left.positions[w]) for w in ends]
    place += [(region, here.positions[w]) for w in slots]
    ids = [left.ops[w].id for w in ends] + [here.ops[w].id for w in slots]
    return "+".join(dict.fromkeys(ids)), tuple(place)


def _covered_end(group: Group, slot: int, kernel: KernelClass) -> list[int]:
    """Last slots of a group, after the one served last, that a kernel is known to do."""
    ends: list[int] = []
    for w in range(len(group.ops) - 1, slot, -1):
        if covers_op(kernel, group.ops[w]):
            ends.insert(0, w)
        elif not group.ops[w].optional:
            break
    return ends


def _unnamed_runs(
    template: Template, path: Path, served: Ints, chain: Ints, identities: tuple[Identity, ...]
) -> Iterator[tuple[Ints, list[int]]]:
    """Runs of kernels whose names tell nothing, with the small ops between their neighbours.

    Which of them does which op cannot be said, so all carry the joint label.
    """
    opaque = np.array([unnamed(identity.kernel_class) for identity in identities], bool)
    is_open = opaque[chain[served]]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_open.astype(np.int8), [0]))))
    for begin, end in edges.reshape(-1, 2):
        run = served[begin:end]
        group = path.group[run[0]]
        if (path.group[run] != group).any() or path.entered[run[1:]].any() or path.stayed[run[0]]:
            continue
        ops = template.groups[group].ops
        low = -1 if path.entered[run[0]] else int(path.came_from[run[0]])
        follows = end < len(served) and path.group[served[end]] == group and not path.entered[served[end]]
        high = int(path.slot[served[end]]) if follows else int(path.slot[run[-1]]) + 1
        inside = [w for w in range(low + 1, high) if ops[w].optional and ops[w].id not in NEVER_JOINT]
        if len(inside) >= 2:
            yield run, inside
