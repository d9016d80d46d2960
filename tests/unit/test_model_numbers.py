"""Numbers that were computed elsewhere, op by op and as totals."""

from __future__ import annotations

import pytest

from nsysmodel.estimation import Estimate, estimate
from nsysmodel.hardware.types import Hardware
from nsysmodel.model import bundled, load, resolve_workload
from nsysmodel.theory import formats
from nsysmodel.theory.floor import floor_of
from nsysmodel.theory.ops.attention import latent_attention, latent_entry_bytes
from nsysmodel.theory.ops.collectives import allreduce
from nsysmodel.theory.ops.gemm import communication_bytes, distinct_experts, gemm
from nsysmodel.theory.ops.types import Setting
from nsysmodel.workload import Sourced, WorkloadRequest


def device(bandwidth: float, bf16: float = 989.4e12, l2: int = 50_000_000, **peaks: float) -> Hardware:
    engines = {"bf16": bf16, "fp8": 2 * bf16, "fp32": 67e12, **peaks}
    return Hardware(
        "", "bench", "flag", {k: Sourced(v, "flag") for k, v in engines.items()}, Sourced(bandwidth, "flag"),
        l2_bytes=l2,
    )  # fmt: skip


GH200 = device(4.0e12, 990e12)
H100 = device(3.35e12)
H200 = device(4.8e12)

# (op, weights, KV, activations, us strict, us hbm, times)
QWEN = [
    ("embedding", 4096, 0, 4096, 0.002, 0.001, 1),
    ("input_norm", 4096, 0, 16384, 0.0051, 0.0010, 48),
    ("qkv_proj", 20971520, 0, 14336, 5.2465, 5.2429, 48),
    ("qk_norm+rope", 768, 0, 18432, 0.0048, 0.0006, 48),
    ("kv_write", 0, 2048, 2048, 0.0010, 0.0005, 48),
    ("attention", 0, 8388608, 16384, 2.1012, 2.0972, 48),
    ("o_proj", 16777216, 0, 12288, 4.1974, 4.1943, 48),
    ("post_attention_norm", 4096, 0, 16384, 0.0051, 0.0010, 48),
    ("router", 524288, 0, 4352, 0.1322, 0.1311, 48),
    ("topk", 0, 0, 320, 0.0001, 0.0000, 48),
    ("moe_gate_up", 50331648, 0, 28672, 12.5901, 12.5829, 48),
    ("moe_act", 0, 0, 36864, 0.0092, 0.0005, 48),
    ("moe_down", 25165824, 0, 45056, 6.3027, 6.2915, 48),
    ("moe_sum", 0, 0, 36864, 0.0092, 0.0005, 48),
    ("final_norm", 4096, 0, 16384, 0.0051, 0.0010, 1),
    ("lm_head", 622329856, 0, 307968, 155.66, 155.58, 1),
    ("sampling", 0, 0, 303872, 0.076, 0.002, 1),
]


@pytest.fixture(scope="module")
def qwen() -> Estimate:
    return estimate("qwen3-30b", hardware=GH200, batch=1, context=4096)


@pytest.mark.parametrize("row", QWEN, ids=lambda row: row[0])
def test_every_op_of_the_reference_decode(qwen: Estimate, row: tuple) -> None:
    name, weights, state, act, strict_us, hbm_us, times = row
    op = next(op for op in qwen.ops if op.op == name)
    assert op.count == times
    assert op.weight_bytes / times == weights
    assert op.state_bytes / times == state
    assert op.act_bytes / times == pytest.approx(act, abs=4)
    assert op.floor_strict_ns / times / 1e3 == pytest.approx(strict_us, rel=5e-4, abs=6e-4)
    assert op.floor_hbm_ns / times / 1e3 == pytest.approx(hbm_us, rel=5e-4, abs=6e-4)


def test_totals_of_the_reference_decode(qwen: Estimate) -> None:
    assert qwen.floor_hbm_ns / 1e3 == pytest.approx(1621.69, rel=5e-6)
    assert qwen.floor_strict_ns / 1e3 == pytest.approx(1624.76, rel=5e-6)
    assert qwen.tokens_per_s == pytest.approx(616.6, abs=0.1)
    assert qwen.model.cost.hbm_bytes == pytest.approx(6.486503e9, rel=1e-6)
    assert qwen.model.cost.total_flop == pytest.approx(9.311e9, rel=1e-3)
    assert qwen.weights_once_ns / 1e3 == pytest.approx(1520.9, abs=0.1)
    assert qwen.max_sum_ns / 1e3 == pytest.approx(1621.63, abs=0.01)
    assert qwen.model.active_parameters * 2 / 4.0e12 == pytest.approx(1.677e-3, rel=1e-3)
    layer = sum(op.cost.weight_bytes for op in qwen.model.kinds["moe"])
    assert layer == 113_779_456


