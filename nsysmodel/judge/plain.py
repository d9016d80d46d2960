"""Hardware, workload and model as the plain mappings of the JSON contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nsysmodel.hardware.types import Hardware
from nsysmodel.model import FlatSpec, LayeredSpec, ModelSpec
from nsysmodel.model.types import FlatModel, StepModel
from nsysmodel.workload import Workload

SHOWN = ("phase", "batch", "context", "tokens", "dtype", "quant", "kv_dtype")


def hardware_facts(hardware: Hardware | None) -> dict[str, Any]:
    """The device with its peaks; empty values where nothing is known."""
    if hardware is None:
        return {"name": "", "source": "", "bandwidth_bytes_per_s": None, "peak_flop_per_s": {}, "sources": {}}
    return {
        "name": hardware.name,
        "key": hardware.key,
        "source": hardware.source,
        "bandwidth_bytes_per_s": hardware.bandwidth_bytes_per_s.value,
        "bandwidth_source": hardware.bandwidth_bytes_per_s.source,
        "pin_bandwidth_bytes_per_s": hardware.pin_bandwidth_bytes_per_s or None,
        "peak_flop_per_s": {dtype: peak.value for dtype, peak in hardware.peak_flop_per_s.items()},
        "peak_sources": {dtype: peak.source for dtype, peak in hardware.peak_flop_per_s.items()},
        "sm_count": hardware.sm_count,
        "clock_hz": hardware.clock_hz,
        "l2_bytes": hardware.l2_bytes,
        "memory_bytes": hardware.memory_bytes,
        "links": {kind: link.bytes_per_s for kind, link in hardware.links.items()},
        "sources": dict(hardware.origins),
    }


def workload_facts(workload: Workload | None, spec: ModelSpec | None = None) -> dict[str, Any]:
    """Each parameter with its source. Weight and cache formats that are the model's own are left out."""
    if workload is None:
        return {}
    facts: dict[str, Any] = {}
    for name in workload.__dataclass_fields__:
        sourced = getattr(workload, name)
        if sourced.value != "":
            facts[name] = {"value": sourced.value, "source": sourced.source}
    if isinstance(spec, LayeredSpec):
        facts.setdefault("dtype", {"value": spec.dtype, "source": "model"})
    return facts


def model_facts(model: StepModel | FlatModel | ModelSpec | None) -> Mapping[str, Any] | None:
    """The model's name, source, layers and size; of one that was never built, without size."""
    if model is None:
        return None
    if isinstance(model, FlatSpec):
        model = model.model
    if isinstance(model, LayeredSpec):
        return {
            "name": model.name,
            "source": model.source,
            "layers": len(model.layers),
            "notes": list(model.notes),
        }
    if isinstance(model, FlatModel):
        return {
            "name": model.name,
            "source": model.source,
            "layers": 0,
            "entries": len(model.kernels),
            "notes": [],
        }
    return {
        "name": model.name,
        "source": model.source,
        "layers": len(model.layers),
        "parameters": model.parameters,
        "active_parameters": model.active_parameters,
        "weights_once_bytes": model.weights_once_bytes,
        "memory_bytes": model.memory_bytes,
        "notes": list(model.notes),
    }
