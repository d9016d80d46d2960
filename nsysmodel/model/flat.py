"""Flat models: kernels known by name, with costs evaluated per launch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nsysmodel.errors import ModelError
from nsysmodel.model import expressions
from nsysmodel.model.documents import Document
from nsysmodel.model.patterns import regular_expression
from nsysmodel.model.schema import ModelFile
from nsysmodel.model.spec import FlatSpec
from nsysmodel.model.types import ExpectedKernel, FlatModel
from nsysmodel.theory import formats
from nsysmodel.workload import WorkloadRequest

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
        for field, value in values.items():
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
        kernels.append(ExpectedKernel(entry.name, entry.pattern, entry.flop, entry.bytes, engine))
    if not kernels:
        raise document.error(
            ("kernels",), "the list is empty.", "Add an entry with name, pattern, flop, bytes."
        )
    defaults = WorkloadRequest(**file.defaults.model_dump())
    model = FlatModel(name, source, parameters, tuple(kernels))
    return FlatSpec(name, source, model, defaults, file.notes)


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
    names = {**model.parameters, **launch}
    result = []
    for field, text in (("flop", entry.flop), ("bytes", entry.bytes)):
        value = expressions.parse(text)(names)
        wrong = value < 0
        if wrong.any() if hasattr(wrong, "any") else wrong:
            raise ModelError(f"{entry.name}: {field} is negative.", f"The expression is {text!r}.")
        result.append(value)
    return result[0], result[1]
