"""From a path through the template to labels: op, layer, step, executions, confidence of each kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nsysmodel.join.beliefs import MISFIT, Identity, covers_op, unnamed
from nsysmodel.join.template import Template
from nsysmodel.join.types import Bools, Floats, Ints
from nsysmodel.join.viterbi import Costs, Path

NEVER_JOINT = frozenset({"quantize", "residual_add", "moe_permute", "topk"})
"""Small ops that an unnamed kernel is not assumed to contain."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Labels in execution order, before steps get their windows.

    `op` indexes `labels` (-1 extra); `layer` is -1 outside layers; `step` counts passes from 0, -1 before the
    first; `first` marks the kernel that opens an op.
    """

    op: Ints
    layer: Ints
    step: Ints
    first: Bools
    confidence: Floats
    labels: tuple[str, ...]


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
        base = (passed - (entered & in_layer))[opening]
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
    op = np.full(len(chain), -1, np.int64)
    served = np.flatnonzero(path.slot >= 0)
    keys = np.stack(
        [chain[served], path.group[served], path.slot[served], path.came_from[served], path.stayed[served]],
        axis=1,
    )
    unique, inverse = (
        np.unique(keys, axis=0, return_inverse=True) if len(served) else (keys, np.zeros(0, int))
    )
    codes = np.array(
        [names.setdefault(_label(template, identities[k[0]], *k[1:]), len(names)) for k in unique.tolist()],
        np.int64,
    )
    if len(served):
        op[served] = codes[inverse.reshape(-1)]
    confidence = np.zeros(len(chain))
    cost = costs.enter[chain[served], path.group[served], path.slot[served]]
    stay = costs.stay[chain[served], path.group[served], path.slot[served]]
    best = np.clip(np.where(path.stayed[served], np.minimum(stay, cost), cost), 0.0, MISFIT)
    confidence[served] = np.exp(-0.25 * best)
    first = np.zeros(len(chain), bool)
    first[served] = ~path.stayed[served]
    _repeat_places(template, path, served, first)
    _joint(template, path, served, chain, identities, op, first, names)
    return Chain(op, layer, step, first, confidence, tuple(names))


def _label(template: Template, identity: Identity, group: int, slot: int, came_from: int, stayed: int) -> str:
    """Op id of a kernel; with the ids before it that the kernel is known to do and nothing else served."""
    ops = template.groups[group].ops
    label = [ops[slot].id]
    if len(identity.kernel_class.covers) > 1 and not stayed:
        back = slot - 1
        while back > came_from and covers_op(identity.kernel_class, ops[back]):
            label.insert(0, ops[back].id)
            back -= 1
    return "+".join(dict.fromkeys(label))


def _repeat_places(template: Template, path: Path, served: Ints, first: Bools) -> None:
    """An op with two places in a layer (silu, then multiply) is executed once, at its first place."""
    for group in range(len(template.groups)):
        ids = [op.id for op in template.groups[group].ops]
        for slot, op_id in enumerate(ids):
            if op_id not in ids[:slot]:
                continue
            earlier = ids.index(op_id)
            rows = served[(path.group[served] == group) & (path.slot[served] == slot) & first[served]]
            # Where this pass also served the earlier place, that kernel was the opening one.
            opened = served[(path.group[served] == group) & (path.slot[served] == earlier)]
            pass_number = np.cumsum(path.entered)
            first[rows[np.isin(pass_number[rows], pass_number[opened])]] = False


def _joint(
    template: Template,
    path: Path,
    served: Ints,
    chain: Ints,
    identities: tuple[Identity, ...],
    op: Ints,
    first: Bools,
    names: dict[str, int],
) -> None:
    """Runs of kernels whose names tell nothing carry the joint label of the small ops around them."""
    opaque = np.array([unnamed(identity.kernel_class) for identity in identities], bool)
    is_open = opaque[chain[served]]
    edges = np.flatnonzero(np.diff(np.concatenate(([0], is_open.astype(np.int8), [0]))))
    for begin, end in edges.reshape(-1, 2):
        run = served[begin:end]
        group = path.group[run[0]]
        if (path.group[run] != group).any() or path.entered[run[1:]].any():
            continue
        ops = template.groups[group].ops
        low = -1 if path.entered[run[0]] else int(path.came_from[run[0]])
        if path.stayed[run[0]]:
            continue
        follows = end < len(served) and path.group[served[end]] == group and not path.entered[served[end]]
        high = int(path.slot[served[end]]) if follows else int(path.slot[run[-1]]) + 1
        inside = [o.id for o in ops[low + 1 : high] if o.optional and o.id not in NEVER_JOINT]
        inside = list(dict.fromkeys(inside))
        if len(inside) < 2:
            continue
        op[run] = names.setdefault("+".join(inside), len(names))
        first[run] = False
        first[run[0]] = True
