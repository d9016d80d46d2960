"""Arithmetic of model files, parsed without ever running it as Python.

Allowed: numbers, names, + - * / // % **, comparisons, `and or not`, `a if condition else b`, and the
functions min, max, ceil, floor, log2, sqrt, abs, round. Size, depth and powers are bounded. Names may
stand for numpy arrays: then the result is an array.
"""

from __future__ import annotations

import ast
import difflib
import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from nsysmodel.errors import ModelError

MAX_LENGTH = 1000
MAX_NODES = 300
MAX_DEPTH = 40
MAX_POWER = 64
MAX_VALUE = 1e60

FUNCTIONS = ("min", "max", "ceil", "floor", "log2", "sqrt", "abs", "round")

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_ALLOWED = (
    ast.Expression,
    ast.Constant,
    ast.Name,
    ast.Load,
    ast.BinOp,
    ast.UnaryOp,
    ast.UAdd,
    ast.USub,
    ast.Not,
    ast.BoolOp,
    ast.And,
    ast.Or,
    ast.Compare,
    ast.IfExp,
    ast.Call,
    ast.Pow,
    *_BINARY,
    *_COMPARE,
)


@dataclass(frozen=True, slots=True)
class Expression:
    """A checked expression.

    Attributes:
        source: the text.
        names: names that it uses.
    """

    source: str
    names: frozenset[str]
    _tree: ast.expr

    def __call__(self, values: Mapping[str, Any]) -> Any:
        """The value with `values` for the names.

        Raises:
            ModelError: a name has no value, a division by zero, or a number out of bounds.
        """
        try:
            result = _value(self._tree, values)
        except ZeroDivisionError:
            raise ModelError(f"{self.source!r} divides by zero.", "Check the parameters it uses.") from None
        except (OverflowError, ValueError, TypeError) as error:
            raise ModelError(f"{self.source!r} has no value: {error}.") from None
        if not _is_array(result) and not isinstance(result, bool) and not _in_bounds(result):
            raise ModelError(f"{self.source!r} is out of bounds.", "Values must stay below 1e60.")
        return result


def parse(source: str | float, names: frozenset[str] | None = None) -> Expression:
    """Checks an expression.

    Args:
        source: the text, or a number.
        names: names that may be used; None allows all.

    Raises:
        ModelError: not an expression of the allowed form, or an unknown name.

    >>> parse("2 * max(m, 4) * k")({"m": 1, "k": 8})
    64
    """
    text = str(source).strip()
    if not text or len(text) > MAX_LENGTH:
        raise ModelError(f"An expression must have 1 to {MAX_LENGTH} characters; this has {len(text)}.")
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ModelError(f"{_short(text)} is not an arithmetic expression.", _grammar()) from None
    _check(tree, text)
    used = frozenset(_names(tree))
    if names is not None and (unknown := sorted(used - names)):
        near = difflib.get_close_matches(unknown[0], sorted(names), 3)
        hint = f"Did you mean {', '.join(near)}?" if near else f"Known names: {', '.join(sorted(names))}."
        raise ModelError(f"{_short(text)} uses the unknown name {unknown[0]!r}.", hint)
    return Expression(text, used, tree.body)


def _check(tree: ast.Expression, text: str) -> None:
    """Raises on anything outside the allowed form."""
    if sum(1 for _ in ast.walk(tree)) > MAX_NODES or _depth(tree) > MAX_DEPTH:
        raise ModelError(f"{_short(text)} is too large.", f"At most {MAX_NODES} parts, {MAX_DEPTH} levels.")
    for node in ast.walk(tree):
        wrong = not isinstance(node, _ALLOWED)
        if isinstance(node, ast.Call):
            known = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
            wrong = not known or bool(node.keywords) or not node.args
        if isinstance(node, ast.Constant):
            wrong = not isinstance(node.value, (int, float, bool)) or not _in_bounds(node.value)
        if wrong:
            raise ModelError(f"{_short(text)} is not an arithmetic expression.", _grammar())


