"""Say what kind of work a kernel does, from its name alone.

The knowledge is in data files: ordered rules, the first that fits wins. A name cannot say which of a
layer's products a matrix product is; that is the alignment's business. What it can say is the class of
work, the ops that a fused kernel is known to do, and words that tell two kernels of one class apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path

from nsysmodel.join.matching import IS_INDUCTOR, Matcher, Subject, aten_words, words_of
from nsysmodel.join.names import NormalisedName, normalise
from nsysmodel.join.rulefile import (
    BUNDLED,
    KERNEL_CLASSES,
    Helper,
    IndexFile,
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


_Ranked = tuple[RuleModel, Matcher, RuleFile]


class Vocabulary:
    """Ordered rules; `load` makes one."""

    def __init__(self, files: Sequence[RuleFile], index: IndexFile) -> None:
        """Take files in the order in which they are asked, and the defaults of the index."""
        self._rules: list[_Ranked] = [(rule, Matcher(rule), file) for file in files for rule in file.rules]
        self._traits: list[tuple[TraitModel, Matcher]] = [
            (trait, Matcher(trait)) for file in files for trait in file.traits
        ]
        self._covers = index.covers
        self._engines = index.engines
        self._neighbours = sorted({n for file in files for n in file.neighbours}, key=len, reverse=True)
        self._by_function: dict[tuple[str, str], list[_Ranked]] = {}
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
        for rule, matcher, file in self._candidates(subject):
            if matcher.fits_template(subject):
                return self._build(rule, file, matcher.groups(subject), subject)
        traits = self._traits_of("other", subject) | {"opaque"}
        return KernelClass("other", traits=frozenset(traits))

    def _candidates(self, subject: Subject) -> list[_Ranked]:
        """Return the rules that the function's name admits, up to the first that needs no more."""
        key = (subject.namespace, subject.base)
        known = self._by_function.get(key)
        if known is None:
            known = self._by_function[key] = []
            for ranked in self._rules:
                if ranked[1].fits_name(subject):
                    known.append(ranked)
                    if not ranked[1].needs_template():
                        break
        return known

    def _subject(self, name: NormalisedName) -> Subject:
        is_inductor = IS_INDUCTOR.match(name.base) is not None
        words = words_of(name.base, self._neighbours if is_inductor else ())
        return Subject(name.base, name.namespace, words, name.template, name.text)

    def _build(
        self, rule: RuleModel, file: RuleFile, groups: dict[str, str], subject: Subject
    ) -> KernelClass:
        kind = rule.kernel_class
        traits = set(rule.traits) | self._traits_of(kind, subject)
        if IS_INDUCTOR.match(subject.base):
            traits |= aten_words(subject.word)
        weight = file.weight_types.get(int(groups.get("ggml_type") or -1), "")
        if weight:
            traits.add(f"w_{weight}")
        engine = file.engine if rule.engine is None else rule.engine
        covers = rule.covers if rule.covers is not None else self._covers.get(kind, ())
        return KernelClass(
            kernel_class=kind,
            covers=covers,
            traits=frozenset(traits),
            engine=engine or self._engines.get(subject.namespace.partition("::")[0], ""),
            helper=rule.helper,
            rule=rule.id,
            confidence=rule.confidence,
            gemm_n=int(groups.get("gemm_n") or 0),
            gemm_k=int(groups.get("gemm_k") or 0),
            weight_dtype=weight,
        )

    def _traits_of(self, kind: KernelClassName, subject: Subject) -> set[str]:
        return {
            trait.trait
            for trait, matcher in self._traits
            if (not trait.classes or kind in trait.classes)
            and matcher.fits_name(subject)
            and matcher.fits_template(subject)
        }


def load(extra: Sequence[Path] = ()) -> Vocabulary:
    """Load the bundled rules, and the user's before them.

    Args:
        extra: YAML files of the same form; the rules of the first file are asked first.

    Raises:
        VocabularyError: a file cannot be read or a field in it is wrong.
    """
    if not extra:
        return _bundled_vocabulary()
    files, index = _bundled()
    return Vocabulary([*(read_rules(Path(path)) for path in extra), *files], index)


@lru_cache(maxsize=1)
def _bundled_vocabulary() -> Vocabulary:
    return Vocabulary(*_bundled())


@lru_cache(maxsize=1)
def _bundled() -> tuple[list[RuleFile], IndexFile]:
    folder = resources.files("nsysmodel.join").joinpath("data")

    def text(stem: str) -> str:
        return folder.joinpath(f"{stem}.yaml").read_text(encoding="utf-8")

    index = parse_index(text("index"), "index.yaml")
    files = [parse_rules(text(stem), f"{stem}.yaml", context=BUNDLED) for stem in (*index.order, "traits")]
    return files, index