def test_the_json_of_the_documented_command() -> None:
    body = estimate("qwen3-30b", gpu="gh200", batch=1, context=4096).to_dict()
    assert body["floor_hbm_ns"] / 1e3 == pytest.approx(1621.7, rel=5e-5)
    assert body["floor_strict_ns"] / 1e3 == pytest.approx(1624.8, rel=5e-5)


def test_pin_rate_of_the_reference_decode(qwen: Estimate) -> None:
    assert qwen.model.cost.hbm_bytes / 4.022784e12 * 1e6 == pytest.approx(1612.4, abs=0.1)


@pytest.mark.parametrize(
    ("model", "gpu", "workload", "hbm_ms", "strict_ms"),
    [
        ("qwen3-30b", H100, {"batch": 16}, 13.80, 13.86),
        ("qwen3-30b", H200, {"batch": 1}, 1.351, 1.354),
        ("qwen3-30b", GH200, {"batch": 16}, 11.56, 11.61),
        ("qwen3-30b", GH200, {"batch": 1, "tokens": 4, "phase": "decode"}, 4.014, 4.03),
        ("llama-3.1-8b", H100, {"batch": 1}, 4.6409, 4.6442),
        ("llama-3.1-8b", H100, {"batch": 1, "tokens": 4096}, 62.98, 69.67),
        ("gpt-oss-120b", H100, {"batch": 1}, 1.540, 1.544),
    ],
)
def test_steps_of_other_models(
    model: str, gpu: Hardware, workload: dict, hbm_ms: float, strict_ms: float
) -> None:
    context = {} if "tokens" in workload and "phase" not in workload else {"context": 4096}
    result = estimate(model, hardware=gpu, **workload, **context)
    assert result.floor_hbm_ns / 1e6 == pytest.approx(hbm_ms, rel=1e-3)
    assert result.floor_strict_ns / 1e6 == pytest.approx(strict_ms, rel=3e-3)


def test_dense_forward_on_an_a100() -> None:
    a100 = Hardware(
        "", "", "flag", {"fp32": Sourced(108 * 64 * 2 * 1.41e9, "flag")}, Sourced(2.039e12, "flag"),
        l2_bytes=40_000_000,
    )  # fmt: skip
    result = estimate("dense-2.7b", hardware=a100)
    assert result.model.workload.logits.value == "all"
    each = {op.op: op.floor_ns / op.count / 1e6 for op in result.ops}
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        assert each[name] == pytest.approx(1.377, abs=5e-4)
    for name in ("gate_proj", "up_proj", "down_proj"):
        assert each[name] == pytest.approx(5.508, rel=2e-4)
    assert each["lm_head"] == pytest.approx(5.380, abs=5e-4)
    # SiLU and product in one: read gate and up, write one, of 2048 x 10240 floats
    act = next(op for op in result.ops if op.op == "act")
    assert act.act_bytes / 32 == 3 * 2048 * 10240 * 4


@pytest.mark.parametrize("name", [name for name in bundled() if load(name).published])
def test_parameter_counts_of_the_makers(name: str) -> None:
    spec = load(name)
    total, active = spec.counts
    assert total == pytest.approx(spec.published["parameters"], rel=0.01)
    if "active_parameters" in spec.published:
        assert active == pytest.approx(spec.published["active_parameters"], rel=0.01)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("qwen3-next-80b-a3b", 80),
        ("qwen3.5-27b", 27),
        ("qwen3.5-122b-a10b", 122),
        ("qwen3.5-397b-a17b", 397),
        ("nemotron-3-super-120b-a12b-fp8", 120),
        ("nemotron-3-ultra-550b-a55b-bf16", 550),
        ("nemotron-h-56b", 56),
        ("kimi-k3", 2800),
    ],
)
def test_parameter_counts_in_the_names(name: str, billions: float) -> None:
    assert load(name).counts[0] / 1e9 == pytest.approx(billions, rel=0.01)


