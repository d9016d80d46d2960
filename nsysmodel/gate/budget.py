"""Budget files: what a run may take at most, in YAML, checked before anything is measured."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nsysmodel import units
from nsysmodel.errors import ModelError, NsysModelError
from nsysmodel.model.documents import Document, parse_yaml

MOST_BYTES = 1_000_000
ANY = "*"
"""The key of `ops` that stands for every op without limits of its own."""


class BudgetError(NsysModelError):
    """A budget file is wrong."""

    default_hint = "docs/gate.md shows a budget with every key."


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of an op or of the step; None where there is none.

    `max_ns` is a mean per step; `max_ratio` is measured over floor.
    """

    max_ns: float | None = None
    max_ratio: float | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """A budget file. Shares are 0 to 1; `lines` are those of the file, for annotations."""

    name: str
    step: Limits = Limits()
    ops: Mapping[str, Limits] = field(default_factory=dict)
    min_coverage: float | None = None
    max_gap_share: float | None = None
    max_unmodeled_share: float | None = None
    lines: Mapping[str, int] = field(default_factory=dict)

    @property
    def needs_model(self) -> bool:
        """True where a limit can only be judged against a model."""
        ratios = self.step.max_ratio is not None or self.min_coverage is not None
        return bool(ratios or self.ops or self.max_unmodeled_share is not None)


def _time(value: Any) -> Any:
    if isinstance(value, str):
        try:
            return units.parse_time(value)
        except units.UnitError as error:
            raise ValueError(error.message) from None
    return value


def _share(value: Any) -> Any:
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            return float(value.strip()[:-1]) / 100
        except ValueError:
            raise ValueError(f"{value!r} is no share such as 15% or 0.15") from None
    return value


Time = Annotated[float, BeforeValidator(_time), Field(gt=0, allow_inf_nan=False)]
Ratio = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, BeforeValidator(_share), Field(ge=0, le=1)]


class _Limits(BaseModel):
    model_config = ConfigDict(extra="forbid")
    max_ns: Time | None = None
    max_ratio: Ratio | None = None


class _Budget(BaseModel):
    model_config = ConfigDict(extra="forbid")
    step: _Limits = _Limits()
    ops: dict[str, _Limits] = {}
    min_coverage: Share | None = None
    max_gap_share: Share | None = None
    max_unmodeled_share: Share | None = None


def load_budget(path: Path) -> Budget:
    """A budget from its file.

    Raises:
        BudgetError: it cannot be read, or a key or value is wrong; file and line are named.
    """
    try:
        with path.open("rb") as stream:
            raw = stream.read(MOST_BYTES + 1)
        text = raw.decode("utf-8-sig")
    except OSError as error:
        raise BudgetError(f"{path} cannot be read: {error.strerror}.", "Check the path.") from None
    except UnicodeDecodeError:
        raise BudgetError(f"{path} is not text.") from None
    if len(raw) > MOST_BYTES:
        raise BudgetError(f"{path} is larger than 1 MB, which no budget is.")
    try:
        document = parse_yaml(text, str(path))
    except ModelError as error:
        raise BudgetError(error.message) from None
    return _checked(document)


def _checked(document: Document) -> Budget:
    if not isinstance(document.data, dict) or not document.data:
        raise BudgetError(f"{document.name}: a budget is a mapping of limits, and this is none.")
    try:
        read = _Budget.model_validate(document.data)
    except ValidationError as error:
        raise _error(document, error) from None
    return Budget(
        name=document.name,
        step=Limits(**read.step.model_dump()),
        ops={name: Limits(**limits.model_dump()) for name, limits in read.ops.items()},
        min_coverage=read.min_coverage,
        max_gap_share=read.max_gap_share,
        max_unmodeled_share=read.max_unmodeled_share,
        lines={".".join(map(str, path)): line for path, line in document.lines.items()},
    )


def _error(document: Document, error: ValidationError) -> BudgetError:
    first = error.errors()[0]
    path = tuple(first["loc"])
    where = f"{document.where(path)}: {'.'.join(map(str, path)) or 'the file'}"
    if first["type"] == "extra_forbidden":
        known = list((_Limits if path[0] in ("step", "ops") else _Budget).model_fields)
        close = difflib.get_close_matches(str(path[-1]), known, n=1)
        told = f" Did you mean {close[0]}?" if close else f" Known are {', '.join(known)}."
        return BudgetError(f"{where}: there is no such limit.{told}")
    message = str(first["msg"]).removeprefix("Value error, ")
    return BudgetError(f"{where}: {message[:1].lower()}{message[1:]}".rstrip(".") + ".")
