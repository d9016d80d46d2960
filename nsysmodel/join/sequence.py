"""From a kernel sequence to slots: identities, two passes of alignment, and what each kernel serves.

The second pass knows what the first one learned: a launch identity that served one op a hundred times is
unlikely to serve another one once. That is how a layer is learned and checked on all the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from nsysmodel.grouping import codes_of, first_rows
from nsysmodel.hardware.types import Hardware
from nsysmodel.join.beliefs import MISFIT
from nsysmodel.join.costs import Identity, costs_of
from nsysmodel.join.durations import split_by_duration
from nsysmodel.join.knowledge import op_belief
from nsysmodel.join.runs import narrow
from nsysmodel.join.shapes import Shapes
from nsysmodel.join.template import DRAFT, Template
from nsysmodel.join.types import Codes, Floats, Ints
from nsysmodel.join.viterbi import Costs, Path, best_path
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.theory.floor import floor_of

LEARN_FROM = 8
"""Instances of an identity below which nothing is learned from it."""
MOST_SURPRISE = 2.0
"""Most that what was learned may add to a cost: rare is not impossible, an LM head runs once a step."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Kernels as identities.

    Attributes:
        identity: identity of each kernel, in row order of the frame.
        identities: what each identity is.
        launch: number of the launch (name, grid, block) of each kernel, durations not told apart.
    """

    identity: Codes
    identities: tuple[Identity, ...]
    launch: Codes


_LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x")


def identify(kernels: pd.DataFrame, shapes: Shapes, vocabulary: Vocabulary) -> Sequence:
    """Number the launch identities (name, grid, block) of a kernel frame.

    The name alone is never an identity: one GEMM kernel serves many roles, and its grid tells them apart.
    """
    names = kernels["name"].astype("category")
    keys = [names.cat.codes.to_numpy()[shapes.examples]]
    keys += [kernels[column].to_numpy(np.int64)[shapes.examples] for column in _LAUNCH]
    number = codes_of(keys)
    launch = narrow(number)[shapes.code]
    split = split_by_duration(launch, kernels["duration_ns"].to_numpy(np.int64))
    name_of_launch = keys[0][first_rows(number, int(number.max(initial=-1)) + 1)]
    codes = name_of_launch[split.launch]
    texts = [str(text) for text in names.cat.categories]
    classes = vocabulary.classify_all([texts[code] for code in codes])
    identities = tuple(
        Identity(found, texts[code], float(m), int(n))
        for found, code, m, n in zip(classes, codes, split.median_ns, split.count, strict=True)
    )
    return Sequence(narrow(split.identity), identities, launch)


def op_floors(template: Template, hardware: Hardware) -> dict[int, tuple[float, float]]:
    """(floor, hard floor) in ns of each op of a template; ops that cannot be judged have none."""
    floors: dict[int, tuple[float, float]] = {}
    for index, op in enumerate(template.ops):
        if not op.judged:
            continue
        floor = floor_of(op.cost, hardware)
        hard_ns = floor_of(op.min_cost, hardware).hbm_ns if op.min_cost is not None else floor.hbm_ns
        floors[index] = (floor.ns, hard_ns)
    return floors


def align(
    template: Template,
    sequence: Sequence,
    order: Ints,
    floors: Mapping[int, tuple[float, float]],
) -> tuple[Path, Costs, Costs]:
    """Align the kernels `order` (row numbers) with a template, twice.

    Returns the second path, the costs it was found with, and those of the first pass.
    """
    costs = costs_of(template, sequence.identities, floors)
    chain = sequence.identity[order]
    path = best_path(template, costs, chain)
    learned = _learn(template, costs, chain, path, len(sequence.identities))
    return best_path(template, learned, chain), learned, costs


def _learn(template: Template, costs: Costs, chain: Ints, path: Path, count: int) -> Costs:
    """Costs raised where an identity would do what it hardly ever did in the first pass."""
    served = np.where(path.slot >= 0, template.slot_op[path.group, path.slot], len(template.ops))
    ids, inverse = _op_ids(template)
    table: Floats = np.zeros((count, len(ids) + 1))
    np.add.at(table, (chain, np.append(inverse, len(ids))[served]), 1.0)
    number = table.sum(axis=1, keepdims=True)
    surprise = -np.log((table + 0.2) / (number + 0.4))
    surprise[number[:, 0] < LEARN_FROM] = 0.0
    surprise = np.minimum(surprise, MOST_SURPRISE)
    if DRAFT.id in ids:
        surprise[:, ids.index(DRAFT.id)] = 0.0
    by_slot = surprise[:, np.append(inverse, len(ids))[template.slot_op]]
    enter = np.where(costs.enter < MISFIT, costs.enter + by_slot, costs.enter)
    return replace(costs, enter=enter, extra=costs.extra + surprise[:, -1])


def _op_ids(template: Template) -> tuple[list[str], Ints]:
    """Distinct op families, and for each op of the template its number among them.

    Norms are one family: the final norm runs once a step with the kernel of all the others.
    """
    family = [op_belief(op).generic or op.id for op in template.ops]
    ids = list(dict.fromkeys(family))
    number = {op_id: index for index, op_id in enumerate(ids)}
    return ids, np.array([number[op_id] for op_id in family], np.int64)
