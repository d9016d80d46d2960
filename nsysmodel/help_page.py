"""The help page of the whole program, written without click: whoever asks for it should not wait.

Importing click takes more than twice as long as starting Python. So the words of the page stand here, the
group of commands shows the same page, and a test holds the words against the group's options.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing typing would take a tenth of the time of the whole page
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

ABOUT = "Which operation of your model runs how far above its physical floor, from an Nsight Systems export."
COMMANDS = {
    "report": "Judge an export against a model and write a report.",
    "inspect": "Show what is in an export, what is missing, and how to capture it better.",
    "batch": "Judge many exports: a report each, an index page, one table of all ops.",
    "kernels": "List kernels by name, op, stream, …, or one row per instance.",
    "memory": "List copies and memsets with their effective bandwidth.",
    "compare": "Set runs side by side: what got faster or slower, and what is noise.",
    "gate": "Exit 3 where a budget is broken or a run is slower than its baseline.",
    "baseline": "Keep the results of a run in a small file, and hold others against it.",
    "estimate": "Compute the floors of a model on a GPU; needs no export.",
    "model": "List, show, check and start model files.",
    "hardware": "List and show GPUs; compute peaks from SMs, FLOP per cycle and clock.",
    "roofline": "Ridge points and bounds of a GPU; judge measurements against them.",
    "cache": "Show or remove what --cache keeps of decoded exports.",
    "scale": "Amdahl, Gustafson and communication: how far N GPUs can go.",
}
OPTIONS = {
    "--version": "Show the version.",
    "-v, --verbose": "More detail; -vv shows the traceback of an error of ours.",
    "--color [auto|always|never]": "Colour on the terminal; auto honours NO_COLOR and FORCE_COLOR.",
    "-h, --help": "Show this message and exit.",
}
EXIT_CODES = (
    "Exit codes: 0 done, 1 the input or the model is at fault, 2 usage, 3 a gate failed, "
    "4 cannot judge (only where a gate was asked for)."
)
WIDEST, NARROWEST = 100, 50


def page(width: int) -> str:
    """The page in lines of at most `width` characters.

    >>> page(78).splitlines()[0]
    'Usage: nsysmodel [OPTIONS] COMMAND [ARGS]...'
    """
    lines = ["Usage: nsysmodel [OPTIONS] COMMAND [ARGS]...", "", *_wrapped(ABOUT, width, "  ")]
    for title, words in (("Options", OPTIONS), ("Commands", COMMANDS)):
        lines += ["", f"{title}:", *_listed(words, width)]
    return "\n".join([*lines, "", *_wrapped(EXIT_CODES, width, "  ")])


def terminal_width() -> int:
    """Characters of a line on standard output, as click counts them."""
    import os

    try:
        columns = int(os.environ.get("COLUMNS", "0")) or os.get_terminal_size(1).columns
    except (ValueError, OSError):
        columns = 0
    return max(min(columns or 80, WIDEST) - 2, NARROWEST)


def _listed(words: Mapping[str, str], width: int) -> Iterator[str]:
    """Terms on the left, what they mean on the right."""
    left = max(map(len, words)) + 4
    for term, meaning in words.items():
        first, *others = _wrapped(meaning, width, " " * left)
        yield f"  {term}".ljust(left) + first[left:]
        yield from others


def _wrapped(text: str, width: int, indent: str) -> Iterable[str]:
    lines, line = [], indent
    for word in text.split():
        if line != indent and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = indent
        line += word if line == indent else f" {word}"
    return [*lines, line]
