"""The help page is written without click; here it is held against the group of commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from nsysmodel.cli import main
from nsysmodel.help_page import ABOUT, COMMANDS, EXIT_CODES, OPTIONS, page

ROOT = Path(__file__).resolve().parents[2]


def _run(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "nsysmodel", *args]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=False, cwd=ROOT)


def test_the_page_lists_the_options_of_the_group() -> None:
    context = click.Context(main, info_name="nsysmodel", **main.context_settings)
    records = [option.get_help_record(context) for option in main.get_params(context)]
    assert [record for record in records if record] == list(OPTIONS.items())
    assert (main.help, main.epilog) == (ABOUT, EXIT_CODES)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_lists_commands_that_exist(name: str) -> None:
    assert isinstance(main.get_command(click.Context(main), name), click.Command)


@pytest.mark.parametrize("width", [50, 61, 78, 98])
def test_the_page_reads_as_click_would_write_it(width: int) -> None:
    formatter = click.HelpFormatter(width=width)
    context = click.Context(main, info_name="nsysmodel", **main.context_settings)
    main.format_usage(context, formatter)
    main.format_help_text(context, formatter)
    click.Command.format_options(main, context, formatter)
    with formatter.section("Commands"):
        formatter.write_dl(list(COMMANDS.items()))
    main.format_epilog(context, formatter)
    assert page(width) == formatter.getvalue().rstrip("\n")


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_the_group_and_the_program_show_the_same_page(flag: str) -> None:
    shown = CliRunner().invoke(main, [flag], terminal_width=78)
    assert shown.exit_code == 0
    assert shown.stdout == page(78) + "\n"
    done = _run(flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == shown.stdout.split()


def test_help_does_not_import_click() -> None:
    code = "import sys; sys.argv[1:] = ['-h']; from nsysmodel.__main__ import main; main()"
    code += "; assert not {'click', 'typing', 're'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_other_arguments_go_to_the_group() -> None:
    assert "Usage: nsysmodel report" in _run("report", "--help").stdout
    assert "Did you mean 'report'?" in _run("reprot", "--help").stderr
