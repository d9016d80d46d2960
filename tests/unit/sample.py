"""A made-up evaluation in the shape of a Qwen3-30B-A3B decode step; no number in it was measured."""

from __future__ import annotations

import dataclasses
from typing import Any

from nsysmodel.result import (
    Coverage,
    DeviceResult,
    Diagnostic,
    DroppedStep,
    Evaluation,
    ExportFacts,
    GapBucket,
    GapPlace,
    Gaps,
    KernelUse,
    LayerHeat,
    LearnedKernel,
    LearnedLayer,
    MissingRow,
    OpRow,
    StepCluster,
    Steps,
    StepTotals,
    Timeline,
    TimelineBar,
    TransferRow,
    UnmodeledRow,
    Verdict,
    WaterfallPart,
)
from nsysmodel.result_account import (
    ClockFacts,
    CollectiveSummary,
    LaunchSummary,
    Reason,
    SmallRunRow,
    SmallSummary,
)
from nsysmodel.result_what_if import WhatIf, WhatIfOp

HOSTILE = (
    "</script><script>window.pwned=1</script>",
    '<img src=x onerror="window.pwned=1">\' & " {{ 7*7 }} {% raw %}',
    "kernel\u2028line\u2029para\x00\x07\x1b[31mred\u202egnp.exe",
    "<!--<script>" + "A" * 10_000,
    "a|b`c``d*e_f_[x](http://example.invalid)@someone\nnext $(touch pwned) '; touch pwned",
    "lone\ud800surrogate",
)
LAYERS, USED, BANDWIDTH, PEAK = 48, 6, 4.0e12, 990e12
T0 = 1_900