@pytest.mark.parametrize(
    ("experts", "top_k", "expected"),
    [
        (128, 8, {1: 8, 4: 29.1, 8: 51.6, 16: 82.4, 32: 111.8, 64: 125.9, 128: 128.0}),
        (256, 8, {1: 8, 4: 30.5, 8: 57.4, 16: 102.0, 32: 163.3, 64: 222.4, 128: 251.6}),
        (128, 4, {1: 4, 4: 15.3, 8: 28.7, 16: 51.0, 32: 81.7, 64: 111.2, 128: 125.8}),
        (512, 10, {1: 10, 4: 38.8, 8: 74.7, 16: 138.6, 32: 239.6, 64: 367.1, 128: 471.0}),
    ],
)
def test_distinct_experts(experts: int, top_k: int, expected: dict[int, float]) -> None:
    for tokens, distinct in expected.items():
        assert distinct_experts(experts, top_k, tokens) == pytest.approx(distinct, abs=0.06)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("bf16", 2.0),
        ("fp8_block", 1.00024),
        ("mxfp8", 1.03125),
        ("mxfp4", 0.53125),
        ("nvfp4", 0.5625),
        ("awq", 0.51953),
        ("gptq", 0.51563),
        ("int4_g32", 0.5625),
    ],
)
def test_bytes_per_parameter(name: str, size: float) -> None:
    assert formats.parse(name).matrix_bytes(8192, 8192) / 8192**2 == pytest.approx(size, abs=1e-5)


def _at(**changes: object) -> Setting:
    plain = formats.parse("bf16")
    given = {"phase": "decode", "sequences": 1, "new_tokens": 1, "context": 4096, "activation": plain,
             "kv": plain, "state": plain, **changes}  # fmt: skip
    return Setting(**given)  # type: ignore[arg-type]


def test_three_formats_of_one_product() -> None:
    # one size for X, W and Y would give 52.4 MB
    cost = gemm(_at(), m=4096, n=7168, k=2048, weight=formats.parse("fp8")).cost
    assert cost.strict_bytes / 1e6 == pytest.approx(81.8, abs=0.1)


def test_w4a16_multiplies_in_sixteen_bit() -> None:
    assert gemm(_at(), m=1, n=64, k=64, weight=formats.parse("awq")).cost.flop.keys() == {"bf16"}
    hopper, blackwell = {"bf16", "fp8", "fp32"}, {"bf16", "fp8", "fp4", "fp32"}
    assert formats.parse("mxfp4").engine(hopper) == "bf16"
    assert formats.parse("mxfp4").engine(blackwell) == "fp8"
    assert formats.parse("nvfp4").engine(blackwell) == "fp4"


def test_communication_bound_binds_only_big_cubes() -> None:
    at, cache = _at(), 50 * 2**20
    assert communication_bytes(8192, 8192, 8192, cache, 2) / 1e9 == pytest.approx(0.429, abs=1e-3)
    small = gemm(at, m=16, n=4096, k=4096, cache_bytes=cache).cost.strict_bytes
    assert small == gemm(at, m=16, n=4096, k=4096).cost.strict_bytes
    big = gemm(at, m=16384, n=16384, k=16384, cache_bytes=cache).cost.strict_bytes
    assert big / 1e9 == pytest.approx(3.44, abs=0.01)


def test_latent_attention_counts_the_latent_once() -> None:
    at = _at(sequences=64)
    cost = latent_attention(at, heads=16, rank=512, rope=64).cost
    # K and V counted apart would be twice this
    assert cost.state_read_bytes == 64 * 4096 * 1152
    assert floor_of(cost, H200).strict_ns / 1e3 == pytest.approx(63.4, abs=0.1)
    assert floor_of(cost, H200).compute_ns / 1e3 == pytest.approx(9.2, abs=0.1)
    # 242 FLOP per byte with 128 heads: compute-bound on H200, memory-bound on H100
    wide = latent_attention(at, heads=128, rank=512, rope=64).cost
    assert wide.total_flop / wide.state_read_bytes == pytest.approx(242, abs=0.5)
    assert floor_of(wide, H200).bound == "compute"
    assert floor_of(wide, H100).bound == "memory"


@pytest.mark.parametrize(
    ("model", "per_token"),
    [("deepseek-v3", 70_272), ("qwen2.5-72b", 327_680), ("llama-3.1-405b", 516_096)],
)
def test_published_kv_bytes_per_token(model: str, per_token: int) -> None:
    spec = load(model)
    sizes = [
        spec.build(resolve_workload(WorkloadRequest(batch=1, context=c), spec)).memory_bytes
        for c in (1000, 2000)
    ]
    assert (sizes[1] - sizes[0]) / 1000 == per_token


def test_fp8_latent_entry() -> None:
    assert latent_entry_bytes(formats.parse("fp8"), 512, 64) == 656


