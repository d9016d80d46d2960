"""SVG from pure functions: elements, scales, ticks. Values in, `Markup` out.

Colours are presentation attributes, so they survive a policy that strips styles; classes override them
for the dark theme. Every string passes through `markupsafe.escape`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

from nsysmodel.report.palette import MARKS, TEXT


def number(value: float) -> str:
    """A coordinate with at most one decimal.

    >>> number(12.0), number(3.1416), number(-0.04)
    ('12', '3.1', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def element(tag: str, content: Markup | str = "", /, **attributes: object) -> Markup:
    """One element; `cls` is `class`, underscores in names become hyphens, None leaves an attribute out.

    >>> print(element("rect", x=1.25, width=3, cls="r1"))
    <rect x="1.2" width="3" class="r1"/>
    >>> print(element("text", "<&>", x=0))
    <text x="0">&lt;&amp;&gt;</text>
    """
    parts = []
    for name, value in attributes.items():
        if value is None:
            continue
        shown = number(value) if isinstance(value, (int, float)) else value
        parts.append(f' {"class" if name == "cls" else name.replace("_", "-")}="{escape(shown)}"')
    head = f"<{tag}{''.join(parts)}"
    return Markup(f"{head}>{escape(content)}</{tag}>" if content else f"{head}/>")


def mark(name: str) -> dict[str, str]:
    """Class and light-theme fill of a mark of the palette."""
    return {"cls": f"m-{name}", "fill": MARKS["light"][name]}


def label(x: float, y: float, content: str, anchor: str | None = None, cls: str = "t") -> Markup:
    """A small caption."""
    return element(
        "text", content, x=x, y=y, text_anchor=anchor, cls=cls, fill=TEXT["light"]["mut"], font_size=11
    )


def join(parts: Iterable[Markup]) -> Markup:
    """Parts side by side."""
    return Markup("").join(parts)


def figure(ident: str, width: int, height: int, title: str, description: str, content: Markup) -> Markup:
    """A whole drawing with its accessible name and description."""
    inner = element("title", title, id=f"{ident}-t") + element("desc", description, id=f"{ident}-d") + content
    return element(
        "svg", inner, viewBox=f"0 0 {width} {height}", role="img", aria_labelledby=f"{ident}-t {ident}-d",
        cls="fig",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps a value to a coordinate, linearly or by its logarithm.

    >>> Scale(0, 10, 0, 100)(2.5), Scale(1, 100, 0, 10, log=True)(10)
    (25.0, 5.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The coordinate of `value`."""
        if self.log:
            position = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            position = (value - self.low) / (self.high - self.low)
        return self.start + position * (self.end - self.start)


def decades(low: float, high: float) -> list[float]:
    """Powers of ten from `low` to `high`, both included where they are powers themselves.

    >>> decades(0.5, 250)
    [1.0, 10.0, 100.0]
    """
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    return [10.0**power for power in range(first, last + 1)]


def ticks(high: float, count: int = 6) -> list[float]:
    """Round values from 0 to `high`, about `count` of them, 1, 2 or 5 times a power of ten apart.

    >>> ticks(4.04)
    [0.0, 1.0, 2.0, 3.0, 4.0]
    """
    if high <= 0 or not math.isfinite(high):
        return [0.0]
    rough = high / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
    return [step * k for k in range(int(high / step + 1e-9) + 1)]
