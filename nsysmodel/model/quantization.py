"""Which number format the weights of a module have."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from nsysmodel.model.patterns import ModulePatterns

ALWAYS_PLAIN = ("router", "shared_gate", "lm_head", "embedding")
"""Ops whose weights no checkpoint quantises unless it names them."""


@dataclass(frozen=True)
class QuantRules:
    """Formats of weights by module.

    Attributes:
        format: format of every quantised product; empty for the model's own.
        exclude: modules that keep the model's own format.
        modules: (pattern, format): named modules, first match wins over everything else.
        kv: format of the KV cache; empty for the model's own.
    """

    format: str = ""
    exclude: tuple[str, ...] = ()
    modules: tuple[tuple[str, str], ...] = ()
    kv: str = ""
    _named: tuple[tuple[ModulePatterns, str], ...] = field(init=False, repr=False, compare=False)
    _excluded: ModulePatterns = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_format: dict[str, list[str]] = {}
        for pattern, name in self.modules:
            by_format.setdefault(name, []).append(pattern)
        named = tuple((ModulePatterns(tuple(items)), name) for name, items in by_format.items())
        object.__setattr__(self, "_named", named)
        object.__setattr__(self, "_excluded", ModulePatterns(self.exclude))

    @property
    def by_place(self) -> bool:
        """Whether two modules of one op can differ: where modules are named."""
        return bool(self.modules or self.exclude)

    def format_of(self, op: str, modules: tuple[str, ...]) -> str:
        """Format name of an op's weights, empty for the model's own.

        Args:
            op: op id.
            modules: checkpoint modules that hold its weights (`layers.3.self_attn.q_proj`); engines that
                fuse them fall back to the plain format when one of them is plain.
        """
        for patterns, name in self._named:
            if any(patterns.match(module) for module in modules):
                return name
        if not self.format or not modules or op in ALWAYS_PLAIN:
            return ""
        return "" if any(self._excluded.match(module) for module in modules) else self.format


@lru_cache(maxsize=1)
def none() -> QuantRules:
    """No quantised weights."""
    return QuantRules()