def test_kv_heads_are_replicated_beyond_their_number() -> None:
    spec = load("qwen3-30b")
    sizes = [
        spec.build(resolve_workload(WorkloadRequest(batch=1, context=c, tp=8), spec)).memory_bytes
        for c in (1000, 2000)
    ]
    assert (sizes[1] - sizes[0]) / 1000 == 24_576


def test_mixtral_loads_its_two_experts() -> None:
    result = estimate("mixtral-8x7b", hardware=H100, batch=1, context=4096)
    moe = [op for op in result.ops if op.op in ("moe_gate_up", "moe_down")]
    assert sum(op.flop for op in moe) / 32 == pytest.approx(705e6, rel=1e-3)
    assert sum(op.floor_hbm_ns for op in moe) / 32 / 1e3 == pytest.approx(210, abs=1)


def test_recurrent_state_is_counted() -> None:
    result = estimate("nemotron-h-8b", hardware=H100, batch=1, context=4096)
    ssm = next(op for op in result.ops if op.op == "ssm")
    # 128 heads x 64 x 128 in fp32, read and written: 8.39 MB
    assert ssm.state_bytes / ssm.count == 2 * 128 * 64 * 128 * 4
    qwen = estimate("qwen3.5-35b-a3b", hardware=H100, batch=1, context=4096)
    delta = next(op for op in qwen.ops if op.op == "ssm")
    # 32 heads x 128 x 128 in fp32, read and written
    assert delta.state_bytes / delta.count == 4_194_304
    assert delta.act_bytes / delta.count == 24_704


def test_window_is_taken_per_sequence() -> None:
    spec = load("gpt-oss-120b")
    step = spec.build(resolve_workload(WorkloadRequest(batch=4, context=8192), spec))
    reads = {
        kind: op.cost.state_read_bytes
        for kind, ops in step.kinds.items()
        for op in ops
        if op.id == "attention"
    }
    assert reads["sliding"] == 4 * 128 * 8 * 128 * 2
    assert reads["full_attention"] == 4 * 8192 * 8 * 128 * 2


def test_two_allreduces_a_layer_and_their_bytes() -> None:
    spec = load("llama-3.1-70b")
    step = spec.build(resolve_workload(WorkloadRequest(batch=8, context=100, tp=8), spec))
    layer = [op for op in step.kinds["dense"] if op.kind == "allreduce"]
    assert [op.id for op in layer] == ["attn_allreduce", "mlp_allreduce"]
    data = 8 * 8192 * 2
    assert layer[0].cost.link_bytes == data * 1.125
    assert allreduce(_at(), numbers=8 * 8192, ranks=8, algorithm="ring").cost.link_bytes == data * 1.75


def test_indexed_layers_of_glm() -> None:
    step = load("glm-5.2").build(resolve_workload(WorkloadRequest(), load("glm-5.2")))
    indexed = [
        index for index, kind in enumerate(step.layers) if any(op.id == "indexer" for op in step.kinds[kind])
    ]
    assert indexed[:5] == [0, 1, 2, 6, 10]
    assert len(indexed) == 21


def test_expert_parallel_with_data_parallel_attention() -> None:
    spec = load("deepseek-v3")
    request = WorkloadRequest(batch=8, context=4096, dp=8, ep=8)
    step = spec.build(resolve_workload(request, spec))
    ops = {op.id: op for op in step.kinds["moe"]}
    assert "moe_dispatch" in ops
    assert "mlp_allreduce" not in ops
    # 64 tokens over all ranks, 32 of 256 experts here
    one = formats.parse("fp8_block").matrix_bytes(4096, 7168)
    assert ops["moe_gate_up"].cost.weight_bytes == pytest.approx(distinct_experts(256, 8, 64) / 8 * one)
    assert ops["moe_gate_up"].min_cost is not None
    assert ops["moe_gate_up"].min_cost.weight_bytes == 0


def test_the_hard_bound_of_a_state_is_one_read_in_sixteen_bit() -> None:
    spec = load("qwen3.5-27b")
    step = spec.build(resolve_workload(WorkloadRequest(batch=4, context=60), spec))
    ssm = next(op for op in step.kinds["linear"] if op.id == "ssm")
    size = 4 * 48 * 128 * 128
    assert (ssm.cost.state_read_bytes, ssm.cost.state_write_bytes) == (4 * size, 4 * size)
    assert ssm.min_cost is not None
    assert (ssm.min_cost.state_read_bytes, ssm.min_cost.state_write_bytes) == (2 * size, 0)
