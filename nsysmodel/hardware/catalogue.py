"""The catalogue of devices: bundled data and the user's own files, found by name."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from nsysmodel.errors import HardwareError
from nsysmodel.hardware.peaks import cpu_peak, gpu_peak
from nsysmodel.hardware.schema import (
    Architecture,
    CatalogueFile,
    Cpu,
    Gpu,
    Value,
    parse_catalogue,
    read_catalogue,
)
from nsysmodel.hardware.types import Hardware, Link
from nsysmodel.workload import Sourced

DERIVED_PEAK = "derived: SMs × FLOP/cycle × clock"
DERIVED_CPU_PEAK = "derived: 2 × SIMD width × FMA/cycle × clock × cores"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Devices by name; the user's files come before the bundled data.

    Attributes:
        gpus, cpus: one entry per key.
        architectures: FLOP per cycle and SM by compute capability; the first that fits counts.
        sources: sentences that values refer to by a key.
    """

    gpus: tuple[Gpu, ...]
    cpus: tuple[Cpu, ...]
    architectures: tuple[Architecture, ...]
    sources: Mapping[str, str]

    def entry(self, name: str) -> Gpu | Cpu | None:
        """The device of this key, alias or device name; letter case and hyphens do not matter."""
        wanted = normal(name)
        names = [(gpu, (gpu.key, *gpu.aliases, gpu.name, *gpu.device_names)) for gpu in self.gpus]
        others = [(cpu, (cpu.key, *cpu.aliases, cpu.name)) for cpu in self.cpus]
        devices: list[tuple[Gpu | Cpu, tuple[str, ...]]] = [*names, *others]
        for exact in (True, False):
            for device, known in devices:
                candidates = known[:1] if exact else known
                if wanted and wanted in {normal(text) for text in candidates}:
                    return device
        return None

    def find(self, name: str) -> Hardware:
        """The device of this name as `Hardware`.

        Raises:
            HardwareError: there is none; the hint suggests names that are close.
        """
        entry = self.entry(name)
        if entry is None:
            raise unknown(name, self)
        return self.hardware(entry)

    def suggest(self, name: str, limit: int = 3) -> list[str]:
        """Keys that look like `name`, best first."""
        by_text: dict[str, str] = {}
        devices: list[Gpu | Cpu] = [*self.gpus, *self.cpus]
        for device in devices:
            for text in (device.key, *device.aliases, device.name):
                by_text.setdefault(normal(text), device.key)
        wanted = normal(name)
        starts = [key for text, key in by_text.items() if wanted and (text in wanted or wanted in text)]
        close = [
            by_text[text] for text in difflib.get_close_matches(wanted, by_text, n=limit * 2, cutoff=0.6)
        ]
        return list(dict.fromkeys([*close, *starts]))[:limit]

    def flop_per_cycle(self, compute_capability: str, device_name: str) -> Mapping[str, float]:
        """Dense FLOP per cycle and SM of an architecture; empty where it is not known."""
        for row in self.architectures:
            if row.compute_capability == compute_capability and row.name_contains in device_name:
                return row.flop_per_cycle
        return {}

    def hardware(self, entry: Gpu | Cpu) -> Hardware:
        """An entry as `Hardware`, with a source for every value."""
        return _cpu(entry, self.sources) if isinstance(entry, Cpu) else _gpu(entry, self)


def load_catalogue(files: Iterable[str] = ()) -> Catalogue:
    """The bundled catalogue, preceded by the user's files.

    Raises:
        HardwareError: a file of the user is wrong; with file, line and field.
    """
    extra = [read_catalogue(path) for path in files]
    return _merged([*extra, _bundled()]) if extra else _default()


def unknown(name: str, catalogue: Catalogue) -> HardwareError:
    """The error for a device name that is in no catalogue."""
    close = catalogue.suggest(name)
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    return HardwareError(
        f"No GPU is called '{name}' in the catalogue.",
        f"{hint}See `nsysmodel hardware list`, or describe it in a file and give it with --hardware-file.",
    )


def normal(text: str) -> str:
    """A device name without letter case, vendor words and separators.

    >>> normal("NVIDIA GeForce RTX 4090") == normal("rtx-4090")
    True
    """
    words = re.sub(r"\b(nvidia|tesla|geforce)\b", " ", text.casefold())
    return re.sub(r"[\s_\-()]+", "", words)


@functools.cache
def _bundled() -> CatalogueFile:
    text = importlib.resources.files("nsysmodel.hardware").joinpath("catalogue.yaml").read_text("utf-8")
    return parse_catalogue(text, "the bundled catalogue")


@functools.cache
def _default() -> Catalogue:
    return _merged([_bundled()])


