"""Reading a `config.json` (Hugging Face form) as a model file.

Every field is either read, known to change no work, or refused by name: a field that changes the work
and is not understood must not be passed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nsysmodel.model import schema
from nsysmodel.model.config.families import read_family
from nsysmodel.model.config.fields import Fields
from nsysmodel.model.config.quant import MXFP4_NOTE, read_quantization
from nsysmodel.model.documents import Document, read

__all__ = ["model_file"]

_DTYPES = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "bf16": "bf16", "fp16": "fp16"}


def model_file(document: Document) -> schema.ModelFile:
    """The model file that says the same as a `config.json`.

    Raises:
        ModelError: a field is missing, wrong, or not supported; named with the file.
    """
    data = document.data
    if not isinstance(data, dict):
        raise document.error((), "a configuration is a JSON object.")
    inner = data.get("text_config", data)
    if not isinstance(inner, dict):
        raise document.error(("text_config",), "this is not an object.")
    outer = {} if inner is data else data
    fields = Fields(document, inner, outer)
    arch, notes = read_family(fields)
    arch["dtype"] = _dtype(fields)
    quantization, quant_notes = _quantization(fields, document)
    moved = arch.pop("_modules", {})
    if quantization is not None:
        quantization["exclude"] = [_moved(pattern, moved) for pattern in quantization.get("exclude", ())]
        given = quantization.get("modules") or {}
        quantization["modules"] = {_moved(pattern, moved): name for pattern, name in given.items()}
        arch["quantization"] = quantization
    fields.finish()
    if outer and any(str(key).endswith(("vision_config", "audio_config")) for key in outer):
        notes.append("Only the language model is described, not its vision or audio encoder.")
    clean = {name: value for name, value in arch.items() if value is not None}
    wrapped = Document(document.name, {"architecture": clean, "notes": [*notes, *quant_notes]})
    return schema.validate(wrapped)


def _moved(pattern: str, moved: Mapping[str, str]) -> str:
    """A module pattern with the parts that our blocks call otherwise."""
    for old, new in moved.items():
        if f"{old}." in pattern or pattern.rstrip("*").endswith(old):
            return pattern.replace(old, new, 1)
    return pattern


def _dtype(fields: Fields) -> str:
    """Number format of the model; bfloat16 where the file does not say."""
    name = fields.text("torch_dtype") or fields.text("dtype") or "bfloat16"
    if name not in _DTYPES:
        raise fields.error("torch_dtype", f"{name!r} is not supported.", f"Accepted: {', '.join(_DTYPES)}.")
    return _DTYPES[name]


def _quantization(fields: Fields, document: Document) -> tuple[dict[str, Any] | None, list[str]]:
    """Number formats of the weights, from the configuration or from `hf_quant_config.json` beside it."""
    own = fields.get("quantization_config")
    beside = _beside(document)
    expert_dtype = fields.text("expert_dtype")
    if expert_dtype not in ("", "fp4"):
        raise fields.error("expert_dtype", f"{expert_dtype!r} is not supported.", "Accepted: 'fp4'.")
    if own is not None:
        result, notes = read_quantization(own, document, "quantization_config")
        if expert_dtype and result is not None and not result.get("modules"):
            result["modules"] = {"layers.*.mlp.experts": "mxfp4"}
            notes = [*notes, MXFP4_NOTE]
        return result, notes
    if beside is not None:
        return read_quantization(beside.data, beside, "quantization")
    return None, []


def _beside(document: Document) -> Document | None:
    """The quantisation file next to the configuration."""
    if document.folder is None:
        return None
    stem = Path(document.name).name.removesuffix(".json")
    for name in (f"{stem}.hf_quant_config.json", "hf_quant_config.json"):
        path = document.folder / name
        if path.is_file():
            return read(path)
    return None
