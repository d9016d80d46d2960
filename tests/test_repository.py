"""Rules that the whole repository keeps: sizes, imports, words of the documents."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsysmodel.cli import COMMANDS, main
from nsysmodel.join import ledger, observe, steps, windows
from nsysmodel.judge import judged, ops, verdict

ROOT = Path(__file__).resolve().parent.parent
MOST_LINES = 300
NEVER_OVER = 500
MOST_BODY_LINES = 50
LONGER = {
    "nsysmodel/estimation.py",
    "nsysmodel/result.py",
}
"""Modules that are longer than they should be. None may be added."""
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".json", ".j2", ".css", ".js", ".txt", ".csv", ""}
SKIPPED = {".git", ".venv", "__pycache__", "dist", "build", "node_modules"}
FOLDERS = (".ci", "benchmarks", "docs", "fixtures", "nsysmodel", "reports", "tests")
MACHINE = re.compile(r"/(?:home|root|Users|work)/\w|/tmp/\w|C:\\\\Users")


def files(*suffixes: str) -> list[Path]:
    """Files of the repository with one of the suffixes."""
    found = [path for path in ROOT.iterdir() if path.is_file() and path.suffix in (".md", ".toml")]
    for folder in FOLDERS:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and not SKIPPED & set(path.parts):
                found.append(path)
    return sorted(path for path in found if not suffixes or path.suffix in suffixes)


def short(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def modules() -> list[Path]:
    return [path for path in files(".py") if "nsysmodel" in path.relative_to(ROOT).parts[:1]]


def test_modules_are_short() -> None:
    lines = {short(path): path.read_text("utf-8").count("\n") for path in modules()}
    longer = {name for name, count in lines.items() if count > MOST_LINES}
    assert longer <= LONGER
    assert max(lines.values()) <= NEVER_OVER


def test_every_folder_of_modules_is_a_package() -> None:
    folders = {path.parent for path in modules()}
    assert not [short(folder) for folder in folders if not (folder / "__init__.py").exists()]


def test_functions_are_short() -> None:
    long = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                first = node.body[1] if ast.get_docstring(node) and node.body[1:] else node.body[0]
                if (node.end_lineno or 0) - first.lineno >= MOST_BODY_LINES:
                    long.append(f"{short(path)}: {node.name}")
    assert not long


def test_no_path_of_a_machine() -> None:
    found = []
    for path in files(*TEXT):
        match = MACHINE.search(path.read_text("utf-8", errors="replace"))
        if match and short(path) not in MAY_NAME_PATHS:
            found.append(f"{short(path)}: {match.group()}")
    assert not found


MAY_NAME_PATHS = {
    "tests/test_repository.py",
    "fixtures/target.py",
}
"""Files whose subject is such paths: canaries that no output may contain."""


def test_readme_names_the_tests_that_ci_runs() -> None:
    blocks = re.findall(r"```sh\n(.*?)\n```", (ROOT / "README.md").read_text("utf-8"), re.S)
    commands = [block for block in blocks if "pytest" in block]
    assert len(commands) == 1
    ci = (ROOT / ".ci" / "run").read_text("utf-8")
    quoted = re.search(r"<<'TESTS'\n(.*?)\nTESTS\n", ci, re.S)
    assert quoted is not None
    assert quoted.group(1) == commands[0]
    assert os.access(ROOT / ".ci" / "run", os.X_OK)


def test_readme_shows_what_the_program_prints(bundled: Path, tmp_path: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    command = re.search(r"pip install \. && nsysmodel (.*)\n", text)
    shown = re.search(r"```text\n(.*?)```", text, re.S)
    assert command is not None
    assert shown is not None
    args = shlex.split(command.group(1))
    args[1] = str(ROOT / args[1])
    assert args[1] == str(bundled)
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        result = CliRunner().invoke(main, args, env={"COLUMNS": "120"})
    finally:
        os.chdir(before)
    printed = "".join(line.rstrip() + "\n" for line in result.stdout.splitlines())
    assert printed == shown.group(1)


def test_python_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    assert code is not None
    monkeypatch.chdir(ROOT)
    exec(compile(code.group(1), "README.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok A step takes 4.89 ms")
    assert lines[1].startswith("o_proj memory 5.0")


@pytest.mark.parametrize("path", files(".md"), ids=short)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        assert there.exists(), f"{short(path)} links to {target}"
        if anchor:
            heads = re.findall(r"^#+ (.*)$", there.read_text("utf-8"), re.M)
            slugs = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
            assert anchor in slugs, f"{short(path)} links to {target}"


@pytest.mark.parametrize("path", [p for p in files(".md") if p.parent == ROOT / "docs"], ids=short)
def test_every_document_is_in_the_index(path: Path) -> None:
    assert path.name == "README.md" or f"]({path.name})" in (ROOT / "docs" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_documented(command: str) -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    assert f"`{command}`" in readme
    docs = "".join(path.read_text("utf-8") for path in (ROOT / "docs").glob("*.md"))
    assert f"nsysmodel {command}" in docs


@pytest.mark.parametrize("command", ["report", "inspect", "kernels", "memory", "estimate"])
def test_every_flag_is_documented(command: str) -> None:
    shared = "report-command.md"
    texts = [(ROOT / "docs" / name).read_text("utf-8") for name in {shared, f"{command}.md"} - {"report.md"}]
    shown = CliRunner().invoke(main, [command, "--help"]).stdout
    flags = re.findall(r"^ +(-\w, )?(--[a-z-]+)", shown, re.M)
    assert len(flags) > 3
    general = {"--help", "--force"}
    missing = [
        long
        for brief, long in flags
        if long not in general
        and not any(word in text for text in texts for word in (long, brief[:2] or long))
    ]
    assert not missing


@pytest.mark.parametrize("args", [["--help"], ["--version"], *([name, "--help"] for name in COMMANDS)])
def test_help_is_quick(args: list[str]) -> None:
    code = (
        "import sys\n"
        "from nsysmodel.cli import main\n"
        f"main({args!r}, standalone_mode=False)\n"
        "heavy = {'pandas', 'pyarrow', 'numpy', 'sqlite_utils', 'jinja2', 'pydantic'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_package_is_quick_to_import() -> None:
    code = (
        "import sys, nsysmodel\n"
        "print(nsysmodel.__version__)\n"
        "assert not {'pandas', 'pyarrow', 'numpy', 'click'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (judged.MOST_HIDDEN == 0.2, "at least 20 % of the device's time"),
        (ledger.LEAST_COVERAGE == 0.5, "less than 50 % of the kernel time"),
        (ledger.MOST_MISSING == 0.1, "more than 10 % of the step's floor"),
        (verdict.MOST_BEATEN == 0.1, "at least 10 % of the floor"),
        (verdict.BEATEN == 0.9, "less than 90 % of their floor"),
        (verdict.WEIGHTY_NS == 3000, "below 3 µs"),
        (windows.WARM_UP == 1.03, "over 3 % more time"),
        (windows.OUTLIER == 1.25, "by a factor of 1.25"),
        (windows.ENOUGH == 3, "more than three whole steps"),
        (steps.AGREE == 0.9, "at least 90 % of the steps"),
        (observe.MOST_DECODE_TOKENS == 512, "over 512 tokens"),
        (ops.LOW_CONFIDENCE == 0.6, "below 0.6"),
    ],
)
def test_thresholds_are_those_of_the_code(value: bool, words: str) -> None:
    text = (ROOT / "docs" / "how-the-join-works.md").read_text("utf-8")
    assert words in " ".join(text.split())
    assert value, f"the code no longer agrees with: {words}"


def test_versions_agree() -> None:
    import nsysmodel

    text = (ROOT / "pyproject.toml").read_text("utf-8")
    declared = re.search(r'^version = "(.*)"', text, re.M)
    assert declared is not None
    assert nsysmodel.__version__ == declared.group(1)
    assert declared.group(1) in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_oldest_versions_are_those_that_are_tested() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    block = re.search(r"^dependencies = \[(.*?)\]", text, re.S | re.M)
    assert block is not None
    floors = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', block.group(1)))
    pinned = dict(re.findall(r"^([\w-]+)==([\d.]+)$", (ROOT / ".ci/minimum.txt").read_text(), re.M))
    assert floors.keys() == pinned.keys()
    for name, floor in floors.items():
        assert (pinned[name] + ".0.0").startswith(floor), name
