"""Quantisation configurations: which format, which modules keep the model's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nsysmodel.errors import ModelError
from nsysmodel.model.documents import Document

Result = tuple[dict[str, Any] | None, list[str]]

_ALGORITHMS = {
    "FP8": "fp8",
    "FP8_PER_CHANNEL_PER_TOKEN": "fp8_channel",
    "FP8_PB_WO": "fp8_block",
    "FP8_BLOCK_SCALES": "fp8_block",
    "NVFP4": "nvfp4",
    "NVFP4_AWQ": "nvfp4",
    "W4A16_NVFP4": "nvfp4_w4a16",
    "MXFP8": "mxfp8",
    "MXFP4": "mxfp4",
    "W4A16_MXFP4": "mxfp4_w4a16",
    "W4A16": "int4",
    "W4A16_AWQ": "awq",
    "W8A16": "int8_w8a16",
    "W8A8_SQ_PER_CHANNEL": "int8",
}
MXFP4_NOTE = "MXFP4 products are taken to run with FP8 activations where the device has FP4, else in 16 bit."
_KV = {"FP8": "fp8", "NVFP4": "nvfp4", "INT8": "int8", "fp8_e4m3": "fp8", "fp8": "fp8"}


def read_quantization(data: Any, document: Document, field: str) -> Result:
    """Formats of a `quantization_config`, or of a whole `hf_quant_config.json`.

    Returns:
        The fields of `schema.Quantization`, and notes.

    Raises:
        ModelError: a method or a format that is not known.
    """
    if not isinstance(data, Mapping):
        raise _error(document, field, "this is not an object.")
    inner = data.get("quantization", data)
    if not isinstance(inner, Mapping):
        raise _error(document, field, "this is not an object.")
    method = str(inner.get("quant_method") or "").lower()
    if inner.get("quant_algo") or method == "modelopt":
        return _modelopt(inner, document, field)
    readers = {
        "fp8": _fp8,
        "mxfp4": _mxfp4,
        "awq": _integers,
        "gptq": _integers,
        "compressed-tensors": _compressed,
        "fbgemm_fp8": _fp8,
    }
    if method not in readers:
        hint = f"Accepted: {', '.join((*readers, 'modelopt'))}."
        raise _error(document, f"{field}.quant_method", f"{method!r} is not supported.", hint)
    return readers[method](inner, document, field)


def _error(document: Document, field: str, problem: str, hint: str = "") -> ModelError:
    return ModelError(f"{document.name}: {field}: {problem}", hint)


def _excluded(data: Mapping[str, Any], *names: str) -> list[str]:
    """Modules that are not quantised."""
    for name in names:
        value = data.get(name)
        if isinstance(value, list):
            return [str(item) for item in value]
    return []


def _fp8(data: Mapping[str, Any], document: Document, field: str) -> Result:
    block = data.get("weight_block_size")
    if block not in (None, [128, 128]):
        raise _error(
            document, f"{field}.weight_block_size", f"{block!r} is not supported.", "Accepted: [128, 128]."
        )
    fmt = "fp8_block" if block else "fp8"
    exclude = _excluded(data, "modules_to_not_convert", "ignored_layers", "ignore")
    return {"format": fmt, "exclude": exclude}, []


def _mxfp4(data: Mapping[str, Any], document: Document, field: str) -> Result:
    return {"format": "mxfp4", "exclude": _excluded(data, "modules_to_not_convert")}, [MXFP4_NOTE]


def _integers(data: Mapping[str, Any], document: Document, field: str) -> Result:
    """AWQ and GPTQ: int4 weights, 16-bit products."""
    bits, group = data.get("bits", 4), data.get("group_size", 128)
    method = str(data["quant_method"]).lower()
    if bits not in (4, 8):
        raise _error(document, f"{field}.bits", f"{bits!r} is not supported.", "Accepted: 4, 8.")
    if not isinstance(group, int) or isinstance(group, bool) or group < 1:
        raise _error(
            document, f"{field}.group_size", f"{group!r} is not supported.", "Accepted: 32, 64, 128, …"
        )
    if bits == 8:
        fmt = f"int8_g{group}"
    else:
        # AWQ keeps zero points; symmetric GPTQ has none
        zero = data.get("zero_point", True) if method == "awq" else not data.get("sym", True)
        fmt = f"{'awq' if zero else 'gptq'}_g{group}"
    return {"format": fmt, "exclude": _excluded(data, "modules_to_not_convert")}, []


def _compressed(data: Mapping[str, Any], document: Document, field: str) -> Result:
    groups = data.get("config_groups")
    if not isinstance(groups, Mapping) or not groups:
        raise _error(document, f"{field}.config_groups", "this is missing.")
    found = [
        _group_format(group, document, f"{field}.config_groups.{name}") for name, group in groups.items()
    ]
    targets = [_targets(group) for group in groups.values()]
    result: dict[str, Any] = {"exclude": _excluded(data, "ignore")}
    modules: dict[str, str] = {}
    for fmt, target in zip(found, targets, strict=True):
        if target == ["Linear"]:
            result["format"] = fmt
        else:
            modules.update(dict.fromkeys(target, fmt))
    result["modules"] = modules
    kv = data.get("kv_cache_scheme")
    if isinstance(kv, Mapping) and kv.get("num_bits") == 8:
        result["kv"] = "fp8"
    elif isinstance(kv, str):
        result["kv"] = _kv(kv, document, f"{field}.kv_cache_scheme")
    return result, []


def _targets(group: Mapping[str, Any]) -> list[str]:
    value = group.get("targets") or ["Linear"]
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def _group_format(group: Any, document: Document, field: str) -> str:
    """Format of one group of `config_groups`."""
    weights = group.get("weights") if isinstance(group, Mapping) else None
    if not isinstance(weights, Mapping):
        raise _error(document, f"{field}.weights", "this is missing.")
    bits, kind, size = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    active = bool(group.get("input_activations"))
    if kind == "float" and bits == 8:
        if weights.get("strategy") == "block":
            return "fp8_block"
        plain = "fp8_channel" if weights.get("strategy") == "channel" else "fp8"
        return plain if active else "fp8_w8a16"
    if kind == "float" and bits == 4:
        if size == 32:
            return "mxfp4" if active else "mxfp4_w4a16"
        if size in (16, None):
            return "nvfp4" if active else "nvfp4_w4a16"
    if kind == "int" and bits == 4 and not active:
        symmetric = weights.get("symmetric", True)
        return f"{'int4' if symmetric else 'awq'}_g{size or 128}"
    if kind == "int" and bits == 8:
        return "int8" if active else "int8_w8a16"
    raise _error(document, f"{field}.weights", f"{bits} bit {kind} in groups of {size} is not supported.")


def _modelopt(data: Mapping[str, Any], document: Document, field: str) -> Result:
    """NVIDIA ModelOpt: one algorithm, or one per module."""
    algorithm = str(data.get("quant_algo") or "")
    result: dict[str, Any] = {"exclude": _excluded(data, "exclude_modules", "ignore")}
    layers = data.get("quantized_layers")
    if algorithm == "MIXED_PRECISION":
        if not isinstance(layers, Mapping):
            raise _error(document, f"{field}.quantized_layers", "this is missing.")
        result["modules"] = {
            str(name): _algorithm(
                (entry or {}).get("quant_algo"), document, f"{field}.quantized_layers.{name}"
            )
            for name, entry in layers.items()
        }
        result["exclude"] = []
        if data.get("quant_method") == "fp8":
            # the modules that are not named keep the FP8 of the original checkpoint
            result["format"] = "fp8_block" if data.get("weight_block_size") else "fp8"
    elif algorithm:
        result["format"] = _algorithm(algorithm, document, f"{field}.quant_algo")
    else:
        groups = data.get("config_groups")
        if not groups:
            raise _error(document, f"{field}.quant_algo", "this is missing.")
        return _compressed(data, document, field)
    kv = data.get("kv_cache_quant_algo") or data.get("kv_cache_scheme")
    if isinstance(kv, Mapping):
        result["kv"] = "fp8" if kv.get("num_bits") == 8 else "nvfp4"
    elif kv:
        result["kv"] = _kv(str(kv), document, f"{field}.kv_cache_quant_algo")
    return result, []


def _algorithm(name: Any, document: Document, field: str) -> str:
    if name not in _ALGORITHMS:
        raise _error(document, field, f"{name!r} is not supported.", f"Accepted: {', '.join(_ALGORITHMS)}.")
    return _ALGORITHMS[name]


def _kv(name: str, document: Document, field: str) -> str:
    if name not in _KV:
        raise _error(document, field, f"{name!r} is not supported.", f"Accepted: {', '.join(_KV)}.")
    return _KV[name]
