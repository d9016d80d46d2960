"""`compare`, `gate` and `baseline` on exports: what they say, write, and leave with."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from fixtures import pairs
from nsysmodel import analyze
from nsysmodel.cli import main
from nsysmodel.comparison import taking


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of one build: two alike, with a slower or faster op, with other names, of another GPU."""
    where = tmp_path_factory.mktemp("pairs")
    made = {
        "a": pairs.passes(1),
        "b": pairs.passes(2),
        "slow": pairs.passes(3, slower={"gate_up_proj": 1.03}),
        "fast": pairs.passes(4, slower={"gate_up_proj": 0.9}),
        "mixed": pairs.passes(5, slower={"gate_up_proj": 0.9, "down_proj": 1.1}),
        "renamed": pairs.passes(6, change=pairs.renamed),
    }
    for name, run in made.items():
        pairs.write(where / f"{name}.sqlite", run)
    pairs.write(where / "other.sqlite", made["b"], name="NVIDIA H100 80GB HBM3")
    return where


_KNOWN: dict[str, Any] = {}


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, which reads the same generated export in the same way only once."""

    def wrapper(export: Any, *args: Any, **named: Any) -> Any:
        key = repr((function.__name__, export, args, named))
        if not str(export).endswith(".sqlite"):
            return function(export, *args, **named)
        if key not in _KNOWN:
            _KNOWN[key] = function(export, *args, **named)
        return _KNOWN[key]

    return wrapper


@pytest.fixture
def run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Run a command in an empty folder; `{name}` is the export of that name, `{model}` its model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(analyze, "evaluate", remembered(analyze.evaluate))
    monkeypatch.setattr(taking, "snapshot", remembered(taking.snapshot))
    known = {path.stem: str(path) for path in folder.glob("*.sqlite")}
    known["model"] = str(folder / "a.config.json")

    def invoke(line: str) -> Result:
        return CliRunner().invoke(main, [word.format(**known) for word in line.split()])

    return invoke


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("compare {a} {b} -m {model}", "no_change"),
        ("compare {a} {slow} -m {model}", "regressed"),
        ("compare {a} {fast} -m {model}", "improved"),
        ("compare {a} {mixed} -m {model}", "mixed"),
        ("compare {a} {renamed} -m {model}", "no_change"),
        ("compare {a} {other} -m {model}", "not_comparable"),
        ("compare {a} {b}", "no_change"),
        ("compare {a} {renamed}", "no_change"),
        ("compare {a} {slow}", "regressed"),
        ("compare {a} {b} -m qwen3-30b", "not_comparable"),
    ],
)
def test_verdicts(run: Callable[..., Result], line: str, status: str) -> None:
    result = run(line + " -f json -o out.json")
    assert result.exit_code == 0, result.output
    body = json.loads(Path("out.json").read_text())
    assert body["verdict"]["status"] == status
    assert body["ops"]
    for pair in body["pairs"]:
        moved = sum(part["difference_ns"] for part in pair["waterfall"])
        assert pair["a_mean_ns"] + moved == pair["b_mean_ns"]


def test_only_the_slower_op_is_named(run: Callable[..., Result]) -> None:
    result = run("compare {a} {slow} -m {model} --json out.json")
    changed = [
        op["op"] for op in json.loads(Path("out.json").read_text())["ops"] if op["change"] != "unchanged"
    ]
    assert changed == ["gate_up_proj"]
    assert "gate_up_proj: 381 µs → 394 µs (+3.4 %" in " ".join(result.output.split())


def test_renamed_kernels_are_paired_without_a_model(run: Callable[..., Result]) -> None:
    run("compare {a} {renamed} --json out.json")
    ops = json.loads(Path("out.json").read_text())["ops"]
    assert sum(op["how"] == "renamed" for op in ops) >= 4
    assert {op["change"] for op in ops} == {"unchanged"}


def test_launch_bound_ops_have_no_ratio(run: Callable[..., Result]) -> None:
    run("compare {a} {b} -m {model} --json out.json")
    ratios = {op["op"]: op["a_ratio"] for op in json.loads(Path("out.json").read_text())["ops"]}
    assert ratios["rope"] is ratios["kv_write"] is None
    assert 1 < ratios["gate_up_proj"] < 2


def test_every_format(run: Callable[..., Result]) -> None:
    for name in ("out.html", "out.md", "out.json", "out.csv"):
        result = run(f"compare {{a}} {{slow}} -m {{model}} -o {name} -q")
        assert (result.exit_code, result.output) == (0, "")
    assert Path("out.md").read_text().startswith("<!-- nsysmodel compare -->")
    assert "<h1" in Path("out.html").read_text()
    assert Path("out.csv").read_text().startswith("op,")
    assert run("compare {a} {slow} -m {model} -o - -f markdown -q").stdout == Path("out.md").read_text()
    assert "Regressed" in run("compare {a} {slow} -m {model} -f text -o -").stdout


def test_sides_with_several_runs(run: Callable[..., Result]) -> None:
    result = run("compare --a {a} {b} --b {slow} {slow} -m {model} --json out.json")
    assert result.exit_code == 0, result.output
    body = json.loads(Path("out.json").read_text())
    assert [len(body[side]) for side in "ab"] == [2, 2]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("compare {a}", "Two exports are needed"),
        ("compare --a {a} -m {model}", "--a and --b belong together"),
        ("compare {a} --a {a} --b {b}", "Give either exports"),
        ("compare {a} {b} --threshold much", "is no share"),
        ("compare {a} {b} --min-change 3kg", "is not a time"),
        ("gate {a}", "give --budget, --baseline, or both"),
    ],
)
def test_wrong_use(run: Callable[..., Result], line: str, words: str) -> None:
    result = run(line)
    assert result.exit_code == 2
    assert words in result.output


BUDGETS = {
    "kept": "step: {max_ns: 5ms, max_ratio: 3}\nmin_coverage: 90%\nmax_gap_share: 0.5\n",
    "step": "step: {max_ns: 1ms}\n",
    "ratio": "step: {max_ratio: 1.1}\n",
    "coverage": "min_coverage: 1.0\n",
    "gaps": "max_gap_share: 0.1%\n",
    "op": "ops:\n  gate_up_proj: {max_ns: 300us}\n",
    "op_ratio": "ops:\n  lm_head: {max_ratio: 1.0}\n",
    "any": "ops:\n  '*': {max_ratio: 1.2}\n",
    "unmodeled": "max_unmodeled_share: 0\n",
    "latency": "ops:\n  act: {max_ratio: 2}\n",
    "unknown_key": "step: {max_ns: 5ms}\nmax_gap: 0.5\n",
    "unknown_op": "ops:\n  gate_up: {max_ns: 5ms}\n",
    "not_yaml": "step: [\n",
    "list": "- 1\n",
    "negative": "step: {max_ns: -4}\n",
    "share": "min_coverage: 90\n",
}
SCENARIOS = [
    ("gate {a} -m {model} --budget kept", 0),
    ("gate {a} -m {model} --budget step", 3),
    ("gate {a} -m {model} --budget ratio", 3),
    ("gate {a} -m {model} --budget coverage", 3),
    ("gate {a} -m {model} --budget gaps", 3),
    ("gate {a} -m {model} --budget op", 3),
    ("gate {a} -m {model} --budget op_ratio", 3),
    ("gate {a} -m {model} --budget any", 3),
    ("gate {a} -m {model} --budget unmodeled", 3),
    ("gate {a} -m {model} --budget latency", 4),
    ("gate {a} -m qwen3-30b --budget ratio", 4),
    ("gate {a} --budget ratio", 4),
    ("gate {a} --budget gaps", 3),
    ("gate {a} --budget step", 3),
    ("gate {a} -m {model} --budget unknown_key", 1),
    ("gate {a} -m {model} --budget unknown_op", 1),
    ("gate {a} -m {model} --budget not_yaml", 1),
    ("gate {a} -m {model} --budget list", 1),
    ("gate {a} -m {model} --budget negative", 1),
    ("gate {a} -m {model} --budget share", 1),
    ("gate {a} -m {model} --budget missing", 1),
    ("gate missing.sqlite -m {model} --budget kept", 1),
    ("gate {b} -m {model} --baseline {a}", 0),
    ("gate {fast} -m {model} --baseline {a}", 0),
    ("gate {slow} -m {model} --baseline {a}", 3),
    ("gate {mixed} -m {model} --baseline {a}", 3),
    ("gate {other} -m {model} --baseline {a}", 4),
    ("gate {slow} -m {model} --baseline {a} --threshold 10%", 0),
    ("gate {slow} --baseline {a}", 3),
    ("gate {b} -m {model} --baseline {a} --budget step", 3),
    ("gate {b} -m {model} --baseline {a} --budget kept", 0),
    ("gate {a}", 2),
    ("baseline check {b} saved.json -m {model}", 0),
    ("baseline check {slow} saved.json -m {model}", 3),
    ("baseline check {other} saved.json -m {model}", 4),
    ("baseline check {b} saved.json", 1),
    ("baseline check {b} plain.json", 0),
    ("baseline check {slow} plain.json", 3),
    ("baseline check {b} broken.json -m {model}", 1),
    ("baseline save {a} -m qwen3-30b -o x.json", 1),
    ("compare saved.json {slow} -m {model}", 0),
]
"""The table scenario → exit code of docs/gate.md."""


@pytest.fixture
def files(run: Callable[..., Result]) -> None:
    for name, text in BUDGETS.items():
        Path(name).write_text(text)
    Path("broken.json").write_text('{"schema": "nsysmodel.baseline/1"}')


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(("line", "code"), SCENARIOS)
def test_exit_codes(run: Callable[..., Result], line: str, code: int) -> None:
    if "saved.json" in line:
        assert run("baseline save {a} -m {model} -o saved.json").exit_code == 0
    if "plain.json" in line:
        assert run("baseline save {a} -o plain.json").exit_code == 0
    result = run(line)
    assert result.exit_code == code, result.output
    if code == 1:
        assert result.stderr.startswith("Error: ")


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("gate {a} -m {model} --budget step", "FAILED step.max_ns: a step takes 1.19 ms, at most 1 ms"),
        ("gate {a} -m {model} --budget latency", "CANNOT JUDGE ops.act.max_ratio: act is bound by launches."),
        ("gate {a} --budget ratio", "CANNOT JUDGE step.max_ratio: no model was given (-m)."),
        ("gate {slow} -m {model} --baseline {a}", "FAILED baseline.ops.gate_up_proj: gate_up_proj took 381"),
        ("gate {other} -m {model} --baseline {a}", "CANNOT JUDGE baseline: Not comparable: The GPU differs"),
        ("gate {a} -m {model} --budget unknown_key", "unknown_key:2: max_gap: there is no such limit."),
        ("gate {a} -m {model} --budget unknown_key", "Did you mean max_gap_share?"),
        ("gate {a} -m {model} --budget unknown_op", "unknown_op:2: ops.gate_up: the model has no such op."),
        ("gate {a} -m {model} --budget unknown_op", "Did you mean gate_up_proj?"),
        ("gate {a} -m {model} --budget negative", "negative:1: step.max_ns: input should be greater than 0."),
    ],
)  # fmt: skip
def test_one_line_says_what_is_wrong(run: Callable[..., Result], line: str, words: str) -> None:
    assert words in run(line).output


@pytest.mark.usefixtures("files")
def test_junit_and_annotations(run: Callable[..., Result]) -> None:
    result = run("gate {a} -m {model} --budget op --junit out.xml --github")
    assert result.exit_code == 3
    suite = ElementTree.parse("out.xml").getroot()
    assert suite.tag == "testsuites"
    assert suite.get("failures") == "1"
    assert [case.get("name") for case in suite.iter("testcase")] == ["ops.gate_up_proj.max_ns"]
    line = next(line for line in result.output.splitlines() if line.startswith("::"))
    assert re.match(
        r"::error file=op,line=2,title=nsysmodel%3A ops\.gate_up_proj\.max_ns::gate_up_proj takes", line
    )


@pytest.mark.usefixtures("files")
def test_gate_as_json_and_markdown(run: Callable[..., Result]) -> None:
    body = json.loads(run("gate {a} -m {model} --budget op -f json").stdout)
    assert (body["schema"], body["outcome"], body["exit_code"]) == ("nsysmodel.gate/1", "failed", 3)
    assert run("gate {a} -m {model} --budget op -f markdown").stdout.startswith(
        "### The gate failed: 1 of 1 limit"
    )


def test_baseline_is_small_and_says_nothing_of_the_machine(run: Callable[..., Result], folder: Path) -> None:
    result = run("baseline save {a} -m {model} -o saved.json")
    assert "16 steps" in result.output
    text = Path("saved.json").read_text()
    assert len(text) < 30_000
    assert str(folder) not in text
    from fixtures.writer import CANARIES

    assert not [word for word in CANARIES if word in text]
