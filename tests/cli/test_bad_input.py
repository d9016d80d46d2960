"""What cannot be used ends with one sentence, a hint and exit code 1, and leaves the folder as it was."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fixtures.generations import build_generation
from nsysmodel.cli import main

Prepare = Callable[[Path], None]


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*args: str | os.PathLike[str]) -> Result:
    return CliRunner().invoke(main, ["report", *map(os.fspath, args)])


def state(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder, with its time and content."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def refused(result: Result) -> str:
    """The sentence of an error, after checking its form."""
    assert result.exit_code == 1, result.output
    assert result.stdout == ""
    assert not result.exception or isinstance(result.exception, SystemExit)
    lines = result.stderr.splitlines()
    assert [line.split(":")[0] for line in lines] == ["Error", "Hint"], result.stderr
    sentence = lines[0].removeprefix("Error: ")
    assert sentence.endswith((".", ")"))
    assert "Traceback" not in result.stderr
    return sentence


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE notes (text TEXT)")


def named(generation: str) -> Prepare:
    def prepare(path: Path) -> None:
        build_generation(generation, path)

    return prepare


EXPORTS: dict[str, tuple[Prepare, str]] = {
    "no such file": (lambda path: None, "no file trace.sqlite"),
    "a directory": (lambda path: path.mkdir(), "folder"),
    "an empty file": (lambda path: path.touch(), "empty"),
    "a text file": (lambda path: path.write_text("kernels\n" * 100) and None, "text"),
    "bytes of no form": (lambda path: path.write_bytes(bytes(range(256)) * 40) and None, "trace.sqlite"),
    "a foreign database": (foreign, "not an Nsight Systems export"),
    "an nvprof database": (named("nvprof"), "nvprof"),
    "a damaged database": (named("truncated"), "damaged"),
    "no kernels": (named("zero-kernels"), "no GPU activity"),
    "no work on the GPU": (named("no-cuda"), "no GPU activity"),
    "launches, but no kernel table": (named("wsl2-no-kernel-table"), "not recorded"),
}


@pytest.mark.parametrize("model", [None, "qwen3-30b"])
@pytest.mark.parametrize("name", EXPORTS)
def test_unusable_export(name: str, model: str | None, tmp_path: Path) -> None:
    prepare, says = EXPORTS[name]
    prepare(tmp_path / "trace.sqlite")
    before = state(tmp_path)
    asked = [] if model is None else ["--model", model]
    assert says in refused(run("trace.sqlite", *asked, "--json", "trace.json"))
    assert state(tmp_path) == before


MODELS: dict[str, tuple[str, str | None, str]] = {
    "unknown name": ("qwen3-31b", None, "no bundled model 'qwen3-31b'"),
    "no such file": ("none.yaml", None, "no file none.yaml"),
    "not YAML": ("m.yaml", "name: x\nlayers: [\n", "m.yaml:3: this is not YAML"),
    "wrong field": (
        "m.yaml",
        "name: x\narchitecture:\n  hidden: -3\n",
        "m.yaml:3: architecture.hidden",
    ),
    "wrong expression": (
        "m.yaml",
        "name: x\nkernels:\n- {id: a, pattern: 'a', flop: '__import__(1)', bytes: 1, dtype: bf16}\n",
        "m.yaml:3",
    ),
    "not JSON": ("config.json", '{"hidden_size": ', "config.json:1: this is not JSON"),
    "an empty configuration": ("config.json", "{}", "config.json"),
    "a list": ("m.yaml", "- 1\n- 2\n", "m.yaml"),
    "a text": ("m.txt", "name: x\n", "m.txt is not a model file"),
}


@pytest.mark.parametrize("name", MODELS)
def test_unusable_model(name: str, bundled: Path, tmp_path: Path) -> None:
    model, content, says = MODELS[name]
    if content is not None:
        (tmp_path / model).write_text(content)
    before = state(tmp_path)
    assert says in refused(run(bundled, "--model", model))
    assert state(tmp_path) == before


@pytest.mark.parametrize("output", ["none/r.html", "a-file/r.html", "a-folder"])
def test_unwritable_output(output: str, bundled: Path, tmp_path: Path) -> None:
    (tmp_path / "a-file").write_text("kept")
    (tmp_path / "a-folder").mkdir()
    before = state(tmp_path)
    assert output.removesuffix("/r.html") in refused(run(bundled, "-o", output))
    assert state(tmp_path) == before


def test_disk_that_refuses(bundled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "r.md").write_text("kept")
    before = state(tmp_path)
    monkeypatch.setattr(os, "replace", refuse)
    assert "No space left" in refused(run(bundled, "-o", "r.md"))
    assert state(tmp_path) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_full_device(bundled: Path) -> None:
    assert "/dev/full" in refused(run(bundled, "-o", "/dev/full"))


def test_foreign_file_at_the_default_place(bundled: Path, tmp_path: Path) -> None:
    (tmp_path / f"{bundled.stem}.html").write_text("<title>mine</title>")
    before = state(tmp_path)
    assert "was not written by nsysmodel" in refused(run(bundled, "-m", "qwen3-30b"))
    assert state(tmp_path) == before


@pytest.mark.parametrize("flags", [[], ["--force"]])
@pytest.mark.parametrize("option", ["-o", "--json"])
def test_the_export_is_never_written_over(
    option: str, flags: list[str], bundled: Path, tmp_path: Path
) -> None:
    shutil.copy(bundled, tmp_path / "trace.sqlite")
    before = state(tmp_path)
    assert "SQLite" in refused(run("trace.sqlite", option, "trace.sqlite", *flags))
    assert state(tmp_path) == before


def test_reading_leaves_the_folder_alone(bundled: Path, tmp_path: Path) -> None:
    shutil.copy(bundled, tmp_path / "trace.sqlite")
    before = state(tmp_path)
    assert run("trace.sqlite", "-m", "qwen3-30b", "-f", "json", "-o", "-").exit_code == 0
    assert state(tmp_path) == before


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["a.sqlite", "--no-such-option"],
        ["a.sqlite", "--batch", "0"],
        ["a.sqlite", "--batch", "many"],
        ["a.sqlite", "--phase", "training"],
        ["a.sqlite", "--format", "pdf"],
        ["a.sqlite", "--steps", "9-3"],
        ["a.sqlite", "--time-range", "2-1"],
        ["a.sqlite", "--nvtx", "("],
    ],
    ids=" ".join,
)
def test_wrong_use(args: list[str], tmp_path: Path) -> None:
    result = run(*args)
    assert result.exit_code == 2
    assert result.stderr.startswith("Usage:")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("word", "told"), [("repot", "Did you mean 'report'?"), ("trace.sqlite", "nsysmodel report trace.sqlite")]
)
def test_wrong_command(word: str, told: str, bundled: Path, tmp_path: Path) -> None:
    shutil.copy(bundled, tmp_path / "trace.sqlite")
    result = CliRunner().invoke(main, [word])
    assert result.exit_code == 2
    assert told in result.stderr


@pytest.mark.parametrize(
    "flags",
    [
        ["--gpu", "no-such-gpu"],
        ["--peak", "bf16"],
        ["--clock", "fast"],
        ["--dtype", "bf17"],
        ["--tp", "64"],
        ["--process", "1"],
        ["--device", "9"],
        ["--nvtx", "no such range"],
        ["--time-range", "0-0.00001"],
        ["--hardware-file", "none.yaml"],
    ],
    ids=" ".join,
)
def test_values_that_fit_nothing(flags: list[str], bundled: Path, tmp_path: Path) -> None:
    result = run(bundled, "-m", "qwen3-30b", *flags)
    assert result.exit_code in (1, 2)
    assert result.stderr.startswith("Error: ")
    assert "\nHint: " in result.stderr
    assert not list(tmp_path.iterdir())


def test_verbose_shows_the_traceback(bundled: Path) -> None:
    result = CliRunner().invoke(main, ["-vv", "report", "none.sqlite"])
    assert result.exit_code == 1
    assert type(result.exception).__name__ == "ExportError"
