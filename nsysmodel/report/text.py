"""Untrusted text made visible: control characters become escapes, long names lose their middle.

Names come from an export or a file. Markup is escaped by each output in its own way; what this module
removes is what no escaping catches: terminal sequences, bidirectional overrides, lone surrogates.
"""

from __future__ import annotations

import re
import unicodedata

from nsysmodel.join.names import normalise

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_QUANTITY = re.compile(
    r"(?<=\d) (?=(?:[nµm]?s|%|[kMGTP]?B(?:/s)?|[kMGTP]?FLOP(?:S|/s)?|tokens/s)(?![A-Za-z]))"
)
_NOISE = (
    (re.compile(r"\((?:unsigned )?(?:int|long|bool|char|short)(?: long)?\)(?=-?\d)"), ""),
    (re.compile(r"(?:\(anonymous namespace\)|<unnamed>)::"), ""),
    (re.compile(r"\b(?:at::native|at|c10|cutlass|cute|std|thrust|cub|vllm|flash)::"), ""),
)
_LONGEST = 4_000
_PLAIN = re.compile(r"[\x20-\x7e]*")


def clean(text: object, limit: int = 400) -> str:
    r"""One printable line of at most `limit` characters; what is cut is the middle.

    >>> clean("a\x1b[31mb\u202ec")
    'a\\x1b[31mb\\u202ec'
    >>> clean("x" * 30, 11)
    'xxxxxxx…xxx'
    """
    raw = str(text)
    if len(raw) > limit:
        raw = cut(raw, limit)
    if _PLAIN.fullmatch(raw):
        return raw
    return cut("".join(_visible(char) for char in raw), limit)


def cut(text: str, width: int) -> str:
    """`text` in at most `width` characters, its middle replaced by an ellipsis.

    >>> cut("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 17)
    'nvjet_tst_6…z_TNT'
    """
    if len(text) <= width:
        return text
    tail = (width - 1) * 36 // 100
    head = width - 1 - tail
    return text[:head] + "…" + (text[-tail:] if tail else "")


def unbroken(text: str) -> str:
    """`text` with no line break between a number and its unit.

    >>> unbroken("takes 4.04 ms, 40 % of 3 steps") == "takes 4.04\\u00a0ms, 40\\u00a0% of 3 steps"
    True
    """
    return _QUANTITY.sub("\u00a0", text)


def kernel_name(name: str, width: int) -> str:
    """A demangled kernel name with what tells it apart: no result, arguments, casts, well-known namespaces.

    >>> kernel_name("void at::native::vec_kernel<(int)4, at::native::Fill<float>>(int, T2)", 60)
    'vec_kernel<4, Fill<float>>'
    >>> kernel_name("nvjet_tst_64x8_TNT", 60), kernel_name("_ZN3moe3sumIfEEvPT_", 60)
    ('nvjet_tst_64x8_TNT', 'moe::sum')
    """
    if name.startswith("_Z"):
        name = normalise(name[:_LONGEST]).text
    short = without_arguments(name[:_LONGEST].removeprefix("void "))
    for pattern, replacement in _NOISE:
        short = pattern.sub(replacement, short)
    return clean(short.strip() or name, width)


def without_arguments(name: str) -> str:
    """A demangled name without the list of its arguments.

    >>> without_arguments("k<(int)2>(T1, int)")
    'k<(int)2>'
    """
    if not name.endswith(")"):
        return name
    depth = 0
    for index in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[index], 0)
        if depth == 0:
            return name[:index] or name
    return name


def words(identifier: str) -> str:
    """A closed-set word of the contract as people read it.

    >>> words("launch_starved"), words("open_end")
    ('launch starved', 'open end')
    """
    return identifier.replace("_", " ")


def plural(count: int, noun: str, many: str | None = None) -> str:
    """A count with its noun.

    >>> plural(1, "step"), plural(1200, "step"), plural(2, "copy", "copies")
    ('1 step', '1,200 steps', '2 copies')
    """
    return f"{count:,} {noun if count == 1 else many or noun + 's'}"


def _visible(char: str) -> str:
    category = unicodedata.category(char)
    if category == "Zs":
        return " "
    if category in _INVISIBLE:
        code = ord(char)
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
    return char
