"""Texts without which a regular expression cannot be found, so that most need not be compiled."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[\w:,<]")
_SIGN = re.compile(r"\\.|.", re.DOTALL)
_NOT_UNDERSTOOD = re.compile(r"\(\?|\{|\[[\^\]]|\[[^\]]*[\[()|\\]")
"""Flags and named groups, counts, and classes that hold signs of the expression's own structure."""
_LEAST_LITERAL = 3


def literals_of(source: str) -> tuple[str, ...]:
    """Texts of which one must occur wherever a regular expression is found; empty where none is known.

    Most names hold none of a rule's words, and looking for a word takes a thousandth of the time that
    compiling the expression takes. Only plain alternatives are understood, each with a run of plain signs.

    >>> literals_of(r"^(nccl|rccl)(Dev)?Kernel")
    ('Kernel',)
    >>> literals_of(r"copy_blocks\\w*|swap_blocks\\w*|move_kv")
    ('copy_blocks', 'swap_blocks', 'move_kv')
    >>> literals_of(r"(?i)backward")
    ()
    """
    if _NOT_UNDERSTOOD.search(source):
        return ()
    found: list[str] = []
    for alternative in _alternatives(source):
        inner = _unwrapped(alternative)
        if inner is not None:
            literals = literals_of(inner)
        else:
            longest = max(_runs(alternative), key=len, default="")
            literals = (longest,) if len(longest) >= _LEAST_LITERAL else ()
        if not literals:
            return ()
        found += literals
    return tuple(found)


def _alternatives(source: str) -> list[str]:
    """The parts between bars that stand in no group or class."""
    parts, depth, begin = [], 0, 0
    for at, sign in _signs(source):
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
        if sign == "|" and depth == 0:
            parts.append(source[begin:at])
            begin = at + 1
    return [*parts, source[begin:]]


def _unwrapped(source: str) -> str | None:
    """What is in the one group that an expression consists of."""
    inner = source.removeprefix("^").removesuffix("$")
    if not (inner.startswith("(") and inner.endswith(")")):
        return None
    depth = 0
    for at, sign in _signs(inner):
        depth += (sign == "(") - (sign == ")")
        if depth == 0:
            return inner[1:-1] if at == len(inner) - 1 else None
    return None


def _runs(source: str) -> list[str]:
    """Runs of plain signs in a sequence that stand in no group or class, and that nothing makes optional."""
    runs, depth, run = [], 0, ""
    for _, sign in [*_signs(source), (len(source), "$")]:
        depth += (sign in ("(", "[")) - (sign in (")", "]"))
        if depth == 0 and len(sign) == 1 and _PLAIN.match(sign):
            run += sign
            continue
        # A sign that may be missing or repeated is no part of the run.
        runs.append(run[:-1] if sign in ("?", "*", "+") else run)
        run = ""
    return runs


def _signs(source: str) -> list[tuple[int, str]]:
    """Signs of an expression with their places; an escaped one is a sign of two letters."""
    return [(found.start(), found[0]) for found in _SIGN.finditer(source)]
