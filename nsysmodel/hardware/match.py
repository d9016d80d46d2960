"""From what an export says of a GPU to its row in the catalogue.

Names are not enough: `NVIDIA GH200 480GB` says nothing of the HBM, an `NVIDIA GeForce RTX 3080` may have 68
or 70 SMs, and a MIG slice carries the name of the whole card. Memory, pin rate and SM count decide.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from nsysmodel.hardware.catalogue import Catalogue, normal
from nsysmodel.hardware.schema import Gpu


class GpuFactsLike(Protocol):
    """What an export says of a GPU; 0, None or empty where it says nothing."""

    @property
    def name(self) -> str:
        """Device name."""

    @property
    def sm_count(self) -> int | None:
        """Streaming multiprocessors; of the slice for MIG."""

    @property
    def clock_hz(self) -> float | None:
        """Maximum SM clock in Hz."""

    @property
    def bandwidth_bytes_per_s(self) -> float | None:
        """Pin rate of the DRAM in bytes/s."""

    @property
    def l2_bytes(self) -> int | None:
        """L2 cache in bytes."""

    @property
    def memory_bytes(self) -> float | None:
        """Device memory in bytes."""

    @property
    def compute_capability(self) -> str | None:
        """Such as `9.0`."""

    @property
    def mig(self) -> bool | None:
        """True for a MIG slice."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG slice as its name says it, `2g.12gb`: compute slices and memory in GB."""

    slices: int
    memory_gb: int


_MIG = re.compile(r"\s+MIG\s+(\d+)g\.(\d+)gb\S*\s*$", re.IGNORECASE)


def mig_profile(name: str) -> MigProfile | None:
    """The MIG profile in a device name, None where there is none.

    >>> mig_profile("NVIDIA A30 MIG 2g.12gb")
    MigProfile(slices=2, memory_gb=12)
    """
    found = _MIG.search(name)
    return MigProfile(int(found[1]), int(found[2])) if found else None


def whole_name(name: str) -> str:
    """The device name without its MIG profile."""
    return _MIG.sub("", name)


def match(facts: GpuFactsLike, catalogue: Catalogue) -> Gpu | None:
    """The catalogue row of the GPU that the export describes; None where none is certain."""
    wanted = normal(whole_name(facts.name))
    if not wanted:
        return None
    exact = [gpu for gpu in catalogue.gpus if wanted in {normal(name) for name in gpu.device_names}]
    if not exact:
        return _by_family(facts, catalogue)
    if facts.mig or mig_profile(facts.name):
        return exact[0]
    fits = [gpu for gpu in exact if not _contradicts(gpu, facts)]
    if fits:
        return fits[0]
    model = _model(facts.name)
    siblings = [
        gpu
        for gpu in catalogue.gpus
        if any(_model(name) == model for name in gpu.device_names)
        and gpu.chip == exact[0].chip
        and _same_sms(gpu, facts)
        and _agrees(gpu, facts)
    ]
    return siblings[0] if siblings else exact[0]


def _by_family(facts: GpuFactsLike, catalogue: Catalogue) -> Gpu | None:
    """A row whose names hold every word of the device name, confirmed by SMs and memory or pin rate."""
    words = _words(whole_name(facts.name))
    for gpu in catalogue.gpus:
        names = (*gpu.device_names, gpu.key, *gpu.aliases)
        named = bool(words) and any(words <= _words(name) for name in names)
        if named and _same_sms(gpu, facts) and _agrees(gpu, facts):
            return gpu
    return None


def _words(name: str) -> frozenset[str]:
    return frozenset(_word_list(name))


def _model(name: str) -> str:
    """The first word of a device name that is not the vendor's: `gh200`."""
    return (*_word_list(name), "")[0]


def _word_list(name: str) -> list[str]:
    words = re.split(r"[\s\-_]+", name.casefold())
    return [word for word in words if word not in {"nvidia", "tesla", "geforce", ""}]


def _same_sms(gpu: Gpu, facts: GpuFactsLike) -> bool:
    return gpu.sm_count is not None and facts.sm_count == gpu.sm_count.value


def _agrees(gpu: Gpu, facts: GpuFactsLike) -> bool:
    """Memory or pin rate is known, and none of them contradicts."""
    checks = [_memory_fits(gpu, facts), _bandwidth_fits(gpu, facts)]
    return True in checks and False not in checks


def _contradicts(gpu: Gpu, facts: GpuFactsLike) -> bool:
    return False in (_memory_fits(gpu, facts), _bandwidth_fits(gpu, facts))


def _memory_fits(gpu: Gpu, facts: GpuFactsLike) -> bool | None:
    # Drivers report the nominal gigabytes as anything from decimal GB, less a reserve, to GiB.
    nominal = gpu.memory or gpu.reported_memory
    if nominal is None or not facts.memory_bytes:
        return None
    return 0.94 <= facts.memory_bytes / nominal.value <= 1.09


def _bandwidth_fits(gpu: Gpu, facts: GpuFactsLike) -> bool | None:
    if not facts.bandwidth_bytes_per_s:
        return None
    known = (gpu.pin_bandwidth or gpu.bandwidth).value
    return abs(facts.bandwidth_bytes_per_s / known - 1) <= 0.06
