"""Patterns of model files: regular expressions over kernel names, and names of modules."""

from __future__ import annotations

import fnmatch
import re

from nsysmodel.errors import ModelError

MAX_PATTERN = 500
MOST_OPEN = 3
"""Open repetitions in a pattern over kernel names: each multiplies the time by the length of the name."""
MOST_OPEN_MODULE = 5
"""The same over names of modules, which are short."""
_OPEN = re.compile(r"(?<!\\)(?:\\\\)*(?:[*+]|\{\d*,\})")
_REPEATED_GROUP = re.compile(r"\)\s*(?:[*+]|\{\d*,?\d*\})")
_PREFIX = re.compile(r"^(?:language_model\.model|model\.language_model|model|backbone|language_model)\.")
_GLOB = re.compile(r"[*?\[]")
_CHECKPOINT_PREFIXES = ("model.", "", "model.language_model.", "language_model.model.", "backbone.")


def regular_expression(pattern: str, most_open: int = MOST_OPEN) -> re.Pattern[str]:
    """A compiled pattern; refuses what can take nearly for ever on a hostile name.

    Raises:
        ModelError: not a regular expression, too long, a repeated group, or more than `most_open` open
            repetitions.
    """
    if not pattern or len(pattern) > MAX_PATTERN:
        raise ModelError(f"A pattern must have 1 to {MAX_PATTERN} characters; this has {len(pattern)}.")
    if _REPEATED_GROUP.search(pattern):
        raise ModelError(
            f"The pattern {pattern[:80]!r} repeats a group, which can take forever on a long name.",
            "Repeat single characters or character classes only.",
        )
    if len(_OPEN.findall(pattern)) > most_open:
        raise ModelError(
            f"The pattern {pattern[:80]!r} has more than {most_open} of `*`, `+`, `{{n,}}`, "
            "which can take forever on a long name.",
            "Name the parts of the kernel's name that tell it from others.",
        )
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ModelError(f"{pattern[:80]!r} is not a regular expression: {error}.") from None


class ModulePatterns:
    """Patterns that name modules of a checkpoint, as `exclude` and `ignore` lists write them.

    Understands `re:` regular expressions, globs, whole names, and parts of names that follow each other
    (`lm_head`, `mlp.gate`). A leading `model.`, `language_model.model.`, `backbone.` … is optional.

    >>> ModulePatterns(("model.layers.*.self_attn",)).match("layers.3.self_attn.q_proj")
    True
    >>> ModulePatterns(("gate",)).match("layers.3.mlp.gate_proj")
    False
    """

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._parts: set[str] = set()
        self._starts: set[str] = set()
        self._globs: list[re.Pattern[str]] = []
        self._expressions: list[re.Pattern[str]] = []
        for pattern in patterns:
            self._add(pattern)

    def _add(self, pattern: str) -> None:
        if pattern.startswith("re:"):
            self._expressions.append(regular_expression(pattern[3:], MOST_OPEN_MODULE))
            return
        if len(pattern) > MAX_PATTERN:
            raise ModelError(f"A module pattern has {len(pattern)} characters; at most {MAX_PATTERN}.")
        bare = _PREFIX.sub("", pattern)
        if not _GLOB.search(bare):
            self._parts.add(bare)
        elif bare.endswith("*") and not _GLOB.search(bare[:-1]) and len(bare) > 1:
            self._starts.add(bare[:-1])
        else:
            plain = re.sub(r"\*{2,}", "*", bare)
            # a pattern for a module is one for what is inside it
            self._globs += [re.compile(fnmatch.translate(glob)) for glob in (plain, f"{plain}.*")]

    def match(self, module: str) -> bool:
        """True where one of the patterns names `module` or something that it is part of."""
        if self._starts and any(module[:end] in self._starts for end in range(1, len(module) + 1)):
            return True
        if self._parts and self._has_part(module):
            return True
        if any(glob.match(module) for glob in self._globs):
            return True
        return any(
            expression.match(prefix + module)
            for expression in self._expressions
            for prefix in _CHECKPOINT_PREFIXES
        )

    def _has_part(self, module: str) -> bool:
        """True where parts that follow each other are one of the plain names."""
        steps = module.split(".")
        return any(
            ".".join(steps[start:end]) in self._parts
            for start in range(len(steps))
            for end in range(start + 1, len(steps) + 1)
        )
