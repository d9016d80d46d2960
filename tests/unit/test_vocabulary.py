"""Kernel names fall into their class, and files of rules can be added and are checked."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from nsysmodel.join.rulefile import KERNEL_CLASSES, parse_index, parse_rules
from nsysmodel.join.vocabulary import Vocabulary, VocabularyError, load

HERE = Path(__file__).parent
TABLE = list(csv.DictReader((HERE / "kernel_names.csv").read_text(encoding="utf-8").splitlines()))
SHARED = HERE.parents[2] / "shared" / "knowledge" / "kernel_names.csv"


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return load()


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['kernel_class']}-{row['name'][:40]}")
def test_a_real_name_falls_into_its_class(vocabulary: Vocabulary, row: dict[str, str]) -> None:
    assert vocabulary.classify(row["name"]).kernel_class == row["kernel_class"]


def test_the_table_covers_every_class() -> None:
    assert {row["kernel_class"] for row in TABLE} == set(KERNEL_CLASSES)


@pytest.mark.parametrize(
    ("name", "covers"),
    [
        ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(x)", ("residual_add", "norm")),
        ("triton_red_fused_fused_add_rms_norm_machete_mm_0", ("residual_add", "norm")),
        (
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<"
            "(flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 8, false>(x)",
            ("allreduce", "residual_add", "norm"),
        ),
        ("void (anonymous namespace)::fused_rope_store_kernel<true, 128l>(x)", ("rope", "kv_write")),
        ("void tensorrt_llm::kernels::fusedQKNormRopeKernel<128, false>", ("qk_norm", "rope")),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_swiGlu_dynBatch_sm100f", ("moe_gate_up", "moe_act")),
        ("_silu_and_mul_post_quant_kernel", ("act", "quantize")),
        ("fused_moe_kernel", ()),
        ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", ()),
    ],
)
def test_a_fused_kernel_names_its_ops(vocabulary: Vocabulary, name: str, covers: tuple[str, ...]) -> None:
    assert vocabulary.classify(name).covers == covers


@pytest.mark.parametrize(
    ("name", "n", "k"),
    [
        ("void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 128u, (deep_gemm::GemmType)1>(x)", 4096, 7168),
        (
            "void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u, 2112u, 7168u, 1u, "
            "(deep_gemm::GemmType)0>(x)",
            2112,
            7168,
        ),
        ("deep_gemm::sm90_fp8_gemm_1d2d_impl<MajorK, 0,0,0, 1, 16, GemmType::Normal, bf16>", 0, 0),
        ("void router_gemm_kernel<__nv_bfloat16, float, 128, 8, 16, 256, 7168>(x)", 256, 7168),
        ("void fused_a_gemm_kernel<1, 2112, 7168, 16, 16, 256, 12>(x)", 2112, 7168),
        ("nvjet_tst_64x8_64x16_4x1_v_bz_TNT", 0, 0),
    ],
)
def test_a_product_that_carries_its_size_tells_it(vocabulary: Vocabulary, name: str, n: int, k: int) -> None:
    found = vocabulary.classify(name)
    assert (found.gemm_n, found.gemm_k) == (n, k)


def test_grouping_decides_between_dense_and_expert_products(vocabulary: Vocabulary) -> None:
    name = "void deep_gemm::fp8_gemm_kernel<4096u, 7168u, 128u, (deep_gemm::GemmType){}>(x)"
    assert [vocabulary.classify(name.format(i)).kernel_class for i in (0, 1, 2)] == [
        "gemm",
        "moe_gemm",
        "moe_gemm",
    ]


@pytest.mark.parametrize(
    ("name", "trait"),
    [
        ("void mul_mat_vec_q<(ggml_type)12, (int)1>(x)", "w_q4_k"),
        ("nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT", "splitk"),
        ("nvjet_tst_144x128_64x6_2x1_v_bz_bias_TNN", "bias"),
        ("ampere_sgemm_128x64_tn", "sgemm"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(T1::Params)", "simt"),
        ("triton_poi_fused_3", "opaque"),
        ("triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_1", "rsqrt"),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvSlidingOrChunkedCausalP16PersistentContext", "window"),
        ("kernel_unified_attention_3d", "split"),
        ("something_nobody_has_seen", "opaque"),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, "
            "float, float, float>, unsigned int, float, 4> >(x)",
            "mean",
        ),
        ("void flash_bwd_dq_dk_dv_loop_kernel<x>(x)", "backward"),
    ],
)
def test_traits(vocabulary: Vocabulary, name: str, trait: str) -> None:
    assert trait in vocabulary.classify(name).traits


def test_neighbours_in_an_inductor_name_are_not_its_work(vocabulary: Vocabulary) -> None:
    assert vocabulary.classify("triton_poi_fused_machete_mm_mul_silu_slice_1").kernel_class == "activation"
    assert vocabulary.classify("triton_red_fused_mm_t_3").kernel_class == "gemm"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("void at::native::upsample_gen2d_aa_out_frame<float>(x)", "sampling"),
        ("check_properties_kernel", "rope"),
        ("void flashinfer::sampling::TopKSamplingFromProbKernel<1024u>(x)", "attention_decode"),
        (
            "void cutlass::device_kernel<flash::FlashAttnFwdCombine<cute::tuple<cute::C<8> >, 6> >(x)",
            "gemm",
        ),
    ],
)
def test_words_inside_words_and_wrappers_do_not_mislead(
    vocabulary: Vocabulary, name: str, wrong: str
) -> None:
    assert vocabulary.classify(name).kernel_class != wrong


def test_helpers(vocabulary: Vocabulary) -> None:
    helpers = {
        "void cublasLt::splitKreduce_kernel<32, 16, int, float>(x)": "reduction",
        "void flash::flash_fwd_splitkv_combine_kernel<x>(x)": "combine",
        "void flash::prepare_varlen_num_blocks_kernel<1, true>": "metadata",
        "Memset (Device)": "workspace",
        "memcpy32_post": "glue",
        "nvjet_tst_64x8_64x16_4x1_v_bz_TNT": "",
    }
    assert {name: vocabulary.classify(name).helper for name in helpers} == helpers


def test_flashinfer_decodes_with_its_prefill_kernel(vocabulary: Vocabulary) -> None:
    name = "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<{}, 1u> >(x)"
    decode = vocabulary.classify(name.format("(flashinfer::MaskMode)0, 16u"))
    prefill = vocabulary.classify(name.format("(flashinfer::MaskMode)1, 128u"))
    assert (decode.kernel_class, prefill.kernel_class) == ("attention_decode", "attention_prefill")


def test_an_unknown_name_is_other_with_no_confidence(vocabulary: Vocabulary) -> None:
    found = vocabulary.classify("zzz")
    assert (found.kernel_class, found.rule, found.confidence) == ("other", "default", 0.0)


def test_a_shared_rule_takes_the_engine_from_the_namespace(vocabulary: Vocabulary) -> None:
    assert vocabulary.classify("void vllm::rms_norm_kernel<float>(x)").engine == "vllm"
    assert vocabulary.classify("void sglang::rms_norm_kernel<float>(x)").engine == "sglang"


def test_a_users_file_is_asked_first(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(
        "engine: mine\nrules:\n"
        "  - {id: mine-o, word: super_fuse, class: gemm, covers: [o_proj, residual_add], confidence: 0.9}\n"
        "  - {id: mine-moe, base: '^fused_moe_kernel$', class: other}\n",
        encoding="utf-8",
    )
    mine = load([file])
    found = mine.classify("void my::SuperFuse<4>(float*)")
    assert (found.kernel_class, found.covers, found.engine) == ("gemm", ("o_proj", "residual_add"), "mine")
    assert mine.classify("fused_moe_kernel").rule == "mine-moe"
    assert load().classify("fused_moe_kernel").kernel_class == "moe_gemm"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("rules:\n  - id: a\n    class: gem\n", ("mine.yaml", "line 3", "rules.0.class")),
        (
            "rules:\n  - id: a\n    class: gemm\n    base: '('\n",
            ("line 4", "rules.0.base", "regular expression"),
        ),
        ("rules:\n  - id: a\n    class: gemm\n    clas: x\n", ("line 4", "rules.0.clas")),
        ("rules:\n  - id: a\n", ("line 2", "rules.0.class", "required")),
        ("rules:\n  - id: a\n    class: gemm\n    confidence: 2\n", ("line 4", "confidence")),
        ("rules: [\n", ("mine.yaml", "no YAML")),
        ("- 1\n", ("line 1", "the whole file")),
    ],
)
def test_a_wrong_file_is_told_with_line_and_field(tmp_path: Path, text: str, parts: tuple[str, ...]) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(VocabularyError) as caught:
        load([file])
    assert [part for part in parts if part not in caught.value.message] == []
    assert str(tmp_path) not in caught.value.message


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match=r"absent\.yaml cannot be read"):
        load([tmp_path / "absent.yaml"])


def test_ids_of_bundled_rules_are_unique_and_every_rule_has_a_condition() -> None:
    from importlib import resources

    folder = resources.files("nsysmodel.join").joinpath("data")
    index = parse_index(folder.joinpath("index.yaml").read_text(encoding="utf-8"), "index.yaml")
    rules = [
        rule
        for stem in index.order
        for rule in parse_rules(folder.joinpath(f"{stem}.yaml").read_text(encoding="utf-8"), stem).rules
    ]
    ids = [rule.id for rule in rules]
    assert [one for one in set(ids) if ids.count(one) > 1] == []
    positive = ("base", "namespace", "template", "anywhere", "word")
    assert [rule.id for rule in rules if not any(getattr(rule, field) for field in positive)] == []


@pytest.mark.real
def test_the_collected_names_fall_into_their_classes(vocabulary: Vocabulary) -> None:
    if not SHARED.exists():
        pytest.skip("the collection of kernel names is not part of the repository")
    with SHARED.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    other_names = {"mamba/ssm": "ssm", "copy/cast": "copy_cast", "memcpy/memset": "memcpy_memset"}
    right = sum(
        vocabulary.classify(row["name"]).kernel_class == other_names.get(row["op_class"], row["op_class"])
        for row in rows
    )
    assert right / len(rows) >= 0.97
