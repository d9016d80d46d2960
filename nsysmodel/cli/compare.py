"""`nsysmodel compare`: set runs side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from nsysmodel.cli.options import (
    chosen_format,
    hardware_options,
    output_options,
    selection_options,
    workload_options,
)
from nsysmodel.cli.output import check_writable, write_output
from nsysmodel.cli.reading import reading_options
from nsysmodel.cli.thresholds import threshold_options, thresholds_of
from nsysmodel.progress import settle
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from nsysmodel.comparison.result import Comparison


class ListCommand(click.Command):
    """A command whose `--a` and `--b` take every word up to the next option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it, after `--a X Y` has become `--a X --a Y`."""
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """Repeat `--a` and `--b` before each of their words.

    >>> spread(["--a", "x", "y", "--b", "z", "-m", "tiny"])
    ['--a', 'x', '--a', 'y', '--b', 'z', '-m', 'tiny']
    """
    result: list[str] = []
    side, fresh = "", False
    for word in args:
        if word in ("--a", "--b"):
            side, fresh = word, True
            result.append(word)
        elif word.startswith("-") and word != "-":
            side = ""
            result.append(word)
        else:
            result += [word] if fresh or not side else [side, word]
            fresh = False
    return result


@click.command(cls=ListCommand)
@click.argument("exports", nargs=-1, type=click.Path())
@click.option("--a", "side_a", multiple=True, metavar="FILE…", help="Runs of A, where there are several.")
@click.option("--b", "side_b", multiple=True, metavar="FILE…", help="Runs of B, where there are several.")
@click.option(
    "-m",
    "--model",
    metavar="NAME|FILE",
    help="Align by the ops of this model; else by kernel name and place.",
)
@threshold_options
@workload_options
@hardware_options
@selection_options
@reading_options
@output_options("text", "html", "markdown", "json", "csv", default="text")
@click.option("--json", "json_file", metavar="FILE", help="Write the JSON, too.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors.")
@click.pass_context
def command(
    ctx: click.Context,
    exports: tuple[str, ...],
    side_a: tuple[str, ...],
    side_b: tuple[str, ...],
    model: str | None,
    threshold: str,
    min_change: str,
    confidence: float,
    workload: WorkloadRequest,
    hardware: HardwareRequest,
    selection: Selection,
    output_format: str | None,
    output: str | None,
    force: bool,
    json_file: str | None,
    quiet: bool,
) -> None:
    """Set run B against run A: what got faster or slower, and what is only noise.

    Every EXPORT after the first is set against the first. An export may also be a baseline file.

    \b
    Examples:
      nsysmodel compare before.sqlite after.sqlite --model qwen3-30b
      nsysmodel compare before.sqlite after.sqlite -o compare.html
      nsysmodel compare --a old1.sqlite old2.sqlite old3.sqlite --b new1.sqlite new2.sqlite new3.sqlite
    """
    sides = _sides(exports, side_a, side_b)
    chosen = chosen_format(output_format, output, "text")
    for path in (output, json_file):
        check_writable(path, force=force, named=True)
    from nsysmodel.cli.report import _command_line
    from nsysmodel.comparison import compare

    comparison = compare(
        *sides,
        model=model,
        workload=workload,
        hardware=hardware,
        selection=selection,
        thresholds=thresholds_of(threshold, min_change, confidence),
        command=_command_line(*exports, *side_a, *side_b, model, output, json_file, *hardware.files),
    )
    if chosen != "text" or output is not None:
        write_output(output, _rendered(comparison, chosen), force=force)
    if json_file is not None:
        from nsysmodel.report.compare_text import render_compare_json

        write_output(json_file, render_compare_json(comparison), force=force)
    if not quiet and (chosen, output) != ("text", "-"):
        _tell(ctx, comparison, output, to_stderr=chosen != "text" and output in (None, "-"))


def _sides(exports: tuple[str, ...], a: tuple[str, ...], b: tuple[str, ...]) -> list[list[str]]:
    """The sides: A first, then everything that is set against it."""
    if bool(a) != bool(b):
        raise click.UsageError("--a and --b belong together: give the runs of both sides.")
    if a and exports:
        raise click.UsageError("Give either exports, or --a and --b.")
    if a:
        return [list(a), list(b)]
    if len(exports) < 2:
        raise click.UsageError("Two exports are needed: nsysmodel compare A B.")
    return [[path] for path in exports]


def _rendered(comparison: Comparison, chosen: str) -> str:
    if chosen == "text":
        import io

        from rich.console import Console

        from nsysmodel.report.compare_text import compare_terminal

        stream = io.StringIO()
        compare_terminal(comparison, Console(file=stream, width=160), None)
        return stream.getvalue()
    if chosen == "html":
        from nsysmodel.report.compare_html import render_compare_html

        return render_compare_html(comparison)
    if chosen == "csv":
        return str(comparison.to_frame().to_csv(index=False))
    from nsysmodel.report.compare_text import render_compare_json, render_compare_markdown

    return (render_compare_json if chosen == "json" else render_compare_markdown)(comparison)


def _tell(ctx: click.Context, comparison: Comparison, output: str | None, *, to_stderr: bool) -> None:
    from rich.console import Console

    from nsysmodel.report.compare_text import compare_terminal

    settle()
    console = Console(stderr=to_stderr, force_terminal=ctx.color, highlight=False)
    compare_terminal(comparison, console, None if output in (None, "-") else output)
