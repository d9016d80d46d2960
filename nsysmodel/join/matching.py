"""Try the conditions of rules on the parts of a kernel's name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from nsysmodel.join.literals import literals_of
from nsysmodel.join.rulefile import Conditions

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[^a-z0-9]+")
IS_INDUCTOR = re.compile(r"^triton_(?:poi|red|per|tem|for|spl|mm)_fused")


def words_of(base: str, neighbours: Sequence[str] = ()) -> str:
    """Return the lower-case words of a function's name, joined by underscores.

    >>> words_of("FusedAddRMSNormKernel")
    'fused_add_rms_norm_kernel'
    >>> words_of("triton_red_fused_machete_mm_mul_silu", ["machete_mm"])
    'triton_red_fused_mul_silu'
    """
    text = _NOT_WORD.sub("_", _CAMEL.sub("_", base).lower()).strip("_")
    for phrase in neighbours:
        if phrase in text:
            text = re.sub(rf"(?:^|_){re.escape(phrase)}(?=_|$)", "", text)
    return text


class Subject(NamedTuple):
    """The parts of one name that conditions look at."""

    base: str
    namespace: str
    word: str
    template: str
    anywhere: str


_FIRST_OF_TEMPLATE = Subject._fields.index("template")
_CONDITIONS = (
    ("namespace", "namespace", True),
    ("base", "base", True),
    ("word", "word", True),
    ("template", "template", True),
    ("anywhere", "anywhere", True),
    ("not_base", "base", False),
    ("not_word", "word", False),
    ("not_template", "template", False),
)


class _Condition:
    """One regular expression, compiled when a text comes that it may be found in."""

    __slots__ = ("_literals", "_pattern", "_source", "part", "wanted")

    def __init__(self, part: int, source: str, bounded: str, wanted: bool) -> None:
        self.part, self.wanted = part, wanted
        self._literals = literals_of(source)
        self._source = bounded
        self._pattern: re.Pattern[str] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        """Where the expression is found in a text."""
        if self._pattern is None:
            for literal in self._literals:
                if literal in text:
                    break
            else:
                if self._literals:
                    return None
            self._pattern = re.compile(self._source)
        return self._pattern.search(text)


class Matcher:
    """Conditions whose regular expressions are compiled when they are first needed.

    Those on the function's name are apart from those on its template: many kernels share a name, and
    what the name decides is kept.
    """

    __slots__ = ("_name", "_template")

    def __init__(self, conditions: Conditions) -> None:
        self._name: list[_Condition] = []
        self._template: list[_Condition] = []
        for field, part, wanted in _CONDITIONS:
            source = getattr(conditions, field)
            if source:
                bounded = rf"(?:^|_)(?:{source})(?=_|$)" if part == "word" else source
                place = Subject._fields.index(part)
                side = self._name if place < _FIRST_OF_TEMPLATE else self._template
                side.append(_Condition(place, source, bounded, wanted))

    def fits_name(self, subject: Subject) -> bool:
        """Say whether the conditions on function and namespaces hold."""
        return _all_hold(self._name, subject)

    def fits_template(self, subject: Subject) -> bool:
        """Say whether the conditions on the template or the whole name hold."""
        return _all_hold(self._template, subject)

    def needs_template(self) -> bool:
        """Say whether the function's name alone does not decide."""
        return bool(self._template)

    def groups(self, subject: Subject) -> dict[str, str]:
        """Return what the named groups of the conditions found."""
        found: dict[str, str] = {}
        for condition in (*self._name, *self._template):
            match = condition.search(subject[condition.part]) if condition.wanted else None
            if match is not None:
                found.update(match.groupdict(default=""))
        return found


def _all_hold(conditions: list[_Condition], subject: Subject) -> bool:
    # A plain loop: this runs for every rule and every distinct function, and a generator doubles its time.
    holds = True
    for condition in conditions:
        if (condition.search(subject[condition.part]) is not None) is not condition.wanted:
            holds = False
            break
    return holds


_PHRASES = ("rms_norm", "fused_add_rms_norm", "index_select", "to_copy", "masked_fill", "index_put")


def aten_words(words: str) -> set[str]:
    """Return the ATen words in an inductor kernel's name, single and joined.

    >>> sorted(aten_words("triton_red_fused_to_copy_mean_rsqrt"))
    ['copy', 'mean', 'rsqrt', 'to', 'to_copy']
    """
    body = IS_INDUCTOR.sub("", words).strip("_")
    single = {word for word in body.split("_") if word and not word.isdigit()}
    return single | {phrase for phrase in _PHRASES if f"_{phrase}_" in f"_{body}_"}
