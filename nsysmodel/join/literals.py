"""Texts without which a regular expression cannot be found, so that most need not be compiled."""

from __future__ import annotations

import re

_NOT_UNDERSTOOD = re.compile(r"\(\?|\{|\[[\^\]]|\[[^\]]*[\[()|\\]")
"""Flags and named groups, counts, and classes that hold signs of the expression's own structure."""
_ESCAPED_OR_CLASS = re.compile(r"\\.|\[[^\]]*\]", re.DOTALL)
_GROUP = re.compile(r"\([^()]*\)")
_WRAPPED = re.compile(r"\^?\((.*)\)\$?", re.DOTALL)
_RUN = re.compile(r"([\w:,<]+)([?*+]?)")
_LEAST = 3


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
    # A blank ends a run: it stands for what may be anything.
    text = _ESCAPED_OR_CLASS.sub(" ", source)
    wrapped = _WRAPPED.fullmatch(text)
    if wrapped is not None and "(" not in (inner := _without_groups(wrapped[1])) and ")" not in inner:
        text = wrapped[1]
    longest = [_longest_run(alternative) for alternative in _without_groups(text).split("|")]
    return tuple(longest) if min(map(len, longest)) >= _LEAST else ()


def _without_groups(text: str) -> str:
    """The text with a blank for each group."""
    before = ""
    while before != text:
        before, text = text, _GROUP.sub(" ", text)
    return text


def _longest_run(alternative: str) -> str:
    """The longest run of plain signs; one that may be missing or repeated is no part of it."""
    runs = (run[:-1] if repeated else run for run, repeated in _RUN.findall(alternative))
    return max(runs, key=len, default="")
