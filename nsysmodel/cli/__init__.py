"""The command line: one group, one module per command, loaded when it is called.

`nsysmodel --help` must not import pandas: the one-line helps stand here, and a command's module is
imported only when that command runs.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from nsysmodel.errors import NsysModelError

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


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the help page."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name, from its module."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"nsysmodel.cli.{cmd_name}")
        command: click.Command = module.command
        command.name = cmd_name
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does it, with a suggestion for a mistyped command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            import difflib

            close = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = ""
            if close:
                hint = f" Did you mean {close[0]!r}?"
            elif os.path.exists(args[0]):
                hint = f" To judge this file: nsysmodel report {args[0]}"
            raise click.UsageError(error.message + hint, ctx=error.ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The table of commands, without importing any of them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; our own errors become one sentence, a hint and an exit code."""
        try:
            return super().invoke(ctx)
        except NsysModelError as error:
            if ctx.params.get("verbose", 0) >= 2:
                raise
            click.echo(f"Error: {error.message}", err=True)
            if error.hint:
                click.echo(f"Hint: {error.hint}", err=True)
            ctx.exit(error.exit_code)


def _version(ctx: click.Context, _param: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    from importlib.metadata import version

    click.echo(f"nsysmodel {version('nsysmodel')}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 the input or the model is at fault, 2 usage, 3 a gate failed, "
    "4 cannot judge (only where a gate was asked for).",
)
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Show the version."
)
@click.option("-v", "--verbose", count=True, help="More detail; -vv shows the traceback of an error of ours.")
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour on the terminal; auto honours NO_COLOR and FORCE_COLOR.",
)
@click.pass_context
def main(ctx: click.Context, verbose: int, color: str) -> None:
    """Which operation of your model runs how far above its physical floor, from an Nsight Systems export."""
    if verbose:
        import logging

        logging.basicConfig(level=logging.DEBUG if verbose > 1 else logging.INFO, stream=sys.stderr)
    ctx.color = {"auto": _wants_color(), "always": True, "never": False}[color]


def _wants_color() -> bool | None:
    """What the environment asks for; None lets click look at the terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return None
