"""Ranges that name modules say which op a kernel serves: they come before names and order."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nsysmodel import units
from nsysmodel.bundled import bundled_yaml
from nsysmodel.join.runs import narrow
from nsysmodel.join.types import Bools, Ints, Join, Labels
from nsysmodel.model.types import StepModel
from nsysmodel.result import Diagnostic


@dataclass(frozen=True, slots=True)
class Module:
    """What a module path says: the layer (-1: none), and the op ids that its kernels may serve."""

    layer: int
    ops: tuple[str, ...]


@functools.cache
def _rules() -> tuple[re.Pattern[str], re.Pattern[str], list[tuple[re.Pattern[str], tuple[str, ...]]]]:
    data: dict[str, Any] = bundled_yaml("nsysmodel.join", "data", "modules.yaml")
    modules = [(re.compile(entry["pattern"]), tuple(entry["ops"])) for entry in data["modules"]]
    return re.compile(data["path"]), re.compile(data["layer"]), modules


@functools.lru_cache(maxsize=100_000)
def read_module(text: str) -> Module | None:
    """The module that a range's text names; None where it names none that serves one op.

    >>> read_module("{'Module': 'model.layers.3.self_attn.o_proj', 'Inputs': [[1, 4096]]}")
    Module(layer=3, ops=('o_proj', 'attn_allreduce'))
    >>> read_module("forward") is None
    True
    """
    path_of, layer_of, modules = _rules()
    found = path_of.search(text)
    if found is None:
        return None
    path = found.group("path")
    for pattern, ops in modules:
        if pattern.search(path):
            layer = layer_of.search(path)
            return Module(int(layer.group("layer")) if layer else -1, ops)
    return None


def apply_modules(
    join: Join, model: StepModel, ranges: Sequence[str], range_of: Ints, duration_ns: Ints
) -> Join:
    """The join with what module ranges say in place of what the sequence says, and how far they agree.

    Args:
        ranges: distinct texts of the ranges.
        range_of: per kernel the index into `ranges` of the innermost range around its launch; -1 none.
        duration_ns: kernel durations.
    """
    ids = {op.id for _, op in model.places()}
    known = [_in_model(read_module(text), ids) for text in ranges]
    named = np.array([module is not None for module in known] + [False], bool)[range_of]
    if not named.any():
        return join
    labels = join.labels
    rows = np.flatnonzero(named & (labels.step >= 0) & (labels.op >= 0))
    wrong = rows[~_agrees(labels, known, range_of, rows)]
    whole = int(duration_ns[rows].sum())
    share = int(duration_ns[wrong].sum()) / whole if whole else 0.0
    labels = _overruled(labels, model, known, range_of, wrong)
    covered = whole / max(int(duration_ns[labels.step >= 0].sum()), 1)
    note = Diagnostic(
        "nvtx_modules",
        "info" if share < 0.02 else "warning",
        f"NVTX ranges name the module of {units.percent(covered)} of the kernel time; the join by sequence "
        f"disagreed on {units.percent(share)} of that, and the ranges were followed.",
    )
    return replace(join, labels=labels, diagnostics=(*join.diagnostics, note))


def names_module(texts: Iterable[str], model: StepModel) -> bool:
    """True where one of the texts names a module that serves an op of the model."""
    ids = {op.id for _, op in model.places()}
    return any(_in_model(read_module(text), ids) is not None for text in texts)


def _in_model(module: Module | None, ids: set[str]) -> Module | None:
    """The module with those of its ops that the model has; None where it has none."""
    if module is None:
        return None
    ops = tuple(op for op in module.ops if op in ids)
    return replace(module, ops=ops) if ops else None


def _agrees(labels: Labels, known: Sequence[Module | None], range_of: Ints, rows: Ints) -> Bools:
    """True where a kernel's label holds an op of its module, and its layer is the module's."""
    ops = len(labels.op_labels) + 1
    unique, inverse = np.unique(range_of[rows] * ops + labels.op[rows], return_inverse=True)
    same = []
    layers = []
    for text, op in zip((unique // ops).tolist(), (unique % ops).tolist(), strict=True):
        module = known[text]
        assert module is not None
        same.append(bool(set(labels.op_labels[op].split("+")) & set(module.ops)))
        layers.append(module.layer)
    inverse = inverse.reshape(-1)
    layer = np.array(layers or [0])[inverse]
    result: Bools = np.array(same or [True], bool)[inverse] & ((layer < 0) | (layer == labels.layer[rows]))
    return result


def _overruled(
    labels: Labels, model: StepModel, known: Sequence[Module | None], range_of: Ints, rows: Ints
) -> Labels:
    """Kernels with the op and layer of their module, where the join knows a label and a place for it."""
    if not len(rows):
        return labels
    codes = {label: code for code, label in enumerate(labels.op_labels)}
    places = {bundle: index for index, bundle in enumerate(labels.bundles)}
    table = np.full((len(known), 3), -1, np.int64)
    for text, module in enumerate(known):
        if module is None:
            continue
        bundle = places.get(_place(model, module.ops[0], module.layer))
        if module.ops[0] in codes and bundle is not None:
            table[text] = codes[module.ops[0]], module.layer, bundle
    op, layer, bundle_of = table[range_of[rows]].T
    placed = op >= 0
    there = rows[placed]
    new = replace(
        labels,
        layer=narrow(labels.layer, int(table[:, 1].max())).copy(),
        belief=narrow(labels.belief, len(labels.beliefs)).copy(),
        beliefs=np.append(labels.beliefs, 1.0),
    )
    new.op[rows], new.bundle[rows], new.executions[rows] = op, bundle_of, 0
    new.layer[there], new.belief[there] = layer[placed], len(labels.beliefs)
    # One that follows another kernel of the same op and layer continues it.
    before = np.maximum(there - 1, 0)
    follows = (there > 0) & (new.op[before] == op[placed]) & (new.layer[before] == layer[placed])
    new.executions[there] = ~follows
    return new


def _place(model: StepModel, op_id: str, layer: int) -> tuple[tuple[str, int], ...]:
    """The place of an op in a layer (-1: head or tail); empty where the model has none there."""
    regions = (
        [("layer", model.kinds[model.layers[layer]])]
        if 0 <= layer < len(model.layers)
        else [("head", model.head), ("tail", model.tail)]
    )
    for region, ops in regions:
        for position, op in enumerate(ops):
            if op.id == op_id:
                return ((region, position),)
    return ()
