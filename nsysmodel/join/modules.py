"""Ranges that name modules say which op a kernel serves: they come before names and order."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import numpy as np

from nsysmodel import units
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
    import yaml

    text = (resources.files("nsysmodel.join") / "data" / "modules.yaml").read_text("utf-8")
    data: dict[str, Any] = yaml.safe_load(text)
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
    _overrule(labels, model, known, range_of, wrong)
    covered = whole / max(int(duration_ns[labels.step >= 0].sum()), 1)
    note = Diagnostic(
        "nvtx_modules",
        "info" if share < 0.02 else "warning",
        f"NVTX ranges name the module of {units.percent(covered)} of the kernel time; the join by sequence "
        f"disagreed on {units.percent(share)} of that, and the ranges were followed.",
    )
    return replace(join, labels=labels, diagnostics=(*join.diagnostics, note))


def _in_model(module: Module | None, ids: set[str]) -> Module | None:
    """The module with those of its ops that the model has; None where it has none."""
    if module is None:
        return None
    ops = tuple(op for op in module.ops if op in ids)
    return replace(module, ops=ops) if ops else None


def _agrees(labels: Labels, known: Sequence[Module | None], range_of: Ints, rows: Ints) -> Bools:
    """True where a kernel's label holds an op of its module, and its layer is the module's."""
    keys = np.stack([range_of[rows], labels.op[rows]], axis=1)
    unique, inverse = np.unique(keys, axis=0, return_inverse=True)
    same = []
    layers = []
    for text, op in unique.tolist():
        module = known[text]
        assert module is not None
        same.append(bool(set(labels.op_labels[op].split("+")) & set(module.ops)))
        layers.append(module.layer)
    inverse = inverse.reshape(-1)
    layer = np.array(layers or [0])[inverse]
    result: Bools = np.array(same or [True], bool)[inverse] & ((layer < 0) | (layer == labels.layer[rows]))
    return result


def _overrule(
    labels: Labels, model: StepModel, known: Sequence[Module | None], range_of: Ints, rows: Ints
) -> None:
    """Give kernels the op and layer of their module, where the join knows a label and a place for it."""
    codes = {label: code for code, label in enumerate(labels.op_labels)}
    places = {bundle: index for index, bundle in enumerate(labels.bundles)}
    for row in rows.tolist():
        module = known[int(range_of[row])]
        assert module is not None
        op_id = module.ops[0]
        bundle = places.get(_place(model, op_id, module.layer))
        if op_id not in codes or bundle is None:
            labels.op[row], labels.bundle[row], labels.executions[row] = -1, -1, 0
            continue
        before = (
            labels.op[row - 1] == codes[op_id] and labels.layer[row - 1] == module.layer if row else False
        )
        labels.op[row], labels.layer[row], labels.bundle[row] = codes[op_id], module.layer, bundle
        labels.executions[row] = 0 if before else 1
        labels.confidence[row] = 1.0


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
