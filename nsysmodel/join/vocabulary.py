"""Say what kind of work a kernel does, from its name alone.

The knowledge is in data files: ordered rules, the first that fits wins. A name cannot say which of a
layer's products a matrix product is; that is the alignment's business. What it can say is the class of
work, the ops that a fused kernel is known to do, and words that tell two kernels of one class apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path

from nsysmodel.join.names import NormalisedName, normalise
from nsysmodel.join.rulefile import (
    KERNEL_CLASSES,
    Conditions,
    Helper,
    KernelClassName,
    RuleFile,
    RuleModel,
    TraitModel,
    VocabularyError,
    parse_index,
    parse_rules,
    read_rules,
)

__all__ = ["KERNEL_CLASSES", "KernelClass", "Vocabulary", "VocabularyError", "load"]


@dataclass(frozen=True, slots=True)
class KernelClass:
    """What a kernel's name says about its work.

    Args:
        kernel_class: one of `KERNEL_CLASSES`.
        covers: op ids that the kernel is known to do, in execution order. `norm`, `act` and `allreduce`
            stand for one whose place in the layer the name does not tell. Empty where the op is unknown.
        traits: words for the alignment (arithmetic, number formats, `splitk`, `mla`, `opaque`, …).
        engine: library or engine whose naming it is; empty where several share it.
        helper: what it does for another kernel's op, or empty.
        rule: id of the rule that decided, or `default`.
        confidence: 0 to 1.
        gemm_n: columns of the product's result where the name carries them, else 0.
        gemm_k: length of the product's inner dimension where the name carries it, else 0.
        weight_dtype: number format of the weights where the name carries it, else empty.
    """

    kernel_class: KernelClassName
    covers: tuple[str, ...] = ()
    traits: frozenset[str] = frozenset()
    engine: str = ""
    helper: Helper = ""
    rule: str = "default"
    confidence: float = 0.0
    gemm_n: int = 0
    gemm_k: int = 0
    weight_dtype: str = ""


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_INDUCTOR = re.compile(r"^triton_(?:poi|red|per|tem|for|spl|mm)_fused")


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


@dataclass(frozen=True, slots=True)
class _Subject:
    """The parts of one name that conditions look at."""

    base: str
    namespace: str
    template: str
    anywhere: str
    word: str


_SUBJECT_OF = {
    "base": ("base", True),
    "namespace": ("namespace", True),
    "template": ("template", True),
    "anywhere": ("anywhere", True),
    "word": ("word", True),
    "not_base": ("base", False),
    "not_word": ("word", False),
    "not_template": ("template", False),
}


class _Matcher:
    """Conditions whose regular expressions are compiled when they are first needed."""

    __slots__ = ("_compiled", "_sources")

    def __init__(self, conditions: Conditions) -> None:
        self._sources: list[tuple[str, str, bool]] = []
        for field, (part, wanted) in _SUBJECT_OF.items():
            source = getattr(conditions, field)
            if source:
                bounded = rf"(?:^|_)(?:{source})(?=_|$)" if part == "word" else source
                self._sources.append((part, bounded, wanted))
        self._compiled: list[tuple[str, re.Pattern[str], bool]] | None = None

    def match(self, subject: _Subject) -> dict[str, str] | None:
        """Return the named groups where every condition holds, else None."""
        if self._compiled is None:
            self._compiled = [(part, re.compile(source), wanted) for part, source, wanted in self._sources]
        groups: dict[str, str] = {}
        for part, pattern, wanted in self._compiled:
            found = pattern.search(getattr(subject, part))
            if (found is not None) is not wanted:
                return None
            if found is not None and pattern.groupindex:
                groups.update(found.groupdict(default=""))
        return groups


class Vocabulary:
    """Ordered rules; `load` makes one."""

    def __init__(
        self, files: Sequence[RuleFile], covers: dict[KernelClassName, tuple[str, ...]] | None = None
    ) -> None:
        """Take files in the order in which they are asked.

        Args:
            files: rule files, first wins.
            covers: op ids that a class covers where a rule names none.
        """
        self._rules: list[tuple[RuleModel, _Matcher, RuleFile]] = [
            (rule, _Matcher(rule), file) for file in files for rule in file.rules
        ]
        self._traits: list[tuple[TraitModel, _Matcher]] = [
            (trait, _Matcher(trait)) for file in files for trait in file.traits
        ]
        self._covers = covers or {}
        self._neighbours = sorted({n for file in files for n in file.neighbours}, key=len, reverse=True)
        self._known: dict[NormalisedName, KernelClass] = {}
        self._by_name: dict[str, KernelClass] = {}

    def classify(self, name: str) -> KernelClass:
        """Say what a kernel does; the answer is kept per distinct name.

        Args:
            name: the name as any tool prints it.

        >>> load().classify("void vllm::reshape_and_cache_flash_kernel<float>(float*)").kernel_class
        'kv_write'
        """
        known = self._by_name.get(name)
        if known is None:
            known = self._by_name[name] = self._decide(normalise(name))
        return known

    def classify_all(self, names: Sequence[str]) -> list[KernelClass]:
        """Classify names in order."""
        return [self.classify(name) for name in names]

    def _decide(self, name: NormalisedName) -> KernelClass:
        subject = self._subject(name)
        for rule, matcher, file in self._rules:
            groups = matcher.match(subject)
            if groups is not None:
                return self._build(rule, file, groups, subject)
        traits = self._traits_of("other", subject) | {"opaque"}
        return KernelClass("other", traits=frozenset(traits))

    def _subject(self, name: NormalisedName) -> _Subject:
        is_inductor = _INDUCTOR.match(name.base) is not None
        words = words_of(name.base, self._neighbours if is_inductor else ())
        return _Subject(name.base, name.namespace, name.template, name.text, words)

    def _build(
        self, rule: RuleModel, file: RuleFile, groups: dict[str, str], subject: _Subject
    ) -> KernelClass:
        kind = rule.kernel_class
        traits = set(rule.traits) | self._traits_of(kind, subject)
        if _INDUCTOR.match(subject.base):
            traits |= _aten_words(subject.word)
        weight = file.weight_types.get(int(groups.get("ggml_type") or -1), "")
        if weight:
            traits.add(f"w_{weight}")
        covers = rule.covers if rule.covers is not None else self._covers.get(kind, ())
        return KernelClass(
            kernel_class=kind,
            covers=covers,
            traits=frozenset(traits),
            engine=file.engine if rule.engine is None else rule.engine,
            helper=rule.helper,
            rule=rule.id,
            confidence=rule.confidence,
            gemm_n=int(groups.get("gemm_n") or 0),
            gemm_k=int(groups.get("gemm_k") or 0),
            weight_dtype=weight,
        )

    def _traits_of(self, kind: KernelClassName, subject: _Subject) -> set[str]:
        return {
            trait.trait
            for trait, matcher in self._traits
            if (not trait.classes or kind in trait.classes) and matcher.match(subject) is not None
        }


_PHRASES = ("rms_norm", "fused_add_rms_norm", "index_select", "to_copy", "masked_fill", "index_put")


def _aten_words(words: str) -> set[str]:
    """Return the ATen words in an inductor kernel's name, single and joined.

    >>> sorted(_aten_words("triton_red_fused_to_copy_mean_rsqrt"))
    ['copy', 'mean', 'rsqrt', 'to', 'to_copy']
    """
    body = _INDUCTOR.sub("", words).strip("_")
    single = {word for word in body.split("_") if word and not word.isdigit()}
    return single | {phrase for phrase in _PHRASES if f"_{phrase}_" in f"_{body}_"}


def load(extra: Sequence[Path] = ()) -> Vocabulary:
    """Load the bundled rules, and the user's before them.

    Args:
        extra: YAML files of the same form; the rules of the first file are asked first.

    Raises:
        VocabularyError: a file cannot be read or a field in it is wrong.
    """
    if not extra:
        return _bundled_vocabulary()
    files, covers = _bundled()
    return Vocabulary([*(read_rules(Path(path)) for path in extra), *files], covers)


@lru_cache(maxsize=1)
def _bundled_vocabulary() -> Vocabulary:
    return Vocabulary(*_bundled())


@lru_cache(maxsize=1)
def _bundled() -> tuple[list[RuleFile], dict[KernelClassName, tuple[str, ...]]]:
    folder = resources.files("nsysmodel.join").joinpath("data")

    def text(stem: str) -> str:
        return folder.joinpath(f"{stem}.yaml").read_text(encoding="utf-8")

    index = parse_index(text("index"), "index.yaml")
    files = [parse_rules(text(stem), f"{stem}.yaml") for stem in (*index.order, "traits")]
    return files, index.covers
