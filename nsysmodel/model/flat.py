"""Flat models: kernels known by name, with costs evaluated per launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nsysmodel.errors import ModelError
from nsysmodel.model import expressions
from nsysmodel.model.documents import Document
from nsysmodel.model.patterns import regular_expression
from nsysmodel.model.schema import Kernel, ModelFile
from nsysmodel.model.spec import FlatSpec
from nsysmodel.model.types import ExpectedKernel, FlatModel
from nsysmodel.theory import formats
from nsysmodel.workload import WorkloadRequest

IN_FLIGHT = ("threads", "bytes_per_thread", "latency")
"""Expressions of a zero-copy entry beside its bytes."""
LAUNCH = ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")


def spec(file: ModelFile, document: Document, name: str, source: str) -> FlatSpec:
    """A flat model from its file.

    Raises:
        ModelError: naming file, line and field.
    """
    parameters: dict[str, float] = {}
    for parameter, text in file.parameters.items():
        path = ("parameters", parameter)
        if parameter in LAUNCH:
            raise document.error(path, "this name stands for the launch.", f"Taken: {', '.join(LAUNCH)}.")
        try:
            parameters[parameter] = expressions.parse(text, frozenset(parameters))(parameters)
        except ModelError as error:
            raise document.error(path, error.message, error.hint) from None
    known = frozenset((*parameters, *LAUNCH))
    kernels: list[ExpectedKernel] = []
    for index, entry in enumerate(file.kernels or ()):
        values = {"pattern": entry.pattern, "flop": entry.flop, "bytes": entry.bytes, "dtype": entry.dtype}
        given = {name: text for name in IN_FLIGHT if (text := getattr(entry, name)) is not None}
        _check_form(document, index, entry, given)
        for field, value in (values | given).items():
            try:
                _check(field, value, known)
            except ModelError as error:
                raise document.error(("kernels", index, field), error.message, error.hint) from None
        if any(entry.name == other.name for other in kernels):
            problem = f"the name {entry.name!r} is given twice."
            raise document.error(
                ("kernels", index, "name"), problem, "Each entry is an op with its own name."
            )
        engine = formats.parse(entry.dtype).engine()
        kernels.append(
            ExpectedKernel(
                entry.name, entry.pattern, entry.flop, entry.bytes, engine, entry.kind or "",
                given.get("threads", ""), given.get("bytes_per_thread", "16" if entry.kind else ""),
                given.get("latency", ""), entry.link or "",
            )
        )  # fmt: skip
    if not kernels:
        raise document.error(
            ("kernels",), "the list is empty.", "Add an entry with name, pattern, flop, bytes."
        )
    defaults = WorkloadRequest(**file.defaults.model_dump())
    model = FlatModel(name, source, parameters, tuple(kernels))
    return FlatSpec(name, source, model, defaults, file.notes)


def _check_form(document: Document, index: int, entry: Kernel, given: Mapping[str, str]) -> None:
    """A zero-copy entry says what it keeps in flight; another one does not.

    Raises:
        ModelError: a field is missing, or belongs to the other form.
    """
    if entry.kind is None:
        extra = [*given, *(["link"] if entry.link else [])]
        if extra:
            problem = "only an entry with kind: zero_copy has this field."
            raise document.error(("kernels", index, extra[0]), problem, "Add kind: zero_copy, or remove it.")
        return
    for field in ("threads", "latency"):
        if field not in given:
            problem = f"kind: zero_copy needs {field}."
            hint = "threads that wait for a load at once; latency of a load in ns; bytes_per_thread or 16."
            raise document.error(("kernels", index, "kind"), problem, hint)


def _check(field: str, value: str, known: frozenset[str]) -> None:
    if field == "pattern":
        regular_expression(value)
    elif field == "dtype":
        formats.parse(value)
    else:
        expressions.parse(value, known)


def evaluate(model: FlatModel, entry: ExpectedKernel, launch: Mapping[str, Any]) -> tuple[Any, Any]:
    """FLOP and DRAM bytes of one launch, or of many where `launch` holds arrays.

    Args:
        model: the model whose parameters hold.
        entry: one of its kernels.
        launch: `grid_x` … `block_z`, numbers or equally long numpy arrays.

    Raises:
        ModelError: an expression has no value, or a negative one.

    >>> kernel = ExpectedKernel("gemm", "gemm", "2*m*n*k", "4*(m*k + k*n + m*n)", "fp32")
    >>> model = FlatModel("bench", "", {"m": 64, "n": 64, "k": 64}, (kernel,))
    >>> evaluate(model, kernel, {"grid_x": 1})
    (524288, 49152)
    """
    return _value(model, entry, "flop", launch), _value(model, entry, "bytes", launch)


def in_flight(model: FlatModel, entry: ExpectedKernel, launch: Mapping[str, Any]) -> tuple[Any, Any]:
    """Bytes in flight and latency in ns of a zero-copy entry; arguments and errors as `evaluate`.

    >>> gather = ExpectedKernel("gather", "gather", "0", "9437184", "bf16", "zero_copy", "8192", "16", "596")
    >>> in_flight(FlatModel("bench", "", {}, (gather,)), gather, {})
    (131072, 596)
    """
    threads, each = (_value(model, entry, name, launch) for name in ("threads", "bytes_per_thread"))
    return threads * each, _value(model, entry, "latency", launch)


def _value(model: FlatModel, entry: ExpectedKernel, field: str, launch: Mapping[str, Any]) -> Any:
    text = str(getattr(entry, field))
    value = expressions.parse(text)({**model.parameters, **launch})
    wrong = value < 0
    if wrong.any() if hasattr(wrong, "any") else wrong:
        raise ModelError(f"{entry.name}: {field} is negative.", f"The expression is {text!r}.")
    return value
