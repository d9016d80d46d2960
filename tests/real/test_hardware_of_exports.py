"""The device of every real export is found, or derived and marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from nsysmodel.export.run import open_run
from nsysmodel.hardware.resolve import resolve

TRACES = Path(__file__).parents[2].parent / "shared" / "traces"
KEYS = {
    "dense2.7b-forward-a100": "a100",
    "saxpy-mpi-nonlazy-a100": "a100-40gb",
    "layernorm-custom-rtx4090": "rtx-4090",
    "hf-qwen1.5-0.5b-forward-h100": "h100",
    "nvfuser-nvtx-h200": "h200",
    "vllm-hybrid-nvfp4-decode-b4-gb10": "gb10",
    "vllm-moe-decode-tp4-rank0-gh200": "gh200",
    "transformer-training-nvtx-rtx3070ti": "rtx-3070-ti",
    "mig-a30": "a30",
}


@pytest.mark.real
@pytest.mark.skipif(not TRACES.exists(), reason="../shared with the real exports is missing")
@pytest.mark.parametrize(("name", "key"), KEYS.items())
def test_device_of_a_real_export(name: str, key: str) -> None:
    with open_run(TRACES / f"{name}.sqlite") as run:
        kernels = run.kernels()
        facts = run.gpu_for(int(kernels["global_pid"].iloc[0]), int(kernels["device"].iloc[0]))
    assert facts is not None
    device = resolve(facts=facts)
    assert device.key == key
    assert device.sm_count == facts.sm_count
    if name == "mig-a30":
        assert device.source == "inferred"
        assert device.bandwidth_bytes_per_s.value < 500e9
