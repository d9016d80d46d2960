"""A device as the export describes it: catalogue values corrected to it, or derived from it alone."""

from __future__ import annotations

import dataclasses

from nsysmodel.errors import HardwareError
from nsysmodel.hardware.catalogue import Catalogue
from nsysmodel.hardware.match import GpuFactsLike, MigProfile, mig_profile
from nsysmodel.hardware.peaks import gpu_peak
from nsysmodel.hardware.types import Hardware
from nsysmodel.workload import Sourced

EXPORT = "device properties in the export"
MIG_SLICES = {"a30": 4}
"""Compute slices of a card that MIG can cut; 7 where nothing else is said."""


def from_export(known: Hardware, facts: GpuFactsLike) -> Hardware:
    """A device of the catalogue with what the export says of this very one.

    SM count, clock, pin rate, L2 and memory are the export's. Peaks and bandwidth stay the datasheet's,
    scaled where the device is a MIG slice or has another number of SMs: a slice never gets the full card.
    """
    profile = mig_profile(facts.name)
    mig = bool(facts.mig or profile)
    origins = {**known.origins, **dict.fromkeys(_told(facts), EXPORT)}
    sms = facts.sm_count or _slice_sms(known, profile)
    whole = dataclasses.replace(
        known,
        name=facts.name,
        pin_bandwidth_bytes_per_s=facts.bandwidth_bytes_per_s or known.pin_bandwidth_bytes_per_s,
        l2_bytes=facts.l2_bytes or known.l2_bytes,
        sm_count=sms,
        clock_hz=facts.clock_hz or known.clock_hz,
        memory_bytes=facts.memory_bytes or known.memory_bytes,
        compute_capability=facts.compute_capability or known.compute_capability,
        origins=origins,
        mig=mig,
    )
    if not mig and (not known.sm_count or sms == known.sm_count):
        return whole
    return _scaled(whole, known, facts, profile)


def derived(facts: GpuFactsLike, catalogue: Catalogue, *, bandwidth: float | None = None) -> Hardware:
    """A device that is in no catalogue, from the export's SM count, clock, pin rate and architecture.

    Raises:
        HardwareError: the export says too little to know the bandwidth.
    """
    if not (facts.bandwidth_bytes_per_s or bandwidth):
        name = f"'{facts.name}'" if facts.name else "The GPU of this export"
        close = catalogue.suggest(facts.name) if facts.name else []
        also = f" Close: {', '.join(close)}." if close else ""
        raise HardwareError(
            f"{name} is not in the catalogue and the export does not give its memory bandwidth.",
            f"Name the GPU with --gpu, or give --bandwidth and --peak.{also}",
        )
    per_cycle = catalogue.flop_per_cycle(facts.compute_capability or "", facts.name)
    peaks = {}
    if facts.sm_count and facts.clock_hz:
        peaks = {
            dtype: Sourced(gpu_peak(flop, facts.sm_count, facts.clock_hz), "inferred")
            for dtype, flop in per_cycle.items()
        }
    origin = "derived from the export: SMs × FLOP/cycle of the architecture × clock"
    return Hardware(
        key="",
        name=facts.name,
        source="inferred",
        peak_flop_per_s=peaks,
        bandwidth_bytes_per_s=Sourced(facts.bandwidth_bytes_per_s or bandwidth or 0, "export"),
        pin_bandwidth_bytes_per_s=facts.bandwidth_bytes_per_s or 0,
        l2_bytes=facts.l2_bytes or 0,
        sm_count=facts.sm_count or 0,
        clock_hz=facts.clock_hz or 0,
        memory_bytes=facts.memory_bytes or 0,
        origins={
            **dict.fromkeys(_told(facts), EXPORT),
            **{f"peak.{dtype}": origin for dtype in peaks},
            "bandwidth": "pin rate in the export",
        },
        compute_capability=facts.compute_capability or "",
        flop_per_cycle_per_sm=per_cycle,
        notes=("not in the catalogue: derived from what the export says of the device",),
        mig=bool(facts.mig or mig_profile(facts.name)),
    )


def _scaled(whole: Hardware, known: Hardware, facts: GpuFactsLike, profile: MigProfile | None) -> Hardware:
    """Peaks by SMs, bandwidth by pin rate; by the share of memory where the export is silent."""
    share = whole.sm_count / known.sm_count if known.sm_count and whole.sm_count else 1.0
    memory_share = 1.0
    if whole.mig and profile is not None and known.memory_bytes:
        memory_share = min(1.0, profile.memory_gb * 1e9 / known.memory_bytes)
    elif whole.mig and facts.memory_bytes and known.memory_bytes:
        memory_share = min(1.0, facts.memory_bytes / known.memory_bytes)
    datasheet = known.bandwidth_bytes_per_s.value
    if facts.bandwidth_bytes_per_s and known.pin_bandwidth_bytes_per_s:
        rate = datasheet * facts.bandwidth_bytes_per_s / known.pin_bandwidth_bytes_per_s
        origin = "datasheet × (pin rate in the export / pin rate of the whole device)"
    elif facts.bandwidth_bytes_per_s:
        rate, origin = facts.bandwidth_bytes_per_s, "pin rate in the export"
    else:
        rate, origin = datasheet * memory_share, "datasheet × share of the memory"
    of = f"{whole.sm_count} of {known.sm_count} SMs"
    return dataclasses.replace(
        whole,
        source="inferred",
        peak_flop_per_s={
            dtype: Sourced(peak.value * share, "inferred") for dtype, peak in known.peak_flop_per_s.items()
        },
        bandwidth_bytes_per_s=Sourced(rate, "inferred"),
        pin_bandwidth_bytes_per_s=facts.bandwidth_bytes_per_s
        or known.pin_bandwidth_bytes_per_s * memory_share,
        l2_bytes=facts.l2_bytes or int(known.l2_bytes * memory_share),
        memory_bytes=facts.memory_bytes or known.memory_bytes * memory_share,
        # Slices have no peer-to-peer traffic.
        links={kind: link for kind, link in known.links.items() if not (whole.mig and kind == "nvlink")},
        origins={
            **whole.origins,
            **{f"peak.{dtype}": f"{known.name}, {of}" for dtype in known.peak_flop_per_s},
            "bandwidth": origin,
        },
        notes=(*known.notes, f"{'MIG slice' if whole.mig else 'variant'}: {of} of {known.name}"),
    )


def _slice_sms(known: Hardware, profile: MigProfile | None) -> int:
    if profile is None:
        return known.sm_count
    return known.sm_count * min(profile.slices, MIG_SLICES.get(known.key, 7)) // MIG_SLICES.get(known.key, 7)


def _told(facts: GpuFactsLike) -> list[str]:
    """Names of the values that the export states."""
    stated = {
        "name": facts.name,
        "sm_count": facts.sm_count,
        "clock": facts.clock_hz,
        "pin_bandwidth": facts.bandwidth_bytes_per_s,
        "l2": facts.l2_bytes,
        "memory": facts.memory_bytes,
    }
    return [name for name, value in stated.items() if value]
