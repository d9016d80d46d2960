"""What shows whether to believe the join: learned layers, heat of the layers, what nothing claims."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from nsysmodel.join.types import Bools, Join
from nsysmodel.join.vocabulary import Vocabulary
from nsysmodel.judge.cases import Case
from nsysmodel.judge.ops import PriceList
from nsysmodel.model.types import StepModel
from nsysmodel.result import LayerHeat, LearnedKernel, LearnedLayer, MissingRow, UnmodeledRow
from nsysmodel.theory.floor import Floor


def layer_heat(case: Case, join: Join, model: StepModel, floors: dict[int, Floor]) -> tuple[LayerHeat, ...]:
    """Measured (claimed kernels) and floor of each layer, mean per used step.

    `floors` holds the floor of each op by `id(op)`.
    """
    used = [step.index for step in join.used]
    labels = join.labels
    mask = np.isin(labels.step, used) & (labels.layer >= 0) & (labels.op >= 0)
    duration = case.kernels["duration_ns"].to_numpy(np.int64)
    sums = np.bincount(labels.layer[mask], weights=duration[mask], minlength=len(model.layers))
    return tuple(
        LayerHeat(
            layer=index,
            kind=kind,
            measured_ns=float(sums[index]) / max(len(used), 1),
            floor_ns=sum(floors[id(op)].ns for op in model.kinds[kind]),
        )
        for index, kind in enumerate(model.layers)
    )


def learned_layers(case: Case, join: Join, model: StepModel, prices: PriceList) -> tuple[LearnedLayer, ...]:
    """One layer of each kind from the middle of the model, in the order in which its kernels ran."""
    used = join.used
    if not used:
        return ()
    step = used[len(used) // 2].index
    result = []
    for kind in model.kinds:
        places = [index for index, name in enumerate(model.layers) if name == kind]
        if places:
            layer = places[len(places) // 2]
            result.append(LearnedLayer(kind, layer, _kernels(case, join, step, layer, prices)))
    for name, rows in _ends(join, step):
        result.append(LearnedLayer(name, None, _lines(case, join, rows, -1, prices)))
    return tuple(layer for layer in result if layer.kernels)


def _kernels(case: Case, join: Join, step: int, layer: int, prices: PriceList) -> tuple[LearnedKernel, ...]:
    rows = np.flatnonzero((join.labels.step == step) & (join.labels.layer == layer))
    return _lines(case, join, rows, layer, prices)


def _ends(join: Join, step: int) -> list[tuple[str, np.ndarray]]:
    """Rows of head and tail of a step."""
    rows = np.flatnonzero(join.labels.step == step)
    inner = np.flatnonzero(join.labels.layer[rows] >= 0)
    if not len(inner):
        return []
    return [("head", rows[: inner[0]]), ("tail", rows[inner[-1] + 1 :])]


def _lines(
    case: Case, join: Join, rows: np.ndarray, layer: int, prices: PriceList
) -> tuple[LearnedKernel, ...]:
    frame = case.kernels.iloc[rows]
    lines = []
    for row, kernel in zip(rows.tolist(), frame.to_dict("records"), strict=True):
        code = int(join.labels.op[row])
        label = join.labels.op_labels[code] if code >= 0 else None
        bundle = int(join.labels.bundle[row])
        priced = prices.at(join.labels.bundles[bundle], layer) if bundle >= 0 else None
        lines.append(
            LearnedKernel(
                name=str(kernel["name"]),
                grid=f"{kernel['grid_x']}×{kernel['grid_y']}×{kernel['grid_z']}",
                stream=int(kernel["stream"]),
                op=label,
                median_ns=int(kernel["duration_ns"]),
                floor_ns=priced.floor.ns if priced and priced.judged else None,
                confidence=round(float(join.labels.beliefs[join.labels.belief[row]]), 3),
            )
        )
    return tuple(lines)


def unmodeled_rows(case: Case, join: Join, inside: Bools, vocabulary: Vocabulary) -> tuple[UnmodeledRow, ...]:
    """Kernels that no op claims, by name, most time first."""
    mask = inside & (join.labels.op < 0)
    frame = case.kernels[mask]
    if not len(frame):
        return ()
    whole = int(case.kernels["duration_ns"].to_numpy()[inside].sum())
    in_layer = (join.labels.layer[mask] >= 0).astype(float)
    groups = frame.assign(in_layer=in_layer).groupby("name", observed=True, sort=False)
    table = groups.agg(size=("duration_ns", "size"), total=("duration_ns", "sum"), layer=("in_layer", "mean"))
    table = table.sort_values(["total", "size"], ascending=False, kind="stable")
    return tuple(
        UnmodeledRow(
            name=str(name),
            instances=int(row["size"]),
            total_ns=int(row["total"]),
            share=int(row["total"]) / whole if whole else 0.0,
            kernel_class=vocabulary.classify(str(name)).kernel_class,
            layer_share=round(float(row["layer"]), 3),
            model_line=model_line(str(name)),
        )
        for name, row in zip(table.index, table.to_dict("records"), strict=True)
    )


def model_line(name: str) -> str:
    """An op entry for a model file that claims kernels of this name; its work is for the user to fill in.

    >>> model_line("void my::check_kernel<float>(float const*)")
    "- {id: check_kernel, pattern: '\\\\bcheck_kernel\\\\b', flop: 0, bytes: 0, dtype: bf16}"
    """
    base = re.split(r"[<(]", name.removeprefix("void "))[0].split("::")[-1].strip() or "kernel"
    ident = re.sub(r"\W+", "_", base)[:60]
    pattern = rf"\b{re.escape(base[:60])}\b" if len(base) <= 60 else rf"\b{re.escape(base[:60])}"
    quoted = pattern.replace("'", "''")
    return f"- {{id: {ident}, pattern: '{quoted}', flop: 0, bytes: 0, dtype: bf16}}"


def missing_rows(
    join: Join, model: StepModel, floors: dict[int, Floor], labels: Sequence[str]
) -> tuple[MissingRow, ...]:
    """Ops that no kernel serves, with what they would cost at least in a step."""
    fused_in = {op_id: label for label in labels if "+" in label for op_id in label.split("+")}
    rows = []
    for op_id in join.missing:
        if op_id in fused_in:
            continue
        places = [op for _, op in model.places() if op.id == op_id]
        floor_ns = sum(floors[id(op)].ns for op in places)
        rows.append(MissingRow(op_id, len(places), floor_ns))
    return tuple(rows)
