"""Colours: the hues of Okabe and Ito, adjusted so that marks and text pass WCAG contrast on both grounds.

A colour never says anything alone: ranked ops carry their number, gaps are hatched, unmodeled kernels
are outlined.
"""

from __future__ import annotations

GROUND = {"light": "#ffffff", "dark": "#0d1117"}
TEXT = {
    "light": {"fg": "#1b1f24", "mut": "#57606a", "link": "#0060a0", "warn": "#8a5a00", "bad": "#b3261e"},
    "dark": {"fg": "#e6edf3", "mut": "#9ba3ad", "link": "#79c0ff", "warn": "#e3b341", "bad": "#ff9d8f"},
}
MARKS = {
    "light": {
        "floor": "#59636e",
        "excess": "#d55e00",
        "unmodeled": "#9a6700",
        "copy": "#0f8aa8",
        "gap": "#7d8690",
        "overlap": "#009e73",
        "comm": "#8250df",
        "r0": "#87919c",
        "r1": "#0072b2",
        "r2": "#009e73",
        "r3": "#c2699b",
        "r4": "#b37400",
        "r5": "#2f8fcb",
    },
    "dark": {
        "floor": "#9ba3ad",
        "excess": "#ff8c42",
        "unmodeled": "#e3b341",
        "copy": "#4cc3de",
        "gap": "#8b949e",
        "overlap": "#2bc49a",
        "comm": "#b392f0",
        "r0": "#7a8594",
        "r1": "#56a3e6",
        "r2": "#2bc49a",
        "r3": "#e0a3c4",
        "r4": "#e6b23a",
        "r5": "#9ad4f5",
    },
}
RANKS = 5
"""So many ops have a colour and a number of their own; the others share `r0`."""

HEAT = ("#2166ac", "#92c5de", "#e7ecf0", "#fdd0a2", "#f4a261", "#d55e00", "#7f2704")
"""Heat steps from clearly below the median to far above it; the third is the median."""


def css() -> str:
    """The custom properties of both themes, for the style sheet."""
    light = "".join(f"--{name}:{value};" for name, value in _all("light"))
    dark = "".join(f"--{name}:{value};" for name, value in _all("dark"))
    return f":root{{{light}}}@media screen and (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def contrast(one: str, other: str) -> float:
    """WCAG 2 contrast ratio of two colours.

    >>> round(contrast("#000000", "#ffffff"), 1)
    21.0
    """
    brighter, darker = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def _all(theme: str) -> list[tuple[str, str]]:
    return [("bg", GROUND[theme]), *TEXT[theme].items(), *MARKS[theme].items()]


def _luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
