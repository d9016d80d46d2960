"""Which device the floors are for: flag, then catalogue by device name, then the export's own numbers."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from nsysmodel.errors import HardwareError
from nsysmodel.hardware.catalogue import DERIVED_PEAK, Catalogue, load_catalogue
from nsysmodel.hardware.export_facts import derived, from_export
from nsysmodel.hardware.match import GpuFactsLike, match
from nsysmodel.hardware.peaks import gpu_peak
from nsysmodel.hardware.types import Hardware
from nsysmodel.units import bandwidth, clock, parse_bandwidth, parse_clock, parse_flops
from nsysmodel.workload import Sourced

DTYPES = ("bf16", "fp16", "tf32", "fp32", "fp64", "fp8", "fp4", "int8")
OTHER_ENGINES = ("int4", "fp64_tensor", "fp16_acc16", "fp8_acc16")
GIVEN = "given by the user"
_SYNONYMS = {"bfloat16": "bf16", "float16": "fp16", "half": "fp16", "float32": "fp32", "float64": "fp64"}


@dataclass(frozen=True, slots=True)
class Overrides:
    """Hardware numbers that the user states.

    Attributes:
        bandwidth: DRAM bytes/s.
        peaks: dense FLOP/s by number format.
        clock: SM clock in Hz; every peak is recomputed for it.
        sms: number of SMs (or cores); every peak is scaled to it.
        files: catalogue files of the user.
    """

    bandwidth: float | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)
    clock: float | None = None
    sms: int | None = None
    files: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls,
        *,
        bandwidth: str | None = None,
        peaks: Iterable[str] = (),
        clock: str | None = None,
        sms: int | None = None,
        files: Iterable[str] = (),
    ) -> Overrides:
        """From the text of flags.

        Raises:
            UnitError: a quantity cannot be read.
            HardwareError: a peak is not `type=rate`, or its type is unknown.

        >>> Overrides.parse(peaks=["bf16=989TFLOPS"]).peaks
        {'bf16': 989000000000000.0}
        """
        return cls(
            bandwidth=parse_bandwidth(bandwidth) if bandwidth else None,
            peaks=dict(_peak(text) for text in peaks),
            clock=parse_clock(clock) if clock else None,
            sms=sms,
            files=tuple(files),
        )


def dtype_name(text: str) -> str:
    """The engine that a user means by a number format: `BF16`, `bfloat16` → `bf16`.

    Raises:
        HardwareError: there is no such format; the hint suggests one.
    """
    name = _SYNONYMS.get(text.strip().casefold(), text.strip().casefold())
    known = (*DTYPES, *OTHER_ENGINES)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"Did you mean {close[0]}? " if close else ""
        raise HardwareError(f"'{text}' is not a number format.", f"{hint}Known: {', '.join(known)}.")
    return name


def resolve(
    gpu: str | None = None, *, facts: GpuFactsLike | None = None, overrides: Overrides | None = None
) -> Hardware:
    """The device that the floors are for.

    Order: `gpu` (a name of the catalogue), the catalogue by the export's device name, the export's own SM
    count, clock and pin rate. A MIG slice, and a card whose SM count is not the catalogue's, get the
    catalogue's peaks scaled to their own SMs. Single values of `overrides` are put on top.

    Args:
        gpu: name of the catalogue, or None.
        facts: what the export says of the device, or None.
        overrides: numbers that the user states.

    Raises:
        HardwareError: the name is unknown, or nothing is known of the device.

    >>> gh200 = resolve("gh200", overrides=Overrides(clock=1.6e9))
    >>> round(gh200.peak("tf32") / 1e12)
    433
    """
    overrides = overrides or Overrides()
    catalogue = load_catalogue(overrides.files)
    return _overridden(_base(gpu, facts, overrides, catalogue), overrides)


def _base(
    gpu: str | None, facts: GpuFactsLike | None, overrides: Overrides, catalogue: Catalogue
) -> Hardware:
    if gpu:
        found = catalogue.find(gpu)
        return dataclasses.replace(found, origins={"name": "chosen by the user", **found.origins})
    if facts is not None:
        entry = match(facts, catalogue)
        if entry is not None:
            return from_export(catalogue.hardware(entry), facts)
        return derived(facts, catalogue, bandwidth=overrides.bandwidth)
    if overrides.bandwidth:
        return Hardware(
            key="",
            name="described by flags",
            source="flag",
            peak_flop_per_s={},
            bandwidth_bytes_per_s=Sourced(overrides.bandwidth, "flag"),
        )
    raise HardwareError(
        "The GPU is not known: the export does not describe it and no flag names it.",
        "Name it with --gpu (see `nsysmodel hardware list`), or give --bandwidth and --peak.",
    )


def _overridden(hardware: Hardware, overrides: Overrides) -> Hardware:
    origins = dict(hardware.origins)
    peaks = dict(hardware.peak_flop_per_s)
    sms = overrides.sms or hardware.sm_count
    clock_hz = overrides.clock or hardware.clock_hz
    if overrides.clock:
        origins["clock"] = GIVEN
    if overrides.sms or overrides.clock:
        for dtype in {*peaks, *hardware.flop_per_cycle_per_sm}:
            value = _at(hardware, dtype, overrides)
            if value is not None:
                peaks[dtype] = Sourced(value, "flag")
                origins[f"peak.{dtype}"] = f"{DERIVED_PEAK}, for {sms} at {clock(clock_hz)} as given"
    for dtype, peak in overrides.peaks.items():
        peaks[dtype] = Sourced(peak, "flag")
        origins[f"peak.{dtype}"] = GIVEN
    dram = hardware.bandwidth_bytes_per_s
    if overrides.bandwidth:
        origins["bandwidth"] = f"given by the user; catalogue or export: {bandwidth(dram.value)}"
        dram = Sourced(overrides.bandwidth, "flag")
    return dataclasses.replace(
        hardware,
        peak_flop_per_s=peaks,
        bandwidth_bytes_per_s=dram,
        sm_count=sms,
        clock_hz=clock_hz,
        origins=origins,
    )


def _at(hardware: Hardware, dtype: str, overrides: Overrides) -> float | None:
    """The peak for the clock and SMs of `overrides`; None where it cannot be computed.

    With a clock it is the formula. With SMs alone a datasheet peak keeps the clock it was quoted at.
    """
    share = overrides.sms / hardware.sm_count if overrides.sms and hardware.sm_count else 1.0
    per_cycle = hardware.flop_per_cycle_per_sm.get(dtype)
    known = hardware.peak(dtype)
    if overrides.clock and per_cycle and (overrides.sms or hardware.sm_count):
        return gpu_peak(per_cycle, overrides.sms or hardware.sm_count, overrides.clock)
    if overrides.clock and known is not None and hardware.clock_hz:
        return known * share * overrides.clock / hardware.clock_hz
    if overrides.clock or known is None:
        return None
    return known * share


def _peak(text: str) -> tuple[str, float]:
    dtype, equals, rate = text.partition("=")
    if not equals:
        raise HardwareError(f"'{text}' is not a peak.", "Write --peak bf16=989TFLOPS.")
    return dtype_name(dtype), parse_flops(rate)
