"""The command line: one group, one module per command, loaded when it is called.

The help page comes from `nsysmodel.help_page`, which needs no click; a command's module is imported only
when that command runs.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

import click

from nsysmodel.errors import NsysModelError
from nsysmodel.help_page import ABOUT, COMMANDS, EXIT_CODES, OPTIONS, page

__all__ = ["COMMANDS", "main"]


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

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The help page, without importing any command."""
        formatter.write(page(formatter.width))

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
    help=ABOUT,
    epilog=EXIT_CODES,
)
@click.option(
    "--version",
    is_flag=True,
    callback=_version,
    expose_value=False,
    is_eager=True,
    help=OPTIONS["--version"],
)
@click.option("-v", "--verbose", count=True, help=OPTIONS["-v, --verbose"])
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help=OPTIONS["--color [auto|always|never]"],
)
@click.pass_context
def main(ctx: click.Context, verbose: int, color: str) -> None:
    """The program, as far as all commands share it."""
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