# op, calls per step, measured ns per call, HBM bytes per call, FLOP per call, kernel name, grid
OPS: tuple[tuple[str, int, int, float, float, str, str], ...] = (
    ("input_norm", 48, 2_310, 4_096, 0, "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "1x1x1"),
    ("qkv_proj", 48, 6_480, 20_971_520, 20.97e6, "nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "80x1x1"),
    ("qk_norm+rope", 48, 2_450, 0, 0, "triton_poi_fused_add_mul_rsqrt_split_1", "36x1x1"),
    (
        "kv_write",
        48,
        2_020,
        2_048,
        0,
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16, __nv_bfloat16, 0>(bf16 const*, long)",
        "1x1x1",
    ),
    (
        "attention",
        48,
        7_900,
        8_388_608,
        67.1e6,
        "void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<flash::MainloopSm90"
        "<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1>>, cute::tuple<cute::C<128>>>>>>(Params)",
        "132x1x1",
    ),
    ("o_proj", 48, 5_010, 16_777_216, 16.8e6, "nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT", "64x1x1"),
    (
        "post_attention_norm",
        48,
        2_280,
        4_096,
        0,
        "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_2",
        "1x1x1",
    ),
    ("router", 48, 3_150, 524_288, 0.52e6, "nvjet_tst_128x8_64x12_2x1_v_bz_splitK_TNN", "2x1x8"),
    (
        "topk",
        48,
        2_840,
        0,
        0,
        "void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, int>(float const*, bool const*)",
        "1x1x1",
    ),
    (
        "moe_permute",
        48,
        3_420,
        0,
        0,
        "void vllm::moe::moe_align_block_size_small_batch_expert_kernel<int>(int const*)",
        "1x1x1",
    ),
    ("moe_gate_up", 48, 14_260, 50_331_648, 50.3e6, "fused_moe_kernel", "192x1x1"),
    (
        "moe_act",
        48,
        2_110,
        0,
        0,
        "void vllm::act_and_mul_kernel<__nv_bfloat16, silu_kernel>(__nv_bfloat16*, int)",
        "8x1x1",
    ),
    ("moe_down", 48, 13_870, 25_165_824, 25.2e6, "fused_moe_kernel", "256x1x1"),
    (
        "moe_sum",
        48,
        2_490,
        0,
        0,
        "void vllm::moe::moe_sum_kernel<__nv_bfloat16, 8>(__nv_bfloat16*, int)",
        "1x1x1",
    ),
    ("final_norm", 1, 2_300, 4_096, 0, "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_3", "1x1x1"),
    ("lm_head", 1, 171_400, 622_329_856, 622.3e6, "nvjet_tst_192x8_64x6_1x1_v_bz_TNT", "792x1x1"),
    (
        "sampling",
        1,
        9_800,
        303_872,
        0,
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, ArgMaxOps<float>, long>>(R)",
        "1x1x1",
    ),
)


def op_row(index: int, kernel_time: int) -> OpRow:
    op, calls, call_ns, hbm, flop, name, grid = OPS[index]
    floor_call = max(hbm / BANDWIDTH, flop / PEAK) * 1e9
    total, floor_total = calls * call_ns * USED, round(calls * floor_call * USED)
    latency = floor_call < T0
    measured, floor = total / USED, floor_total / USED
    latency_floor = calls * max(floor_call, T0)
    kernel = KernelUse(
        name=name,
        grid=grid,
        block="256x1x1",
        instances=calls * USED,
        total_ns=total,
        median_ns=call_ns,
        min_ns=call_ns - call_ns // 20,
        max_ns=call_ns + call_ns // 6,
        kernel_class=op.split("_")[0],
        op=op,
        share=total / kernel_time,
        launch_skip=calls + (calls if op == "moe_down" else 0),
    )
    return OpRow(
        op=op,
        instances=calls * USED,
        kernels_per_instance=1.0,
        measured_ns=measured,
        floor_ns=floor,
        ratio=None if latency else measured / floor,
        excess_ns=measured - floor,
        bound="latency" if latency else "memory",
        flop=flop * calls,
        hbm_bytes=hbm * calls,
        confidence=0.62 if op == "moe_permute" else 0.97,
        share=total / kernel_time,
        flags=("low_confidence",) if op == "moe_permute" else (),
        total_ns=total,
        floor_total_ns=floor_total,
        strict_bytes=hbm * calls * 1.001,
        floor_hbm_ns=floor,
        floor_strict_ns=floor * 1.001,
        latency_floor_ns=latency_floor if latency else None,
        flop_per_s=flop / call_ns * 1e9,
        bytes_per_s=hbm / call_ns * 1e9,
        fraction_of_peak=None if latency else floor / measured,
        intensity=flop / hbm if flop and hbm else None,
        dtype="bf16",
        expected_instances=calls * USED,
        median_ns=call_ns,
        p05_ns=call_ns - call_ns // 30,
        p95_ns=call_ns + call_ns // 25,
        recoverable_ns=max(0.0, measured - latency_floor),
        formula=f"max(F/P, B/W) = max({flop:.4g} / 990e12, {hbm:.0f} / 4.00e12)",
        explanation="",
        kernels=(kernel,),
        reasons=(Reason("cores", "8 blocks on 132 SMs"),) if op == "attention" else (),
        layers_ns=tuple(
            float(call_ns + (k * 37) % 200 + (900 if op == "moe_down" and k == 31 else 0))
            for k in range(LAYERS)
        )
        if calls == LAYERS
        else (),
    )


def timeline() -> Timeline:
    bars: list[TimelineBar] = []
    now = 0
    for layer in range(LAYERS):
        for op, calls, call_ns, _hbm, _flop, name, _grid in OPS:
            if calls != LAYERS:
                continue
            bars.append(TimelineBar(now, call_ns, "stream 7", name, op, "kernel"))
            now += call_ns
            if op in ("attention", "moe_sum"):
                bars.append(TimelineBar(now, 900, "idle", "gap", None, "gap", "inside_graph"))
                now += 900
        if layer % 12 == 5:
            bars.append(TimelineBar(now - 9_000, 3_000, "stream 13", "Memcpy DtoD", None, "copy"))
    for op, calls, call_ns, _hbm, _flop, name, _grid in OPS:
        if calls == 1:
            bars.append(TimelineBar(now, call_ns, "stream 7", name, op, "kernel"))
            now += call_ns
    bars.append(
        TimelineBar(now, 4_100, "stream 7", "void at::native::index_kernel<int>()", None, "kernel", merged=3)
    )
    now += 4_100
    bars.append(TimelineBar(now, 180_000, "idle", "gap", None, "gap", "launch_starved"))
    return Timeline(step=4, window_ns=now + 180_000, bars=tuple(bars))


def device(**changes: Any) -> DeviceResult:
    unmodeled_ns, copy_ns, overlap = 4_100 * 48 * USED, 38_400, -11_100
    gaps = {
        "inside_graph": 86_400 * USED,
        "launch_starved": 180_123 * USED,
        "sync": 0,
        "dependency": 21_000,
        "profiler": 0,
        "unknown": 0,
    }
    kernel_time = sum(calls * ns * USED for _op, calls, ns, *_rest in OPS) + unmodeled_ns
    ops = tuple(op_row(index, kernel_time) for index in range(len(OPS)))
    floor = sum(row.floor_total_ns or 0 for row in ops)
    parts = [WaterfallPart("floor", "floor of the model's ops", floor)]
    parts += [
        WaterfallPart("excess", row.op, row.total_ns - (row.floor_total_ns or 0), op=row.op) for row in ops
    ]
    parts.append(WaterfallPart("unmodeled", "kernels that no op claims", unmodeled_ns))
    parts.append(WaterfallPart("copy", "copies and memsets", copy_ns))
    parts += [WaterfallPart("gap", f"idle: {cause}", ns, cause=cause) for cause, ns in gaps.items() if ns]
    parts.append(WaterfallPart("overlap", "activities that ran at once", overlap))
    window = sum(part.total_ns for part in parts)
    index_kernel = "void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel>(long)"
    kernels = (
        *tuple(kernel for row in ops for kernel in row.kernels),
        KernelUse(
            index_kernel,
            "1x1x1",
            "128x1x1",
            48 * USED,
            unmodeled_ns,
            4100,
            3900,
            4800,
            "elementwise",
            None,
            unmodeled_ns / kernel_time,
        ),
    )
    mean = window / USED
    base = DeviceResult(
        process=4242,
        device=0,
        name="NVIDIA GH200 480GB",
        steps=Steps(
            8,
            USED,
            (DroppedStep(0, "warm_up"), DroppedStep(7, "open_end")),
            LAYERS,
            int(mean),
            int(mean * 0.991),
            int(mean * 1.012),
            "period of the kernel sequence",
            tuple(range(1, 7)),
            (StepCluster("decode", 1, 1, "inferred", 8, True, int(mean), floor / USED),),
        ),
        step=StepTotals(
            measured_ns=mean,
            floor_ns=floor / USED,
            fraction_of_roofline=floor / window,
            total_ns=window,
            floor_total_ns=floor,
            busy_ns=mean - sum(gaps.values()) / USED,
            floor_hbm_ns=floor / USED,
            floor_strict_ns=floor / USED * 1.002,
            max_sum_bound_ns=floor / USED * 0.998,
            weights_once_ns=floor / USED * 0.929,
            weights_once_bytes=6.1e9,
            t0_ns=float(T0),
            tokens_per_step=1,
            tokens_per_s={"measured": 1e9 / mean, "bound": 1e9 * USED / floor},
        ),
        waterfall=tuple(parts),
        window_total_ns=window,
        ops=ops,
        unmodeled=(
            UnmodeledRow(
                index_kernel,
                48 * USED,
                unmodeled_ns,
                unmodeled_ns / kernel_time,
                "elementwise",
                1.0,
                '- {op: my_index, match: "index_elementwise_kernel", kind: elementwise}',
            ),
        ),
        missing=(MissingRow("embedding", 1, 0.001e3, ""), MissingRow("moe_dispatch", 48, 0.0, "moe_permute")),
        gaps=Gaps(
            by_cause=gaps,
            by_size={
                "<1us": GapBucket(576, 86_400 * USED),
                "1-5us": GapBucket(3, 21_000),
                "5-50us": GapBucket(0, 0),
                "50-500us": GapBucket(USED, 180_123 * USED),
                ">500us": GapBucket(0, 0),
            },
            places=(
                GapPlace(
                    "sampling",
                    "input_norm",
                    "launch_starved",
                    USED,
                    180_123 * USED,
                    180_000,
                    "The next graph was launched after the device ran dry.",
                ),
                GapPlace("attention", "o_proj", "inside_graph", 288, 43_200 * USED, 900, ""),
            ),
        ),
        transfers=(
            TransferRow(
                "DtoD",
                "device",
                24,
                98_304_000,
                38_400,
                12_000,
                98_304_000 / 38_400 * 1e9,
                "HBM",
                BANDWIDTH / 2,
                0.78,
            ),
            TransferRow("HtoD", "pinned", 12, 3_072, 14_000, 14_000, None),
        ),
        coverage=Coverage(
            1 - unmodeled_ns / kernel_time,
            0.93,
            kernel_time,
            (
                {"op": "qkv_proj", "expected": 48, "found": 48.0, "closes": True},
                {"op": "lm_head", "expected": 1, "found": 1.0, "closes": True},
                {"op": "embedding", "expected": 1, "found": 0.0, "closes": False},
            ),
        ),
        kernels=kernels,
        layers=tuple(
            LayerHeat(k, "moe", 66_000.0 + (k * 131) % 900 + (22_000 if k == 31 else 0), 30_450.0)
            for k in range(LAYERS)
        ),
        learned=(
            LearnedLayer(
                "moe",
                1,
                (
                    *tuple(
                        LearnedKernel(
                            name,
                            grid,
                            7,
                            op,
                            ns,
                            max(hbm / BANDWIDTH, flop / PEAK) * 1000000000.0,
                            0.62 if op == "moe_permute" else 0.97,
                        )
                        for op, calls, ns, hbm, flop, name, grid in OPS
                        if calls == LAYERS
                    ),
                    LearnedKernel(index_kernel, "1x1x1", 7, None, 4100, None, 0.0),
                ),
            ),
        ),
        timeline=timeline(),
        small=SmallSummary(
            T0, 3 * T0, 2_600, 6_900_000, 433.3, 1.15e6, 610_000.0, 1.18,
            "433 small kernels a step at 2.65 µs: 1.15 ms a step.",
            (
                SmallRunRow(("qk_norm+rope", "kv_write"), 288, 1_290_000, 215_000.0, 97_000.0),
                SmallRunRow(("topk", "moe_permute", "moe_permute"), 288, 1_900_000, 316_000.0, 152_000.0),
            ),
        ),
        launch=LaunchSummary(1.0, 0.99, 1_080_738, 180_123.0, 0.0, 1.0, "The device waits 180 µs a step."),
        collectives=(
            CollectiveSummary(
                "attn_allreduce", 288, 1, 2_880_000, 1_900_000, 980_000, "steps", 2_500_000, 380_000,
                480_000.0, 416_666.0, 1.2e6, 6.3e8, "nvlink", 450e9, 2_600.0, 547_200.0, "latency",
                "Waiting is estimated.",
            ),
        ),
        clock=ClockFacts("none", 0, None, None, 1.98e9, None, "No samples of the clock.", "nvidia-smi -q"),
    )  # fmt: skip
    return dataclasses.replace(base, **changes)


def what_if() -> WhatIf:
    """Floors on a small grid; the judged point is batch 1, context 4096."""
    floors = tuple(
        tuple(tuple(1_000_000.0 * batch + 100.0 * context / factor for factor in (0.5, 1.0, 2.0))
              for context in (2_048, 4_096))
        for batch in (1, 2)
    )  # fmt: skip
    none = (None, None, None)
    ops = (WhatIfOp("moe_down", 665_760.0, 301_990.0, 363_770.0), WhatIfOp("attention", 379_200.0, 1e5, 2e5))
    return WhatIf(
        (1, 2, 4), (2_048, 4_096), (0.5, 1.0, 2.0), "context", (0, 1, 1), ((1, 1), (2, 2), (4, 4)),
        (*floors, (none, none)), ops,
    )  # fmt: skip


def evaluation(**changes: Any) -> Evaluation:
    """The plain good case."""
    dev = device()
    base = Evaluation(
        version="0.1.0",
        export=ExportFacts(
            "qwen3-30b-decode-gh200.sqlite",
            "3.16.1",
            "2024.6.1.90",
            5_640,
            "node",
            "complete",
            dev.coverage.kernel_time_ns,
            36,
            8,
            214,
            0,
            0,
            31_000_000,
            True,
            1,
            1,
        ),
        hardware={
            "name": "NVIDIA GH200 480GB",
            "source": "catalogue",
            "bandwidth_bytes_per_s": BANDWIDTH,
            "pin_bandwidth_bytes_per_s": 4.02e12,
            "peak_flop_per_s": {"bf16": PEAK, "fp8": 2 * PEAK, "fp32": 67e12},
            "sm_count": 132,
            "clock_hz": 1.98e9,
            "l2_bytes": 50_000_000,
            "sources": {
                "bandwidth_bytes_per_s": "GH200 datasheet, HBM3, checked 2026-05",
                "bf16": "GH200 datasheet, dense (half of the figure with sparsity)",
            },
        },
        workload={
            "phase": {"value": "decode", "source": "inferred"},
            "batch": {"value": 1, "source": "inferred"},
            "context": {"value": 4096, "source": "assumed"},
            "tokens": {"value": 1, "source": "inferred"},
            "dtype": {"value": "bf16", "source": "model"},
            "quant": {"value": "", "source": "model"},
            "kv_dtype": {"value": "", "source": "model"},
            "tensor_parallel": {"value": 1, "source": "assumed"},
            "expert_parallel": {"value": 1, "source": "assumed"},
            "data_parallel": {"value": 1, "source": "assumed"},
            "logits": {"value": "last", "source": "model"},
        },
        model={
            "name": "qwen3-30b",
            "source": "bundled",
            "layers": 48,
            "parameters": {"hidden": 2048, "heads": 32, "kv_heads": 4, "experts": 128, "top_k": 8},
            "notes": ["Routing is taken as uniform: at batch 1, 8 distinct experts are read per layer."],
        },
        verdict=Verdict(
            "ok",
            "A decode step takes 4.04 ms; the floor is 1.62 ms: 40 % of the roofline, assuming context 4096.",
            (
                "moe_down is the largest excess: 364 µs above its floor, 2.20×.",
                "The device idles 270 µs per step, 180 µs of it because the next launch came late.",
                "5.4 % of kernel time is in kernels that no op of the model claims.",
            ),
        ),
        devices=(dev,),
        diagnostics=(
            Diagnostic(
                "workload_assumed",
                "warning",
                "The context length is assumed: nothing in the export shows it.",
                "Give it with --context N.",
            ),
            Diagnostic("clock_default", "info", "The SM clock is the catalogue's boost clock.", ""),
        ),
        command="nsysmodel report qwen3-30b-decode-gh200.sqlite --model qwen3-30b",
        what_if=what_if(),
    )
    return dataclasses.replace(base, **changes)


def cannot_judge() -> Evaluation:
    """Readable, but the model's counts do not close: no ratio may appear anywhere."""
    good = evaluation()
    dev = good.devices[0]
    dev = dataclasses.replace(
        dev,
        step=dataclasses.replace(
            dev.step,
            floor_ns=None,
            fraction_of_roofline=None,
            floor_total_ns=None,
            floor_hbm_ns=None,
            floor_strict_ns=None,
            max_sum_bound_ns=None,
            weights_once_ns=None,
            tokens_per_s={"measured": dev.step.tokens_per_s["measured"], "bound": None},
        ),
    )
    return dataclasses.replace(
        good,
        devices=(dev,),
        verdict=Verdict(
            "cannot_judge",
            "Cannot judge: the export does not look like qwen3-30b.",
            ("48 lm_head kernels per step where the model expects one.",),
        ),
        what_if=None,
        fits=({"name": "llama-3.1-8b", "score": 0.91, "reason": "32 layers of 9 kernels"},),
    )


def no_model() -> Evaluation:
    """Everyone's first try: no --model."""
    good = evaluation()
    dev = good.devices[0]
    busy = dev.window_total_ns - sum(dev.gaps.by_cause.values())
    parts = (
        WaterfallPart("unmodeled", "kernels", busy - 38_400),
        WaterfallPart("copy", "copies", 38_400),
        *(WaterfallPart("gap", f"idle: {c}", n, cause=c) for c, n in dev.gaps.by_cause.items() if n),
    )
    dev = dataclasses.replace(
        dev,
        ops=(),
        waterfall=parts,
        missing=(),
        layers=(),
        learned=(),
        unmodeled=(),
        coverage=Coverage(0.0, 0.0, dev.coverage.kernel_time_ns),
        kernels=tuple(dataclasses.replace(kernel, op=None) for kernel in dev.kernels),
        step=StepTotals(
            dev.step.measured_ns,
            None,
            None,
            dev.step.total_ns,
            None,
            dev.step.busy_ns,
            t0_ns=float(T0),
            tokens_per_s={"measured": None, "bound": None},
        ),
        timeline=dataclasses.replace(
            dev.timeline, bars=tuple(dataclasses.replace(bar, op=None) for bar in dev.timeline.bars)
        )
        if dev.timeline
        else None,
    )
    return dataclasses.replace(
        good,
        model=None,
        workload={},
        devices=(dev,),
        verdict=Verdict(
            "ok",
            "A step takes 4.04 ms; the device is busy 93 % of it. No model was given.",
            ("Largest kernel: fused_moe_kernel.",),
        ),
        diagnostics=(),
        what_if=None,
        fits=(
            {"name": "qwen3-30b", "score": 0.97, "reason": "48 layers of 14 kernels"},
            {"name": "llama-3.1-8b", "score": 0.41, "reason": ""},
        ),
        command="nsysmodel report qwen3-30b-decode-gh200.sqlite",
    )


def hostile() -> Evaluation:
    """Every string that comes from an export is an attack."""
    good = evaluation()
    dev = good.devices[0]
    bad = HOSTILE

    def name(index: int) -> str:
        return bad[index % len(bad)]

    ops = tuple(
        dataclasses.replace(
            row,
            op=name(k) if k % 3 == 0 else row.op,
            formula=name(k + 1),
            explanation=name(k + 2),
            kernels=tuple(dataclasses.replace(use, name=name(k)) for use in row.kernels),
        )
        for k, row in enumerate(dev.ops)
    )
    assert dev.timeline is not None
    dev = dataclasses.replace(
        dev,
        name=name(0),
        ops=ops,
        kernels=tuple(dataclasses.replace(use, name=name(k)) for k, use in enumerate(dev.kernels)),
        unmodeled=tuple(UnmodeledRow(text, 3, 1_000, 0.001, text, 0.0, "- match: " + text) for text in bad),
        missing=tuple(MissingRow(text) for text in bad),
        gaps=dataclasses.replace(dev.gaps, places=tuple(GapPlace(t, t, "sync", 1, 10, 10, t) for t in bad)),
        learned=tuple(
            dataclasses.replace(
                item, kernels=tuple(dataclasses.replace(k, name=name(i)) for i, k in enumerate(item.kernels))
            )
            for item in dev.learned
        ),
        timeline=dataclasses.replace(
            dev.timeline,
            bars=tuple(
                dataclasses.replace(bar, label=name(i), lane=name(i % 2))
                for i, bar in enumerate(dev.timeline.bars)
            ),
        ),
        waterfall=tuple(dataclasses.replace(p, label=name(i)) for i, p in enumerate(dev.waterfall)),
    )
    return dataclasses.replace(
        good,
        devices=(dev,),
        verdict=Verdict("ok", bad[0] + bad[1], bad),
        command=bad[4],
        export=dataclasses.replace(good.export, file=bad[0]),
        diagnostics=tuple(Diagnostic("x", "warning", text, text) for text in bad),
    )


def many_kernels(count: int, name_length: int = 60) -> Evaluation:
    """An export with `count` distinct kernels, all of them also unmodeled and in the timeline."""
    good = evaluation()
    names = [f"void generated::kernel_{k:06d}<{'T' * name_length}>(int)" for k in range(count)]
    dev = good.devices[0]
    dev = dataclasses.replace(
        dev,
        kernels=tuple(
            KernelUse(n, "1x1x1", "32x1x1", 6, 6_000 + (count - k), 1_000, 900, 1_100, "other", None, 1e-6)
            for k, n in enumerate(names)
        ),
        unmodeled=tuple(
            UnmodeledRow(n, 6, 6_000 + (count - k), 1e-6, "other", 0.0, f"- match: {n[:40]}")
            for k, n in enumerate(names)
        ),
        timeline=Timeline(
            4,
            count * 1_100,
            tuple(TimelineBar(k * 1_100, 1_000, "stream 7", n, None, "kernel") for k, n in enumerate(names)),
        ),
    )
    return dataclasses.replace(good, devices=(dev,))
