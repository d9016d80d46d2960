"""Which device the floors are for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from nsysmodel.errors import HardwareError
from nsysmodel.hardware.catalogue import load_catalogue
from nsysmodel.hardware.resolve import Overrides, resolve
from nsysmodel.units import UnitError


@dataclass(frozen=True)
class Facts:
    name: str = ""
    sm_count: int = 0
    clock_hz: int = 0
    bandwidth_bytes_per_s: int = 0
    l2_bytes: int = 0
    memory_bytes: int = 0
    compute_capability: str = ""
    mig: bool = False


A30_SLICE = Facts(
    "NVIDIA A30 MIG 2g.12gb", 28, 1_440_000_000, 466_560_000_000, 12_582_912, 12_549_357_568, "8.0", mig=True
)
LAPTOP = Facts(
    "NVIDIA GeForce RTX 4060 Laptop GPU", 24, 2_370_000_000, 256_032_000_000, 33_554_432, 8_585_216_000, "8.9"
)
GH200 = Facts("NVIDIA GH200 120GB", 132, 1_980_000_000, 4_022_784_000_000, 62_914_560, 102_005_473_280, "9.0")

SEEN_IN_EXPORTS = [
    (
        Facts("NVIDIA A100-SXM4-80GB", 108, 1_410_000_000, 2_039_040_000_000, 41_943_040, 85_095_874_560),
        "a100",
    ),
    (
        Facts("NVIDIA A100-SXM4-40GB", 108, 1_410_000_000, 1_555_200_000_000, 41_943_040, 42_297_524_224),
        "a100-40gb",
    ),
    (
        Facts("NVIDIA GeForce RTX 4090", 128, 2_535_000_000, 1_008_096_000_000, 75_497_472, 25_386_352_640),
        "rtx-4090",
    ),
    (
        Facts("NVIDIA H100 80GB HBM3", 132, 1_980_000_000, 3_352_320_000_000, 52_428_800, 84_942_979_072),
        "h100",
    ),
    (Facts("NVIDIA H100 80GB HBM3", 132, memory_bytes=85_018_279_936), "h100"),
    (Facts("NVIDIA H200", 132, 1_980_000_000, 4_916_736_000_000, 62_914_560, 150_121_545_728), "h200"),
    (Facts("NVIDIA GB10", 48, memory_bytes=128_453_668_864), "gb10"),
    (Facts("Tesla T4", 40, 1_590_000_000, 320_064_000_000, 4_194_304, 15_655_829_504), "t4"),
    (GH200, "gh200"),
    (A30_SLICE, "a30"),
    (LAPTOP, ""),
]


@pytest.mark.parametrize(("facts", "key"), SEEN_IN_EXPORTS, ids=lambda value: getattr(value, "name", value))
def test_device_of_an_export_finds_its_row(facts: Facts, key: str) -> None:
    assert resolve(facts=facts).key == key


def test_flag_comes_before_the_export() -> None:
    assert resolve("b200", facts=GH200).key == "b200"


@pytest.mark.parametrize(
    ("facts", "key"),
    [
        (replace(GH200, name="NVIDIA GH200 480GB"), "gh200"),
        (
            replace(
                GH200,
                name="NVIDIA GH200 480GB",
                memory_bytes=153_008_209_920,
                bandwidth_bytes_per_s=4_916_736_000_000,
            ),
            "gh200-144gb",
        ),
        (Facts("NVIDIA GH200 144G HBM3e", 132), "gh200-144gb"),
        (Facts("NVIDIA A100", 108, 1, 2_039_040_000_000, 1, 85_000_000_000), "a100"),
        (Facts("NVIDIA A100", 108, 1, 1_555_200_000_000, 1, 42_297_524_224), "a100-40gb"),
        (Facts("NVIDIA H100 PCIe", 114, 1_755_000_000), "h100-pcie"),
        (Facts("NVIDIA H100 NVL", 132), "h100-nvl"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_variants_of_a_card_are_told_apart(facts: Facts, key: str) -> None:
    assert resolve(facts=facts).key == key


def test_mig_slice_has_its_own_numbers_never_the_full_card() -> None:
    slice_ = resolve(facts=A30_SLICE)
    assert slice_.sm_count == 28
    assert slice_.mig
    assert slice_.source == "inferred"
    assert slice_.peak("bf16") == pytest.approx(165e12 / 2)
    assert slice_.bandwidth_bytes_per_s.value == pytest.approx(933e9 / 2)
    assert slice_.pin_bandwidth_bytes_per_s == 466.56e9
    assert slice_.l2_bytes == 12_582_912
    assert "nvlink" not in slice_.links


def test_mig_slice_is_scaled_by_its_profile_where_the_export_is_silent() -> None:
    slice_ = resolve(facts=Facts("NVIDIA A100-SXM4-80GB MIG 3g.40gb", mig=True))
    assert slice_.sm_count == 108 * 3 // 7
    assert slice_.bandwidth_bytes_per_s.value == pytest.approx(2039e9 / 2)
    assert slice_.peak("bf16") == pytest.approx(312e12 * 46 / 108)


def test_same_name_with_another_sm_count_is_scaled() -> None:
    # The 12 GB RTX 3080 carries the name of the 10 GB card: 70 SMs instead of 68 and a wider bus.
    card = resolve(
        facts=Facts(
            "NVIDIA GeForce RTX 3080", 70, 1_710_000_000, 912_096_000_000, 6_291_456, 12_600_000_000, "8.6"
        )
    )
    assert card.source == "inferred"
    assert card.peak("fp32") == pytest.approx(70 * 256 * 1.71e9)
    assert card.bandwidth_bytes_per_s.value == pytest.approx(912.096e9)


def test_unknown_gpu_is_derived_from_the_export_and_marked() -> None:
    laptop = resolve(facts=LAPTOP)
    assert laptop.source == "inferred"
    assert laptop.bandwidth_bytes_per_s.source == "export"
    assert laptop.bandwidth_bytes_per_s.value == 256_032_000_000
    # GeForce of Ada: 512 FLOP per cycle and SM in BF16 with FP32 accumulation.
    assert laptop.peak("bf16") == 24 * 512 * 2.37e9
    assert laptop.peak_flop_per_s["bf16"].source == "inferred"
    assert laptop.notes


def test_a_longer_name_is_not_taken_for_a_shorter_one() -> None:
    card = Facts(
        "NVIDIA GeForce RTX 4060", 24, 2_460_000_000, 272_016_000_000, 25_165_824, 8_585_216_000, "8.9"
    )
    assert resolve(facts=card).key == ""


def test_nothing_known_names_the_flag() -> None:
    with pytest.raises(HardwareError) as caught:
        resolve()
    assert "--gpu" in caught.value.hint
    with pytest.raises(HardwareError) as caught:
        resolve(facts=Facts("NVIDIA Unheard 9000", 40))
    assert "--gpu" in caught.value.hint


def test_unknown_name_gets_suggestions() -> None:
    with pytest.raises(HardwareError) as caught:
        resolve("gh-201")
    assert "gh200" in caught.value.hint


def test_clock_recomputes_every_peak() -> None:
    gh200 = resolve("gh200", overrides=Overrides.parse(clock="1.6GHz"))
    assert gh200.peak("tf32") == pytest.approx(432.5e12, rel=1e-3)
    assert gh200.peak("bf16") == pytest.approx(865.1e12, rel=1e-3)
    assert gh200.peak("fp32") == pytest.approx(54.07e12, rel=1e-3)
    assert {peak.source for peak in gh200.peak_flop_per_s.values()} == {"flag"}


def test_one_sm_has_its_share_of_the_peak() -> None:
    assert resolve("h100", overrides=Overrides(sms=1)).peak("bf16") == pytest.approx(989.4e12 / 132)


def test_single_values_are_overridden() -> None:
    gpu = resolve("gh200", overrides=Overrides.parse(bandwidth="3.7TB/s", peaks=["BF16=800TFLOPS"]))
    assert gpu.bandwidth_bytes_per_s.value == 3.7e12
    assert gpu.bandwidth_bytes_per_s.source == "flag"
    assert (gpu.peak("bf16"), gpu.peak("fp8")) == (800e12, 1979e12)


def test_flags_alone_describe_a_device() -> None:
    device = resolve(overrides=Overrides.parse(bandwidth="1TB/s", peaks=["fp32=10TFLOPS"]))
    assert device.source == "flag"
    assert device.peak("fp32") == 1e13


@pytest.mark.parametrize("flag", ["bf16", "bf61=1TFLOPS"])
def test_wrong_peak_is_an_error(flag: str) -> None:
    with pytest.raises(HardwareError):
        Overrides.parse(peaks=[flag])


def test_wrong_quantity_is_an_error() -> None:
    with pytest.raises(UnitError):
        Overrides.parse(bandwidth="fast")


def test_user_file_comes_before_the_bundled_rows(tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "gpus:\n"
        "  - key: lab\n    sm_count: 10\n    clock: 1GHz\n    compute_capability: '9.0'\n"
        "    bandwidth: 1TB/s\n"
        "  - key: gh200\n    bandwidth: {value: 3.9TB/s, source: measured}\n    peaks: {bf16: 900TFLOPS}\n"
    )
    overrides = Overrides(files=(str(path),))
    assert resolve("lab", overrides=overrides).peak("bf16") == 10 * 4096 * 1e9
    gh200 = resolve("gh200", overrides=overrides)
    assert gh200.bandwidth_bytes_per_s.value == 3.9e12
    assert gh200.origins["bandwidth"] == "measured"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("gpus:\n  - key: x\n    bandwidth: fast\n", ["line 3", "gpus.0.bandwidth", "fast"]),
        ("gpus:\n  - key: x\n    bandwidth: 1TB/s\n    bandwith: 2TB/s\n", ["line 4", "bandwith"]),
        ("gpus:\n  - key: x\n", ["line 2", "bandwidth", "required"]),
        ("gpus:\n  - key: [\n", ["line", "mine.yaml"]),
        ("just text", ["mine.yaml"]),
        ("gpus:\n  - key: x\n    bandwidth: -1\n", ["line 3", "greater than 0"]),
    ],
)
def test_wrong_user_file_names_line_and_field(tmp_path, text: str, parts: list[str]) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(HardwareError) as caught:
        load_catalogue([str(path)])
    for part in parts:
        assert part in caught.value.message


def test_missing_user_file_is_an_error(tmp_path) -> None:
    with pytest.raises(HardwareError):
        load_catalogue([str(tmp_path / "none.yaml")])


def test_the_file_in_the_docs_is_a_catalogue(tmp_path) -> None:
    docs = (Path(__file__).parents[2] / "docs" / "hardware.md").read_text("utf-8")
    path = tmp_path / "lab.yaml"
    path.write_text(docs.split("```yaml\n")[1].split("```")[0], "utf-8")
    lab = resolve(facts=Facts("NVIDIA Lab Board", 100), overrides=Overrides(files=(str(path),)))
    assert lab.key == "lab"
    assert lab.peak("bf16") == 700e12
    assert lab.peak("fp8") == 100 * 8192 * 1.8e9