def _depth(tree: ast.AST) -> int:
    """Levels of the tree, counted without recursion."""
    deepest, level = 0, [tree]
    while level:
        deepest += 1
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return deepest


def _names(tree: ast.AST) -> Iterator[str]:
    """Names that stand for values."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            yield node.id


def _value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """The value of a checked node."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        if node.id not in values:
            raise ModelError(f"The name {node.id!r} has no value here.")
        return values[node.id]
    if isinstance(node, ast.BinOp):
        left, right = _value(node.left, values), _value(node.right, values)
        return _power(left, right) if isinstance(node.op, ast.Pow) else _BINARY[type(node.op)](left, right)
    if isinstance(node, ast.UnaryOp):
        operand = _value(node.operand, values)
        if isinstance(node.op, ast.Not):
            return _not(operand)
        return -operand if isinstance(node.op, ast.USub) else operand
    if isinstance(node, ast.BoolOp):
        return _bool(node, values)
    if isinstance(node, ast.Compare):
        return _compare(node, values)
    if isinstance(node, ast.IfExp):
        return _choose(node, values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _call(node.func.id, [_value(argument, values) for argument in node.args])
    raise ModelError("The expression has a part that is not allowed.", _grammar())


def _bool(node: ast.BoolOp, values: Mapping[str, Any]) -> Any:
    """`and` and `or`, element by element on arrays, short-circuit on numbers."""
    joins_all = isinstance(node.op, ast.And)
    result = _value(node.values[0], values)
    for item in node.values[1:]:
        if not _is_array(result) and bool(result) != joins_all:
            return result
        other = _value(item, values)
        if _is_array(result) or _is_array(other):
            import numpy as np

            result = np.logical_and(result, other) if joins_all else np.logical_or(result, other)
        else:
            result = other
    return result


def _compare(node: ast.Compare, values: Mapping[str, Any]) -> Any:
    """A chain of comparisons."""
    left, result = _value(node.left, values), None
    for op, item in zip(node.ops, node.comparators, strict=True):
        right = _value(item, values)
        one = _COMPARE[type(op)](left, right)
        result = one if result is None else (result & one)
        left = right
    return result


def _choose(node: ast.IfExp, values: Mapping[str, Any]) -> Any:
    """`a if condition else b`; on arrays both are computed."""
    condition = _value(node.test, values)
    if _is_array(condition):
        import numpy as np

        return np.where(condition, _value(node.body, values), _value(node.orelse, values))
    return _value(node.body if condition else node.orelse, values)


def _call(name: str, arguments: list[Any]) -> Any:
    """One of the allowed functions."""
    single = name in ("ceil", "floor", "log2", "sqrt", "abs", "round")
    if single and len(arguments) != 1:
        raise ModelError(f"{name} takes one number, not {len(arguments)}.")
    if any(_is_array(argument) for argument in arguments):
        import functools

        import numpy as np

        if single:
            return getattr(np, name)(arguments[0])
        return functools.reduce(np.minimum if name == "min" else np.maximum, arguments)
    if name in ("min", "max"):
        return min(arguments) if name == "min" else max(arguments)
    if name in ("abs", "round"):
        return abs(arguments[0]) if name == "abs" else round(arguments[0])
    return getattr(math, name)(arguments[0])


def _power(base: Any, exponent: Any) -> Any:
    """A power with a bounded exponent, so that no expression can fill the memory."""
    if _is_array(exponent) or abs(exponent) > MAX_POWER or (not _is_array(base) and not _in_bounds(base)):
        raise ValueError(f"exponents must be single numbers up to {MAX_POWER}")
    return base**exponent


def _not(value: Any) -> Any:
    if _is_array(value):
        import numpy as np

        return np.logical_not(value)
    return not value


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _in_bounds(value: Any) -> bool:
    """True for finite real numbers of reasonable size."""
    return isinstance(value, (int, float)) and -MAX_VALUE < value < MAX_VALUE


def _short(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:77] + "…")


def _grammar() -> str:
    return f"Allowed: numbers, names, + - * / // % **, comparisons, a if b else c, {', '.join(FUNCTIONS)}."
