"""Names of one kernel from three demanglers are equal; suffixes of compilers are split off."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nsysmodel.join.names import NormalisedName, normalise

CUPTI_NEG = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<"
    "at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::"
    "{lambda()#9}::operator()() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&, "
    "at::native::neg_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::"
    "{lambda()#9}::operator()() const::{lambda(c10::BFloat16)#1} const&)::{lambda(int)#1}>(int, int)"
)
NSYS_NEG = (
    "void at::native::elementwise_kernel<(int)128, (int)4, void at::native::gpu_kernel_impl_nocast<"
    "at::native::neg_kernel_cuda(at::TensorIteratorBase &)::[lambda() (instance 2)]::operator ()() const::"
    "[lambda() (instance 9)]::operator ()() const::[lambda(c10::BFloat16) (instance 1)]>"
    "(at::TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)"
)
NCU_NEG = (
    "void elementwise_kernel<128, 4, void gpu_kernel_impl_nocast<neg_kernel_cuda(TensorIteratorBase &)::"
    "[lambda() (instance 2)]::operator ()() lambda() (instance 9)]::operator ()() lambda(BFloat16) "
    "(instance 1)]>(TensorIteratorBase &, const T1 &)::[lambda(int) (instance 1)]>(int, T3)"
)

SAME = [
    (CUPTI_NEG, NSYS_NEG, NCU_NEG),
    (
        "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, float, false, "
        "true, 7, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__nv_bfloat16 const>, float> >(int)",
        "std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, float, (bool)0, "
        "(bool)1, (int)7, cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<const __nv_bfloat16>, float"
        ">>(T13)",
        "enable_if<!T7, void>::type kernel<int, int, __nv_bfloat16, float, 0, 1, 7, cublasGemvParamsEx<int, "
        "cublasGemvTensorStridedBatched<const __nv_bfloat16>, float>>(T13)",
    ),
    (
        "void (anonymous namespace)::softmax_warp_forward<float, float, float, 7, false, false>(float*)",
        "void <unnamed>::softmax_warp_forward<float, float, float, (int)7, (bool)0, (bool)0>(T2 *)",
        "void softmax_warp_forward<float, float, float, 7, 0, 0>(T2 *)",
    ),
    (
        "void unary_gated_op_kernel<&(op_silu(float)), float>(float const*)",
        "void unary_gated_op_kernel<&op_silu, float>(const T2 *, const T2 *, T2 *, long, long)",
    ),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<long>, "
        "std::array<char*, 1ul> >(int)",
        "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<long long>, "
        "at::detail::Array<char *, (int)1>>(int, T2, T3)",
    ),
    (
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    ),
]


@pytest.mark.parametrize("names", SAME, ids=lambda names: normalise(names[0]).base)
def test_one_kernel_from_several_tools_is_one_name(names: tuple[str, ...]) -> None:
    assert len({normalise(name) for name in names}) == 1


def test_functions_inside_a_template_keep_their_name_since_only_it_says_what_the_kernel_does() -> None:
    assert "neg_kernel_cuda::lambda#2" in normalise(NSYS_NEG).template


@pytest.mark.parametrize(
    ("name", "base", "template"),
    [
        ("triton_poi_fused_mul_silu_slice_3", "triton_poi_fused_mul_silu_slice", "3"),
        ("triton_red_fused_2", "triton_red_fused", "2"),
        ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1", "_matmul_ogs_NNT_bf16xbf16xmxfp4", "16x128x256x1"),
        ("_fwd_kernel_0d1d2d3de4de", "_fwd_kernel", "0d1d2d3de4de"),
        ("kernel_unified_attention_2d", "kernel_unified_attention_2d", ""),
        ("nvjet_tst_64x8_64x16_2x1_v_bz_splitK_TNT", "nvjet", "tst_64x8_64x16_2x1_v_bz_splitK_TNT"),
        ("ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn", ""),
        ("Memcpy DtoH (Device -> Pinned)", "Memcpy DtoH", ""),
        ("[CUDA memset]", "Memset", ""),
        ("memcpy32_post", "memcpy32_post", ""),
        ("void mul_mat_vec_q<(ggml_type)12, 1>(void const*)", "mul_mat_vec_q", "(ggml_type)12,1"),
        (
            "std::enable_if<(((8) > (0)) && vllm::_typeConvert<c10::BFloat16>::exists), void>::type "
            "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)",
            "fused_add_rms_norm_kernel",
            "BFloat16,8",
        ),
        ("void outer<int>::inner<(int)3>(T1)", "inner", "3"),
        ("_ZN4vllm15rms_norm_kernelIN3c108BFloat16ELi8EEEvPT_", "rms_norm_kernel", "BFloat16,8"),
        ("_Z9saxpy_f32ifPKfPf", "saxpy_f32", ""),
        ("", "", ""),
        ("<", "<", ""),
    ],
)
def test_parts_of_a_name(name: str, base: str, template: str) -> None:
    found = normalise(name)
    assert (found.base, found.template) == (base, template)


def test_the_suffix_of_the_cute_dsl_goes_to_the_template() -> None:
    found = normalise(
        "kernel_cutlass_kernel_flashinfernormkernelsfused_add_rmsnormFusedAddRMSNormKernel_object_at__"
        "tensorptrbf16gmemalign128o256025601_0"
    )
    assert found.base.endswith("FusedAddRMSNormKernel")
    assert found.template.startswith("tensorptrbf16")


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("void a::k<float, in...", True),
        ("void a::k<float, (a::Kind", True),
        ("void a::k<float>(const float *, flo…", False),
        ("_long_triton_name_that_was_c...", True),
        ("void a::k<float>(float*)", False),
    ],
)
def test_a_name_is_cut_only_where_identity_is_lost(name: str, cut: bool) -> None:
    assert normalise(name).truncated is cut


def test_namespaces_are_told_but_not_compared() -> None:
    assert normalise("void x::k<1>()") == normalise("k<1>")
    assert normalise("void x::y::k<1>()").namespace == "x::y"


def test_two_instances_of_a_template_are_two_names() -> None:
    assert normalise("k<128, true>") != normalise("k<128, false>")
    assert normalise("triton_poi_fused_2") != normalise("triton_poi_fused_3")


@given(st.text(alphabet="ab_Z1(<>[]{}:,&* .…#", max_size=60))
def test_no_text_breaks_it(text: str) -> None:
    assert isinstance(normalise(text), NormalisedName)
    assert isinstance(normalise("_Z" + text), NormalisedName)