def _merged(files: list[CatalogueFile]) -> Catalogue:
    gpus: dict[str, Gpu] = {}
    cpus: dict[str, Cpu] = {}
    sources: dict[str, str] = {}
    for file in files:
        for gpu in file.gpus:
            gpus.setdefault(gpu.key, gpu)
        for cpu in file.cpus:
            cpus.setdefault(cpu.key, cpu)
        sources = {**file.sources, **sources}
    architectures = tuple(row for file in files for row in file.architectures)
    return Catalogue(tuple(gpus.values()), tuple(cpus.values()), architectures, sources)


def _sentence(value: Value, sources: Mapping[str, str]) -> str:
    parts = [sources.get(part, part) for part in value.source.split("|") if part]
    return "; ".join(parts) or "catalogue file"


def _gpu(entry: Gpu, catalogue: Catalogue) -> Hardware:
    sources = catalogue.sources
    named: dict[str, Value | None] = {
        "bandwidth": entry.bandwidth,
        "pin_bandwidth": entry.pin_bandwidth,
        "l2": entry.l2,
        "sm_count": entry.sm_count,
        "clock": entry.clock,
        "memory": entry.memory or entry.reported_memory,
        **{f"peak.{dtype}": value for dtype, value in entry.peaks.items()},
        **{f"link.{kind}": value for kind, value in entry.links.items()},
    }
    known = {name: value for name, value in named.items() if value is not None}
    origins = {name: _sentence(value, sources) for name, value in known.items()}
    sms = _number(entry.sm_count)
    clock_hz = _number(entry.clock)
    own = {dtype: value.value for dtype, value in entry.flop_per_cycle.items()}
    device_name = (*entry.device_names, entry.name, entry.key)[0]
    per_cycle = own or dict(catalogue.flop_per_cycle(entry.compute_capability or "", device_name))
    peaks = {dtype: Sourced(value.value, "catalogue") for dtype, value in entry.peaks.items()}
    for dtype, flop in per_cycle.items():
        if dtype not in peaks and sms and clock_hz:
            peaks[dtype] = Sourced(gpu_peak(flop, sms, clock_hz), "catalogue")
            origins[f"peak.{dtype}"] = DERIVED_PEAK
    uncertain = {name: value.uncertain for name, value in known.items() if value.uncertain}
    for dtype, value in entry.flop_per_cycle.items():
        if value.uncertain and origins.get(f"peak.{dtype}") == DERIVED_PEAK:
            uncertain[f"peak.{dtype}"] = value.uncertain
    return Hardware(
        key=entry.key,
        name=device_name,
        source="catalogue",
        peak_flop_per_s=peaks,
        bandwidth_bytes_per_s=Sourced(entry.bandwidth.value, "catalogue"),
        pin_bandwidth_bytes_per_s=_number(entry.pin_bandwidth),
        l2_bytes=int(_number(entry.l2)),
        sm_count=int(sms),
        clock_hz=clock_hz,
        memory_bytes=_number(entry.memory or entry.reported_memory),
        links=_links(entry, sources),
        origins=origins,
        chip=entry.chip,
        compute_capability=entry.compute_capability or "",
        flop_per_cycle_per_sm=per_cycle,
        uncertain=uncertain,
        notes=(entry.note,) if entry.note else (),
    )


def _cpu(entry: Cpu, sources: Mapping[str, str]) -> Hardware:
    fma, clock_hz, cores = entry.fma_per_cycle.value, entry.clock.value, entry.cores.value
    named = {"bandwidth": entry.bandwidth, "l2": entry.cache, "sm_count": entry.cores, "clock": entry.clock}
    return Hardware(
        key=entry.key,
        name=entry.name or entry.key,
        source="catalogue",
        peak_flop_per_s={
            dtype: Sourced(cpu_peak(width, fma, clock_hz, cores), "catalogue")
            for dtype, width in entry.simd_width.items()
        },
        bandwidth_bytes_per_s=Sourced(entry.bandwidth.value, "catalogue"),
        l2_bytes=int(_number(entry.cache)),
        sm_count=int(cores),
        clock_hz=clock_hz,
        links=_links(entry, sources),
        origins={
            **{name: _sentence(value, sources) for name, value in named.items() if value is not None},
            **{f"peak.{dtype}": DERIVED_CPU_PEAK for dtype in entry.simd_width},
            **{f"link.{kind}": _sentence(value, sources) for kind, value in entry.links.items()},
        },
        flop_per_cycle_per_sm={dtype: 2 * width * fma for dtype, width in entry.simd_width.items()},
        notes=(entry.note,) if entry.note else (),
    )


def _links(entry: Gpu | Cpu, sources: Mapping[str, str]) -> dict[str, Link]:
    return {kind: Link(kind, value.value, _sentence(value, sources)) for kind, value in entry.links.items()}


def _number(value: Value | None) -> float:
    return value.value if value is not None else 0.0
