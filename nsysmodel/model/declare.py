"""Ops as a model file declares them, checked and with their expressions parsed."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nsysmodel.errors import ModelError
from nsysmodel.model import expressions, schema
from nsysmodel.model.documents import Document, Path_, parse_yaml
from nsysmodel.model.expressions import Expression
from nsysmodel.model.kinds import CLASSES, KINDS
from nsysmodel.model.patterns import regular_expression
from nsysmodel.theory import formats
from nsysmodel.theory.ops.links import LINKS

WORKLOAD_NAMES = (
    "tokens",
    "sequences",
    "new_tokens",
    "context",
    "length",
    "rows",
    "routed_tokens",
    "expert_rows",
    "tp",
    "ep",
    "dp",
    "ranks",
    "distinct",
    "quantises",
    "absorbed",
    "indexes",
    "prefill",
    "weight_bytes",
    "act_bytes",
    "kv_bytes",
)
RANK_NAMES = (
    "rank_heads",
    "rank_kv_heads",
    "rank_index_heads",
    "rank_intermediate",
    "rank_vocab",
    "rank_experts",
    "rank_expert_width",
    "rank_shared_width",
    "rank_linear_key_heads",
    "rank_linear_value_heads",
    "rank_mamba_heads",
    "rank_mamba_groups",
)
TEXT_FIELDS = ("dtype", "attention", "router_dtype", "state_dtype", "config")
_LIST_FIELDS = ("mixers", "ffns", "variants", "quantization")
ARCHITECTURE_NAMES = tuple(
    name for name in schema.Architecture.model_fields if name not in (*TEXT_FIELDS, *_LIST_FIELDS)
)
NAMES = frozenset((*ARCHITECTURE_NAMES, *RANK_NAMES, *WORKLOAD_NAMES))


@dataclass(frozen=True, slots=True)
class OpDecl:
    """A declared op; costs follow when a workload is known.

    Attributes:
        id, classes, pattern, optional: as in `Op`.
        kind: a name of `KINDS`, or `free` for own expressions.
        numbers: parameters of the kind; for `free`: `flop`, `bytes`, `activation_bytes`.
        when: condition; None for always.
        modules: checkpoint modules with {i} for the layer.
        weight: fixed weight format, or the architecture field that has it; empty for the modules'.
        dtype: engine of a free op's FLOP; empty for the model's.
        algorithm: of a collective; empty for the bound.
        link: of a kernel that reads over a link; empty for the host's.
        where: `file:line: field` for errors.
    """

    id: str
    kind: str
    classes: tuple[str, ...]
    numbers: Mapping[str, Expression] = field(default_factory=dict)
    when: Expression | None = None
    modules: tuple[str, ...] = ()
    weight: str = ""
    dtype: str = ""
    algorithm: str = ""
    link: str = ""
    pattern: str | None = None
    optional: bool = False
    where: str = ""


def declare(
    entries: Iterable[schema.Operation | schema.Block],
    document: Document,
    path: Path_,
    names: frozenset[str] = NAMES,
) -> tuple[OpDecl, ...]:
    """The ops of a list in a model file, blocks expanded.

    Raises:
        ModelError: naming file, line, field and the accepted values.
    """
    result: list[OpDecl] = []
    for index, entry in enumerate(entries):
        here = (*path, index)
        if isinstance(entry, schema.Block):
            known = blocks()
            if entry.block not in known:
                problem = f"there is no block {entry.block!r}."
                raise document.error((*here, "block"), problem, f"Accepted: {', '.join(known)}.")
            result.extend(known[entry.block])
        else:
            result.append(_Reader(document, here, names).op(entry))
    return tuple(result)


class _Blocks(Mapping[str, tuple[OpDecl, ...]]):
    """The bundled blocks by name, each declared when it is asked for: a model needs few of them."""

    def __init__(self) -> None:
        text = importlib.resources.files("nsysmodel.model").joinpath("blocks.yaml").read_text("utf-8")
        self._document = parse_yaml(text, "blocks.yaml")
        self._known: dict[str, tuple[OpDecl, ...]] = {}

    def __getitem__(self, name: str) -> tuple[OpDecl, ...]:
        if name not in self._known:
            entries = [schema.Operation(**entry) for entry in self._document.data[name]]
            self._known[name] = declare(entries, self._document, (name,))
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._document.data)

    def __len__(self) -> int:
        return len(self._document.data)


@functools.cache
def blocks() -> Mapping[str, tuple[OpDecl, ...]]:
    """The bundled blocks by name."""
    return _Blocks()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Checks one declared op."""

    document: Document
    path: Path_
    names: frozenset[str]

    def op(self, entry: schema.Operation) -> OpDecl:
        """The op with its expressions parsed."""
        extra: dict[str, Any] = dict(entry.model_extra or {})
        free = entry.kind is None
        if free and entry.flop is None and entry.bytes is None:
            hint = f"Kinds: {', '.join(KINDS)}; or give flop: and bytes:."
            raise self.error("kind", "this field is missing.", hint)
        if not free and entry.kind not in KINDS:
            near = difflib.get_close_matches(str(entry.kind), KINDS, 2)
            hint = f"Did you mean {', '.join(near)}? " if near else ""
            problem = f"there is no op kind {entry.kind!r}."
            raise self.error("kind", problem, f"{hint}Accepted: {', '.join(KINDS)}.")
        weight, algorithm, link = extra.pop("weight", None), "", ""
        if free:
            numbers = self._free(entry, extra)
        else:
            kind = KINDS[str(entry.kind)]
            if kind.takes_algorithm:
                algorithm = self._choice(
                    extra.pop("algorithm", ""), "algorithm", ("nvls", "ring", "one_shot")
                )
            if kind.takes_link:
                link = self._choice(extra.pop("link", ""), "link", LINKS)
            if weight is not None and not kind.takes_weight:
                extra["weight"] = weight
                weight = None
            numbers = self._numbers(entry, extra)
        return OpDecl(
            id=entry.id,
            kind="free" if free else str(entry.kind),
            classes=self._classes(entry),
            numbers=numbers,
            when=None if entry.when is None else self.expression("when", entry.when),
            modules=(entry.id,) if entry.modules is None else entry.modules,
            weight=self._format(weight),
            dtype=self._engine(entry.dtype),
            algorithm=algorithm,
            link=link,
            pattern=self._pattern(entry.pattern),
            optional=entry.optional,
            where=f"{self.document.where(self.path)}: {entry.id}",
        )

    def error(self, name: str, problem: str, hint: str = "") -> ModelError:
        """An error at a field of this op."""
        return self.document.error((*self.path, name), problem, hint)

    def expression(self, name: str, text: Any) -> Expression:
        """The expression of a field."""
        try:
            return expressions.parse("1" if text is True else "0" if text is False else text, self.names)
        except ModelError as error:
            raise self.error(name, error.message, error.hint) from None

    def _free(self, entry: schema.Operation, extra: Mapping[str, Any]) -> dict[str, Expression]:
        """Expressions of an op with formulas of its own."""
        if extra:
            accepted = "flop, bytes, activation_bytes, dtype, when, classes, pattern, optional"
            problem = "an op without kind has no such field."
            raise self.error(next(iter(extra)), problem, f"Accepted: {accepted}.")
        given = {"flop": entry.flop, "bytes": entry.bytes, "activation_bytes": entry.activation_bytes}
        return {name: self.expression(name, text) for name, text in given.items() if text is not None}

    def _numbers(self, entry: schema.Operation, extra: Mapping[str, Any]) -> dict[str, Expression]:
        """Parameters of a built-in kind, all known and none missing."""
        kind = KINDS[str(entry.kind)]
        given = dict(extra)
        if entry.bytes is not None:
            given["bytes"] = entry.bytes
        if entry.flop is not None:
            given["flop"] = entry.flop
        accepted = ", ".join(
            f"{name}{'' if required else ' (optional)'}" for name, required in kind.numbers.items()
        )
        for name in given:
            if name not in kind.numbers:
                problem = f"the kind {entry.kind} has no such parameter."
                raise self.error(name, problem, f"Accepted: {accepted}.")
        for name, required in kind.numbers.items():
            if required and name not in given:
                raise self.error(
                    name, f"the kind {entry.kind} needs this parameter.", f"Accepted: {accepted}."
                )
        return {name: self.expression(name, text) for name, text in given.items()}

    def _classes(self, entry: schema.Operation) -> tuple[str, ...]:
        if entry.classes is None:
            return KINDS[entry.kind].classes if entry.kind else ("other",)
        for name in entry.classes:
            self._choice(name, "classes", CLASSES)
        return entry.classes

    def _choice(self, value: Any, name: str, accepted: tuple[str, ...]) -> str:
        if value and value not in accepted:
            raise self.error(name, f"{value!r} is not accepted.", f"Accepted: {', '.join(accepted)}.")
        return str(value or "")

    def _format(self, weight: Any) -> str:
        if weight is None or weight in TEXT_FIELDS:
            return str(weight or "")
        try:
            return formats.parse(str(weight)).name
        except ModelError as error:
            raise self.error("weight", error.message, error.hint) from None

    def _engine(self, dtype: str | None) -> str:
        if dtype is None:
            return ""
        try:
            return formats.parse(dtype).engine()
        except ModelError as error:
            raise self.error("dtype", error.message, error.hint) from None

    def _pattern(self, pattern: str | None) -> str | None:
        if pattern is not None:
            try:
                regular_expression(pattern)
            except ModelError as error:
                raise self.error("pattern", error.message, error.hint) from None
        return pattern
