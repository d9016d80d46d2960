"""Bring a kernel name from any tool to one form.

The CUDA profiling interface (and PyTorch's profiler), Nsight Systems and Nsight Compute print one
kernel in three ways: they differ in anonymous namespaces, lambdas, casts of template values, integer
suffixes, back-references, return types, and Nsight Compute leaves namespaces out altogether. Compilers
of other languages (Triton, CuTe DSL, inductor) put a specialisation behind the function's name. Here
all of that is folded so that equal kernels compare equal.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache

from nsysmodel.join.mangled import demangle


@dataclass(frozen=True, slots=True)
class NormalisedName:
    """A kernel name without what differs between tools.

    Args:
        base: the function's name without namespaces, template or arguments.
        template: the template arguments or the compiler's suffix in a common form; empty without any.
        namespace: the namespaces joined by `::`; not compared, since one of the tools leaves them out.
        truncated: the name was cut before its end; not compared.
    """

    base: str
    template: str
    namespace: str = field(default="", compare=False)
    truncated: bool = field(default=False, compare=False)

    @property
    def text(self) -> str:
        """The whole name in one piece, for people.

        >>> normalise("void vllm::moe::topkGating<(int)8, (bool)1>(T1 *)").text
        'vllm::moe::topkGating<8,1>'
        """
        space = f"{self.namespace}::" if self.namespace else ""
        return f"{space}{self.base}<{self.template}>" if self.template else f"{space}{self.base}"


_ACTIVITY = re.compile(r"\s*\[?(?:CUDA )?(memcpy|memset)\b[ _-]*([A-Za-z2]*)", re.IGNORECASE)
_ENDS_CUT = re.compile(r"(?:\.\.\.|…)\s*>*\s*$")
_ANONYMOUS = re.compile(r"\(anonymous(?: namespace)?\)::|<?unnamed>::|\{anonymous\}::|_GLOBAL__N_\w+::")
_OPERATOR_CALL = re.compile(r"operator ?\(\)")
_LAMBDA = re.compile(r"[\[{]?\blambda ?\(((?:[^()]|\([^()]*\))*)\)(?:#(\d+)| \(instance (\d+)\))[\]}]?")
_CAST_OF_VALUE = re.compile(
    r"\((?:bool|char|signed char|unsigned char|short|unsigned short|int|unsigned|unsigned int"
    r"|(?:unsigned )?long(?: long)?)\)(?=-?\d)"
)
_INTEGER = re.compile(r"(?<![\w.])(\d+)(?:ull|ul|ll|u|l)\b", re.IGNORECASE)
_BOOLEAN = re.compile(r"(?<![\w:])(?:(true)|(false))\b")
_QUALIFIERS = re.compile(r"(?<!\w)(?:const|volatile|void(?=\s+[A-Za-z_(<]))(?!\w)")
_NAMESPACES = re.compile(r"\b[A-Za-z_]\w*::(?!lambda#|operator_call)")
_CALL_OF_LAMBDA = re.compile(r"(?:::)?operator_call(?:::)?(?=lambda#)")
_LONG = re.compile(r"\blong long\b")
_SPACES = re.compile(r"\s+")
_PUNCTUATION_SPACE = re.compile(r" ?([<>,&*()\[\]{}:]) ?")
_POINTER_TO = re.compile(r"&\((\w+)\)")


@lru_cache(maxsize=65536)
def normalise(name: str) -> NormalisedName:
    """Fold what tools and compilers add to a kernel's name.

    Args:
        name: the name as an export holds it: demangled by any of the three tools, mangled, short, or cut.

    Returns:
        The name in parts. Names that say nothing come back as they are, in `base`.

    >>> a = normalise("void foo::k<128, true>(foo::P const&)")
    >>> b = normalise("void foo::k<(int)128, (bool)1>(const T1 &)")
    >>> a == b, a.base, a.template
    (True, 'k', '128,1')
    """
    text = _SPACES.sub(" ", name.strip())
    activity = _ACTIVITY.match(text)
    if activity is not None and " " in text.strip("[]"):
        kind = "".join(c for c in activity.group(2) if c.isalnum())
        return NormalisedName(f"{activity.group(1).capitalize()} {kind}".strip(), "")
    if text.startswith("_Z"):
        mangled = demangle(text)
        if mangled is not None:
            parts, template = mangled
            return NormalisedName(parts[-1], template, "::".join(parts[:-1]))
    dots = _ENDS_CUT.search(text)
    if dots is not None:
        text = text[: dots.start()]
    if "(" not in text and "<" not in text and ":" not in text:
        base, suffix = _split_suffix(text)
        return NormalisedName(base, suffix, "", dots is not None)
    head, template, end = _split_function(_fold(text))
    namespace, _, base = head.rpartition("::")
    if not template:
        base, template = _split_suffix(base)
    cut = end is _End.INSIDE or (end is _End.NAME and dots is not None)
    return NormalisedName(base or text, _fold_template(template), namespace, cut)


def _fold(text: str) -> str:
    """Fold the spellings that differ between tools and do not depend on where they stand."""
    text = _ANONYMOUS.sub("", text)
    text = _OPERATOR_CALL.sub("operator_call", text)
    text = _LAMBDA.sub(_lambda_word, text)
    text = _CAST_OF_VALUE.sub("", text)
    return _LONG.sub("long", text)


def _lambda_word(match: re.Match[str]) -> str:
    """Write a lambda as its number and the types that it takes."""
    number = match.group(2) or match.group(3)
    types = _NAMESPACES.sub("", _QUALIFIERS.sub("", match.group(1)))
    return f"lambda#{number}[{types.replace(' ', '')}]"


class _End(Enum):
    """Where the text of a name ends."""

    INSIDE = "inside the template"
    NAME = "after the name or its template"
    ARGUMENTS = "in or after the arguments"


def _split_function(text: str) -> tuple[str, str, _End]:
    """Find the function's qualified name and its own template, past return type and before arguments.

    A group in parentheses at the outermost level ends the name unless a scope follows it
    (`f(int)::g`); a space at the outermost level ends a return type.
    """
    start = 0
    depth = 0
    template_at = template_end = -1
    position = 0
    end = _End.NAME
    while position < len(text):
        char = text[position]
        if char == "<":
            if depth == 0:
                template_at = position
            depth += 1
        elif char == ">":
            depth = max(0, depth - 1)
            template_end = position if depth == 0 else template_end
        elif depth == 0 and char == " ":
            following = text[position + 1 : position + 2]
            if following not in ("", "(", "<"):
                start, template_at, template_end = position + 1, -1, -1
        elif depth == 0 and char == "(":
            close = _closing(text, position)
            if close < 0 or not text.startswith("::", close + 1):
                text, end = text[:position], _End.ARGUMENTS
                break
            text = text[:position] + text[close + 1 :]
            continue
        elif char == "(":
            position = max(position, _closing(text, position))
        position += 1
    if template_at < 0:
        return text[start:].strip(), "", end
    if template_end < template_at:
        return text[start:template_at].strip(), text[template_at + 1 :], _End.INSIDE
    if template_end < len(text) - 1 and text.startswith("::", template_end + 1):
        name = text[start:template_at] + text[template_end + 1 :]
        return name.strip(), text[template_at + 1 : template_end], end
    return text[start:template_at].strip(), text[template_at + 1 : template_end], end


def _closing(text: str, position: int) -> int:
    """Return where the parenthesis that opens at `position` closes, or -1."""
    depth = 0
    for index in range(position, len(text)):
        if text[index] == "(":
            depth += 1
        elif text[index] == ")":
            depth -= 1
            if depth == 0:
                return index
    return -1


def _fold_template(text: str) -> str:
    """Fold template arguments: no namespaces, qualifiers, argument lists, suffixes; booleans as 0 and 1."""
    if not text:
        return ""
    text = _QUALIFIERS.sub("", text)
    text = _SPACES.sub(" ", text)
    text = _PUNCTUATION_SPACE.sub(r"\1", text)
    text = _drop_argument_lists(text)
    text = _POINTER_TO.sub(r"&\1", text)
    text = _CALL_OF_LAMBDA.sub("::", text)
    text = _NAMESPACES.sub("", text)
    text = _INTEGER.sub(r"\1", text)
    text = _BOOLEAN.sub(lambda m: "1" if m.group(1) else "0", text)
    text = text.replace("Array<char*", "array<char*")
    return text.lstrip(" ,").rstrip(" ,(:").replace(" ", "_")


def _drop_argument_lists(text: str) -> str:
    """Remove every group in parentheses that follows a name or a template; casts of values stay."""
    kept: list[str] = []
    position = 0
    while position < len(text):
        char = text[position]
        if char == "(" and kept and (kept[-1].isalnum() or kept[-1] in "_>)]"):
            close = _closing(text, position)
            if close < 0:
                break
            position = close + 1
            continue
        kept.append(char)
        position += 1
    return "".join(kept)


_INDUCTOR = re.compile(r"^(triton_(?:poi|red|per|tem|mm|for|spl)_fused\w*?|triton_\w*?)_(\d+)$")
_CUTE_DSL = re.compile(r"^(kernel_cutlass_\w+?)_(?:object_at_|_tensorptr|tensorptr)(\w*)$")
_NVJET = re.compile(r"^(nvjet)_(\w+)$")
_TRITON_TILE = re.compile(r"^(\w*?[a-zA-Z]\w*?)_(\d+x\d+(?:x\d+)*)((?:_[A-Za-z]\w*)?)$")
_TRITON_SPECIALISATION = re.compile(r"^(\w+?)_((?:\d+(?:d[ec]?|c|de)){3,})$")
_VENDORS = ("nvjet", "cutlass", "ampere", "turing", "volta", "maxwell", "sm", "gemm", "bmm", "fmha")


def _split_suffix(base: str) -> tuple[str, str]:
    """Split what a compiler appends to a function's name: counter, tile, specialisation.

    >>> _split_suffix("triton_poi_fused_mul_silu_slice_3")
    ('triton_poi_fused_mul_silu_slice', '3')
    >>> _split_suffix("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu")
    ('_matmul_ogs_NNT_bf16xbf16xmxfp4_swiglu', '16x128x256x1')
    """
    for pattern in (_INDUCTOR, _CUTE_DSL, _NVJET, _TRITON_SPECIALISATION):
        match = pattern.match(base)
        if match is not None:
            return match.group(1).rstrip("_") or base, match.group(2).strip("_")
    if not base.startswith(_VENDORS):
        match = _TRITON_TILE.match(base)
        if match is not None:
            return match.group(1) + match.group(3), match.group(2)
    return base, ""
