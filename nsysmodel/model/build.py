"""From a declared model and a workload to ops with costs on one rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nsysmodel.errors import ModelError
from nsysmodel.hardware.types import Hardware
from nsysmodel.model import notes as model_notes
from nsysmodel.model.declare import TEXT_FIELDS, OpDecl
from nsysmodel.model.kinds import KINDS
from nsysmodel.model.quantization import QuantRules
from nsysmodel.model.shapes import rank_values
from nsysmodel.model.spec import LayeredSpec
from nsysmodel.model.types import Op, StepModel
from nsysmodel.theory import formats
from nsysmodel.theory.cost import Cost
from nsysmodel.theory.formats import Format
from nsysmodel.theory.ops.types import OpCost, Setting
from nsysmodel.workload import Sourced, Workload

NOT_WEIGHTS = ("embedding", "rope")
"""Kinds whose `weight_bytes` are rows of a table, not weights that a step must load."""


@dataclass(frozen=True, slots=True)
class _Built:
    """An op with what it says about the model."""

    op: Op
    cost: OpCost


def build(
    spec: LayeredSpec, workload: Workload, hardware: Hardware | None, distinct: float | None
) -> StepModel:
    """Ops with their costs; see `LayeredSpec.build`."""
    maker = _Maker.of(spec, workload, hardware, distinct or 0.0)
    kinds, layers = _layer_kinds(spec, maker)
    head = maker.ops(spec.head, {}, 0)
    tail = maker.ops(spec.tail, {}, 0)
    placed = [*head, *(item for kind in layers for item in kinds[kind]), *tail]
    parameters, active = spec.counts
    return StepModel(
        name=spec.name,
        source=spec.source,
        workload=workload,
        head=tuple(item.op for item in head),
        kinds={name: tuple(item.op for item in items) for name, items in kinds.items()},
        layers=layers,
        tail=tuple(item.op for item in tail),
        parameters=parameters,
        active_parameters=active,
        weights_once_bytes=sum(
            item.op.cost.weight_bytes for item in placed if item.op.kind not in NOT_WEIGHTS
        ),
        memory_bytes=sum(item.cost.resident_bytes + item.cost.state_bytes for item in placed)
        - _tied(spec, placed),
        notes=(*spec.notes, *model_notes.of_step(spec, workload, maker.setting, maker.rules)),
    )


def count_parameters(spec: LayeredSpec) -> tuple[float, float]:
    """Parameters of the whole model, and those that one token uses (both with the embedding table)."""
    one = Sourced(1, "model")
    text = Sourced("", "model")
    workload = Workload(
        Sourced("decode", "model"), one, one, one, text, Sourced("none", "model"), text, one, one, one,
        Sourced("last", "model"),
    )  # fmt: skip
    maker = _Maker.of(spec, workload, None, 0.0)
    total = active = 0.0
    counted: dict[str, list[_Built]] = {}
    for name in spec.layers:
        if name not in counted:
            counted[name] = maker.ops(spec.kinds[name], spec.kind_values[name], 0)
    ends = [*maker.ops(spec.head, {}, 0), *maker.ops(spec.tail, {}, 0)]
    for item in [*ends, *(item for name in spec.layers for item in counted[name])]:
        if item.op.id == "lm_head" and spec.values["tied_embeddings"]:
            continue
        total += item.cost.parameters
        active += item.cost.active_parameters
    return total, active


def _tied(spec: LayeredSpec, placed: list[_Built]) -> float:
    """Bytes that the LM head shares with the embedding table."""
    if not spec.values["tied_embeddings"]:
        return 0.0
    return sum(item.cost.resident_bytes for item in placed if item.op.id == "lm_head")


def _layer_kinds(spec: LayeredSpec, maker: _Maker) -> tuple[dict[str, list[_Built]], tuple[str, ...]]:
    """Layer kinds, split where layers of one kind differ in the formats of their weights."""
    built: dict[tuple[str, tuple[str, ...]], str] = {}
    kinds: dict[str, list[_Built]] = {}
    layers: list[str] = []
    for index, name in enumerate(spec.layers):
        if name in kinds and not maker.rules.by_place:
            # Nothing tells two layers of one kind apart.
            layers.append(name)
            continue
        formats_here = tuple(maker.format_name(decl, index) for decl in spec.kinds[name])
        key = (name, formats_here)
        if key not in built:
            others = sum(1 for other, _ in built if other == name)
            built[key] = name if not others else f"{name}.{others + 1}"
            kinds[built[key]] = maker.ops(spec.kinds[name], spec.kind_values[name], index)
        layers.append(built[key])
    return kinds, tuple(layers)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Evaluates declared ops for one workload."""

    spec: LayeredSpec
    setting: Setting
    rules: QuantRules
    sizes: Mapping[str, float]
    tp: int
    ep: int
    dp: int

    @classmethod
    def of(cls, spec: LayeredSpec, workload: Workload, hardware: Hardware | None, distinct: float) -> _Maker:
        rules = active_rules(spec.quantization, workload.quant.value)
        activation = formats.parse(workload.dtype.value or spec.dtype)
        kv = formats.parse(workload.kv_dtype.value or rules.kv or activation.name)
        state = formats.parse(str(spec.values["state_dtype"] or activation.name))
        setting = Setting(
            workload.phase.value,
            workload.batch.value,
            workload.tokens.value,
            workload.context.value,
            activation,
            kv,
            state,
            None if hardware is None else set(hardware.peak_flop_per_s),
        )
        tp, ep = workload.tensor_parallel.value, workload.expert_parallel.value
        dp = workload.data_parallel.value
        last = workload.phase.value == "prefill" and workload.logits.value == "last"
        sizes: dict[str, float] = {
            "tokens": setting.tokens,
            "sequences": setting.sequences,
            "new_tokens": setting.new_tokens,
            "context": setting.context,
            "length": setting.length,
            "rows": setting.sequences if last else setting.tokens,
            "routed_tokens": setting.tokens * dp,
            "tp": tp,
            "ep": ep,
            "dp": dp,
            "distinct": distinct,
            "prefill": int(setting.phase == "prefill"),
            "act_bytes": activation.bytes,
            "kv_bytes": kv.bytes,
        }
        return cls(spec, setting, rules, sizes, tp, ep, dp)

    def format_name(self, decl: OpDecl, layer: int) -> str:
        """Name of the format of an op's weights in a layer, empty for the model's own."""
        if decl.weight:
            name = self.spec.values[decl.weight] if decl.weight in TEXT_FIELDS else decl.weight
            return str(name or "")
        kind = KINDS.get(decl.kind)
        if kind is None or not kind.takes_weight:
            return ""
        inside = not decl.modules or decl.modules[0] == "lm_head"
        names = decl.modules if inside else tuple(f"layers.{layer}.{module}" for module in decl.modules)
        return self.rules.format_of(decl.id, names)

    def ops(self, decls: tuple[OpDecl, ...], own: Mapping[str, Any], layer: int) -> list[_Built]:
        """The ops of a list that exist under this workload."""
        values = {**self.spec.values, **own}
        known = {name: value for name, value in values.items() if value is not None}
        names: dict[str, Any] = {**known, **self.sizes, **rank_values(values, self.tp, self.ep, self.dp)}
        names["expert_rows"] = self.sizes["routed_tokens"] * names["top_k"] / self.ep
        names["indexes"] = values.get("indexes", int(values["index_topk"] > 0))
        names["absorbed"] = int(self._absorbed(values))
        result = []
        for decl in decls:
            fmt = self._format(decl, layer)
            names["weight_bytes"] = (fmt or self.setting.activation).bytes
            names["quantises"] = int(self._quantises(fmt))
            try:
                if decl.when is not None and not decl.when(names):
                    continue
                result.append(self._op(decl, names, fmt))
            except ModelError as error:
                raise ModelError(f"{decl.where}: {error.message}", error.hint) from None
        return result

    def _absorbed(self, values: Mapping[str, Any]) -> bool:
        """MLA works on the latent in decode, and in prefill where an indexer leaves few entries."""
        if self.setting.phase == "decode":
            return True
        return bool(0 < values["index_topk"] < self.setting.length)

    def _format(self, decl: OpDecl, layer: int) -> Format | None:
        name = self.format_name(decl, layer)
        return formats.parse(name) if name else None

    def _quantises(self, fmt: Format | None) -> bool:
        """True where the product of this format reads activations that were converted for it."""
        if fmt is None or not fmt.activation_bytes:
            return False
        return self.setting.engine(fmt) != self.setting.engine()

    def _op(self, decl: OpDecl, names: Mapping[str, Any], fmt: Format | None) -> _Built:
        numbers = {name: expression(names) for name, expression in decl.numbers.items()}
        for name, value in numbers.items():
            if value < 0:
                raise ModelError(f"{name} is {value}, which is negative.")
        if decl.kind == "free":
            cost = self._free(decl, numbers)
        else:
            kind = KINDS[decl.kind]
            extra: dict[str, Any] = dict(numbers)
            if kind.takes_weight:
                extra["weight"] = fmt
            if decl.algorithm:
                extra["algorithm"] = decl.algorithm
            if decl.link:
                extra["link"] = decl.link
            cost = kind.cost(self.setting, **extra)
        op = Op(
            id=decl.id,
            kind=decl.kind,
            cost=cost.cost,
            classes=self._classes(decl),
            formula=cost.formula,
            optional=decl.optional,
            min_cost=cost.min_cost,
            pattern=decl.pattern,
            in_flight=cost.in_flight,
        )
        return _Built(op, cost)

    def _classes(self, decl: OpDecl) -> tuple[str, ...]:
        """Kernel classes with the one of this phase first."""
        if decl.classes[:2] == ("attention_decode", "attention_prefill") and self.setting.phase == "prefill":
            return ("attention_prefill", "attention_decode", *decl.classes[2:])
        return decl.classes

    def _free(self, decl: OpDecl, numbers: Mapping[str, Any]) -> OpCost:
        """An op with formulas of its own."""
        flop = float(numbers.get("flop", 0))
        engine = decl.dtype or self.setting.engine()
        moved, passed = float(numbers.get("bytes", 0)), float(numbers.get("activation_bytes", 0))
        cost = Cost({engine: flop} if flop else {}, moved, act_in_bytes=passed)
        formula = "; ".join(f"{name}: {expression.source}" for name, expression in decl.numbers.items())
        return OpCost(cost, formula, None, 0, 0, moved)


def active_rules(own: QuantRules, asked: str) -> QuantRules:
    """The model's formats with what the user asked for put over them."""
    if not asked:
        return own
    if asked == "none":
        return QuantRules()
    if own.format and (asked == own.format or own.format.startswith(f"{asked}_")):
        return own
    return replace(own, format=formats.parse(asked).name, modules=())
