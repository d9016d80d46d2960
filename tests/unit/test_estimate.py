"""`estimate` and `model` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from nsysmodel.cli.estimate import command as estimate_command
from nsysmodel.cli.estimate import values
from nsysmodel.cli.model import command as model_command
from nsysmodel.errors import HardwareError, ModelError, OutputError, WorkloadError
from nsysmodel.estimation import accepted_tokens, estimate, from_counts
from nsysmodel.hardware.resolve import resolve


def run(command: object, *arguments: str) -> str:
    result = CliRunner().invoke(command, list(arguments), catch_exceptions=False)  # type: ignore[arg-type]
    assert result.exit_code == 0, result.output
    return result.stdout


def test_json_of_the_main_job() -> None:
    body = json.loads(
        run(
            estimate_command, "qwen3-30b", "--gpu", "gh200", "--batch", "1", "--context", "4096", "-f", "json"
        )
    )
    assert body["floor_hbm_ns"] == 1_621_691
    assert body["floor_strict_ns"] == 1_624_765
    assert body["tokens_per_s"] == pytest.approx(616.6, abs=0.1)
    assert body["weights_once_ns"] == 1_520_934
    assert body["hardware"]["key"] == "gh200"
    assert body["workload"]["batch"] == {"value": 1, "source": "flag"}
    assert sum(op["floor_hbm_ns"] for op in body["ops"]) == pytest.approx(body["floor_hbm_ns"], abs=1)


def test_a_sweep_in_every_format() -> None:
    arguments = ("llama-3.1-8b", "--gpu", "h100", "--batch", "1..4", "--context", "1k,2k")
    document = json.loads(run(estimate_command, *arguments, "-f", "json"))
    seen = [(p["workload"]["batch"]["value"], p["workload"]["context"]["value"]) for p in document["points"]]
    assert seen == [(1, 1024), (1, 2048), (2, 1024), (2, 2048), (4, 1024), (4, 2048)]
    lines = run(estimate_command, *arguments, "-f", "csv").splitlines()
    assert len(lines) == 7
    assert lines[0].startswith("batch,context,floor_ns")
    assert run(estimate_command, *arguments, "-f", "markdown").count("\n|") == 8
    assert "tokens/s" in run(estimate_command, *arguments)


def test_the_table_says_what_was_assumed() -> None:
    text = run(estimate_command, "mixtral-8x7b", "--gpu", "h100", "--batch", "4")
    assert "assuming phase decode, context 4096" in text
    assert "does not fit" in text
    assert "distinct" in text


def test_the_one_line_check() -> None:
    arguments = ("--params", "1T", "--gpu", "gh200", "-f", "json")
    dense = json.loads(run(estimate_command, *arguments))
    assert (dense["gpus_needed"], dense["one_gpu_ns"]) == (21, 500_000_000)
    assert dense["ns_per_token"] / 1e6 == pytest.approx(23.8, abs=0.1)
    assert dense["tokens_per_s"] == pytest.approx(42, abs=0.1)
    half = json.loads(run(estimate_command, *arguments, "--dtype", "fp8"))
    assert half["one_gpu_ns"] == pytest.approx(250_000_000, rel=1e-6)
    sparse = json.loads(run(estimate_command, *arguments, "--active", "32B"))
    assert sparse["bytes_per_token"] * 30 < dense["bytes_per_token"]
    eight = json.loads(run(estimate_command, *arguments, "--gpus", "8"))
    assert (eight["fits"], eight["gpus"]) == (False, 8)
    for kind in ("table", "csv", "markdown"):
        assert "21" in run(estimate_command, "--params", "1T", "--gpu", "gh200", "-f", kind)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("qwen3-30b",),
        ("qwen3-30b", "--params", "1T", "--gpu", "h100"),
        ("qwen3-30b", "--gpu", "h100", "--active", "1B"),
        ("qwen3-30b", "--gpu", "h100", "--batch", "4..1"),
        ("qwen3-30b", "--gpu", "h100", "--batch", "many"),
        ("qwen3-30b", "--gpu", "h100", "--batch", "1..4096", "--context", "1..1000000000", "--tp", "0"),
        ("qwen3-30b", "--gpu", "h100", "--batch", ",".join("1" for _ in range(500))),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert CliRunner().invoke(estimate_command, list(arguments)).exit_code == 2


def test_errors_of_the_library_come_through(tmp_path: Path) -> None:
    for arguments, error in (
        (("qwen3-3b", "--gpu", "h100"), ModelError),
        (("qwen3-30b", "--gpu", "h999"), HardwareError),
        (("qwen3-30b", "--gpu", "h100", "-o", str(tmp_path / "no" / "x.json")), OutputError),
        (("--params", "1B", "--active", "2B", "--gpu", "h100"), WorkloadError),
    ):
        assert isinstance(CliRunner().invoke(estimate_command, list(arguments)).exception, error)


def test_values_of_a_sweep() -> None:
    assert values("1..64") == [1, 2, 4, 8, 16, 32, 64]
    assert values("3..10") == [3, 6, 10]
    assert values("4k") == [4096]


def test_speculative_verify() -> None:
    device = resolve("gh200")
    plain = estimate("qwen3-30b", hardware=device, batch=1, context=4096)
    verify = estimate(
        "qwen3-30b", hardware=device, batch=1, context=4096, tokens=4, phase="decode", acceptance=0.8
    )
    # below 2.48 accepted tokens per step speculation loses
    assert verify.floor_hbm_ns / plain.floor_hbm_ns == pytest.approx(2.48, abs=0.01)
    assert verify.tokens_per_step == pytest.approx(accepted_tokens(3, 0.8)) == pytest.approx(2.952)
    assert accepted_tokens(3, 1.0) == 4


def test_measured_experts_replace_the_expectation() -> None:
    few = estimate("qwen3-30b", gpu="gh200", batch=16, context=4096, distinct_experts=40)
    many = estimate("qwen3-30b", gpu="gh200", batch=16, context=4096)
    weights = {op.op: op.weight_bytes for op in few.ops}
    assert weights["moe_gate_up"] == 48 * 40 * 1536 * 2048 * 2
    assert few.floor_ns < many.floor_ns
    assert sum(op.min_floor_ns for op in many.ops) < few.floor_ns


def test_a_frame_and_a_verdict() -> None:
    result = estimate("llama-3.1-8b", gpu="h100", batch=1, context=4096)
    frame = result.to_frame()
    assert list(frame["op"])[:3] == ["embedding", "input_norm", "qkv_proj"]
    assert "llama-3.1-8b on h100" in result.verdict


def test_a_flat_model_has_no_step(tmp_path: Path) -> None:
    path = tmp_path / "flat.yaml"
    path.write_text("kernels: [{name: a, pattern: a, flop: 1}]\n")
    with pytest.raises(ModelError, match="flat"):
        estimate(str(path), gpu="h100")


def test_counts_without_a_memory_size() -> None:
    from nsysmodel.hardware.resolve import Overrides

    device = resolve(None, overrides=Overrides(bandwidth=1e12, peaks={"bf16": 1e14}))
    result = from_counts(1e9, hardware=device, bytes_per_parameter=2)
    assert (result["gpus_needed"], result["gpus"], result["one_gpu_ns"]) == (None, 1, 2_000_000)


def test_model_list_show_check_init(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = json.loads(run(model_command, "list", "-f", "json"))
    assert "qwen3-30b-a3b" in {row["name"] for row in listed["models"]}
    assert "qwen3-30b" in run(model_command, "list")
    shown = json.loads(run(model_command, "show", "deepseek-v3", "--tp", "8", "-f", "json"))
    assert {"q_absorb", "v_up", "moe_gate_up"} <= {op["op"] for op in shown["ops"]}
    assert "layers" in run(model_command, "show", "qwen3-30b", "--batch", "2")
    monkeypatch.chdir(tmp_path)
    for flag in ((), ("--flat",)):
        run(model_command, "init", *flag, "-o", "mine.yaml", "--force")
        assert "nothing is wrong" in run(model_command, "check", "mine.yaml")
        assert run(model_command, "show", "mine.yaml")
    refused = CliRunner().invoke(model_command, ["init"])
    assert refused.exit_code == 0
    again = CliRunner().invoke(model_command, ["init"])
    assert isinstance(again.exception, OutputError)
