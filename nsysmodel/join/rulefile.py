"""Read files of classification rules: their schema, and errors that name file, line and field."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from nsysmodel.errors import NsysModelError

KernelClassName = Literal[
    "gemm", "moe_gemm", "attention_decode", "attention_prefill", "attention_combine", "norm", "rope",
    "kv_write", "activation", "router_topk", "moe_permute", "allreduce", "allgather", "alltoall",
    "embedding", "sampling", "quantize", "conv", "ssm", "elementwise", "reduce", "copy_cast",
    "memcpy_memset", "other",
]  # fmt: skip
KERNEL_CLASSES: tuple[str, ...] = get_args(KernelClassName)
Helper = Literal["", "reduction", "combine", "metadata", "workspace", "glue"]

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


BUNDLED = "bundled"
"""Marks the files of this package: their hundreds of expressions are compiled by a test, not by every run."""


class VocabularyError(NsysModelError):
    """A file of rules is missing, is no YAML, or has a field that is wrong."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Conditions(_Strict):
    """What a name must show; every condition that is given must hold.

    `base`, `namespace`, `template` and `anywhere` are regular expressions searched in that part of the
    normalised name. `word` is searched in the lower-case words of the base name and has to begin and
    end at a word's border. The `not_` forms must not be found.
    """

    base: str = ""
    namespace: str = ""
    template: str = ""
    anywhere: str = ""
    word: str = ""
    not_base: str = ""
    not_word: str = ""
    not_template: str = ""

    @field_validator(
        "base", "namespace", "template", "anywhere", "word", "not_base", "not_word", "not_template"
    )
    @classmethod
    def _is_regex(cls, value: str, info: ValidationInfo) -> str:
        import re

        if info.context == BUNDLED:
            return value
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        return value


class RuleModel(Conditions):
    """One rule: conditions, the class they prove, and what else is known then."""

    id: str = Field(min_length=1)
    kernel_class: KernelClassName = Field(alias="class")
    covers: tuple[str, ...] | None = None
    traits: tuple[str, ...] = ()
    helper: Helper = ""
    engine: str | None = None
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)


class TraitModel(Conditions):
    """A word that is added to kernels of some classes (all, where none is named) when it fits."""

    trait: str = Field(min_length=1)
    classes: tuple[KernelClassName, ...] = ()


class RuleFile(_Strict):
    """One file of the vocabulary, bundled or the user's."""

    engine: str = ""
    neighbours: tuple[str, ...] = ()
    weight_types: dict[int, str] = Field(default_factory=dict)
    rules: tuple[RuleModel, ...] = ()
    traits: tuple[TraitModel, ...] = ()


class IndexFile(_Strict):
    """The order of the bundled files, default ops of the classes, and the engines of namespaces."""

    order: tuple[str, ...]
    covers: dict[KernelClassName, tuple[str, ...]]
    engines: dict[str, str] = Field(default_factory=dict)


_FileT = TypeVar("_FileT", RuleFile, IndexFile)


def read_rules(path: Path) -> RuleFile:
    """Read and check a file of rules.

    Args:
        path: a YAML file.

    Raises:
        VocabularyError: with the file's name, line and field.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise VocabularyError(
            f"The file of rules {path.name} cannot be read: {reason}.", "Give the path of a YAML file."
        ) from None
    return parse_rules(text, path.name)


def parse_rules(text: str, name: str, *, context: str | None = None) -> RuleFile:
    """Check the text of a file of rules; `name` is what errors call it, `context` may be `BUNDLED`."""
    return _parse(text, name, RuleFile, context)


def parse_index(text: str, name: str) -> IndexFile:
    """Check the text of the index of bundled files."""
    return _parse(text, name, IndexFile)


def _parse(text: str, name: str, model: type[_FileT], context: str | None = None) -> _FileT:
    try:
        raw = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "the text cannot be parsed"
        raise VocabularyError(f"{name}{where}: this is no YAML ({problem}).", "Mend the file.") from None
    try:
        return model.model_validate(raw if raw is not None else {}, context=context)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"]) or "the whole file"
        line = _line_of(text, first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise VocabularyError(
            f"{name}, line {line}, field {field}: {message}.", "See docs/vocabulary.md for the fields."
        ) from None


def _line_of(text: str, location: tuple[int | str, ...]) -> int:
    """Return the line, from 1, where the deepest part of `location` that exists begins."""
    node = yaml.compose(text, Loader=_Loader)
    line = 1
    for part in location:
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            node = node.value[part]
        elif isinstance(node, yaml.MappingNode):
            found = [(key, value) for key, value in node.value if key.value == str(part)]
            if not found:
                break
            line, node = found[0][0].start_mark.line + 1, found[0][1]
            continue
        else:
            break
        line = node.start_mark.line + 1
    return line
