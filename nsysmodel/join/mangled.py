"""Read what an Itanium-mangled kernel name says, without a C++ toolchain.

Traces hold a few names that their tool could not demangle, often cut in the middle. What the join
needs from them is the function's name, its namespaces and the names and numbers in its template
arguments; substitutions and function types are skipped. The result is stable for one symbol, so it
gives identity; it is not the text that a full demangler would print.
"""

from __future__ import annotations

import re

_LITERAL = re.compile(r"L[a-z](n?\d+)E")
_SKIP = re.compile(r"DF16b|DF16_|DF\d+_|S[0-9A-Z]*_|T[0-9A-Z]*_|St|Sa|Ss")
_FLOAT16 = re.compile(r"DF16b")
_NUMBER = re.compile(r"\d+")


def demangle(symbol: str) -> tuple[tuple[str, ...], str] | None:
    """Split a mangled symbol into its qualified name and its template's words.

    Args:
        symbol: a name that starts with `_Z`; it may be cut anywhere.

    Returns:
        The namespaces and the function name in order, and the template's names and integers joined
        by commas (empty where there is no template); None where nothing can be read.

    >>> demangle("_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalILi128EEEEEvT_")
    (('cutlass', 'device_kernel'), 'GemmUniversal,128')
    >>> demangle("_Z11plain_storePfi")
    (('plain_store',), '')
    """
    if not symbol.startswith("_Z"):
        return None
    position = 2
    if symbol.startswith("N", position):
        position += 1
        while symbol[position : position + 1] in ("K", "V", "r"):
            position += 1
    parts: list[str] = []
    while True:
        name, after = _identifier(symbol, position)
        if name is None:
            break
        position = after
        if not name.startswith("_GLOBAL__N"):
            parts.append(name)
        if symbol[1:3] != "ZN"[:2]:
            break
    if not parts:
        return None
    template = _template_words(symbol, position) if symbol.startswith("I", position) else ""
    return tuple(parts), template


def _identifier(symbol: str, position: int) -> tuple[str | None, int]:
    """Read one length-prefixed name; None where there is none or it is cut before its first letter."""
    match = _NUMBER.match(symbol, position)
    if match is None:
        return None, position
    start, length = match.end(), int(match.group())
    name = symbol[start : start + length]
    if length == 0 or not name or not (name[0].isalpha() or name[0] == "_"):
        return None, position
    return name, start + len(name)


def _template_words(symbol: str, position: int) -> str:
    """Collect the last name of every qualified name and every integer, in order."""
    words: list[str] = []
    joined = False
    while position < len(symbol):
        literal = _LITERAL.match(symbol, position)
        if literal is not None:
            words.append(literal.group(1).replace("n", "-"))
            position, joined = literal.end(), False
            continue
        skip = _SKIP.match(symbol, position)
        if skip is not None:
            if _FLOAT16.match(symbol, position):
                words.append("__nv_bfloat16")
            position, joined = skip.end(), False
            continue
        name, after = _identifier(symbol, position)
        if name is None:
            number = _NUMBER.match(symbol, position)
            if number is not None and symbol[number.end() : number.end() + 1] == "E":
                words.append(number.group())
            position = number.end() if number is not None else position + 1
            joined = False
            continue
        if joined:
            words[-1] = name
        else:
            words.append(name)
        position, joined = after, True
    return ",".join(words)
