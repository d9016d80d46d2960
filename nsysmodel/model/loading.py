"""Finding a model by name or path, and reading it."""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import os
from pathlib import Path
from typing import TYPE_CHECKING

from nsysmodel.errors import ModelError
from nsysmodel.model import flat, schema
from nsysmodel.model.declare import NAMES, blocks, declare
from nsysmodel.model.documents import Document, parse_yaml, read
from nsysmodel.model.expressions import parse as parse_expression
from nsysmodel.model.quantization import QuantRules
from nsysmodel.model.schema import Architecture, ModelFile
from nsysmodel.model.shapes import Values, base_values, check_needs, layer_shapes
from nsysmodel.model.spec import LayeredSpec, ModelSpec
from nsysmodel.theory import formats
from nsysmodel.workload import WorkloadRequest

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_SUFFIXES = (".yaml", ".yml", ".json")


def _zoo() -> Traversable:
    return importlib.resources.files("nsysmodel.model").joinpath("zoo")


@functools.cache
def _aliases() -> dict[str, str]:
    """Other names of bundled models."""
    text = _zoo().joinpath("aliases.yaml").read_text("utf-8")
    return {str(alias): str(name) for alias, name in parse_yaml(text, "aliases.yaml").data.items()}


@functools.cache
def bundled() -> tuple[str, ...]:
    """Names of the bundled models, without aliases, sorted."""
    names = (item.name for item in _zoo().iterdir())
    return tuple(sorted(name[:-5] for name in names if name.endswith(".yaml") and name != "aliases.yaml"))


def aliases() -> dict[str, str]:
    """Other names of bundled models."""
    return dict(_aliases())


def load(name_or_path: str) -> ModelSpec:
    """The model of that name or path.

    Args:
        name_or_path: a bundled name or alias, a model file (`.yaml`), a `config.json`, or a folder with one.

    Raises:
        ModelError: no such model or file, or the file is wrong (with file, line, field, accepted values).
    """
    given = str(name_or_path)
    key = given.strip().lower()
    name = _aliases().get(key, key)
    if name in bundled():
        return _bundled(name)
    path = Path(given)
    if path.is_dir() and (path / "config.json").is_file():
        path = path / "config.json"
    looks_like_path = path.suffix.lower() in _SUFFIXES or os.sep in given or path.exists()
    if not looks_like_path:
        known = [*bundled(), *_aliases()]
        near = difflib.get_close_matches(key, known, 3, 0.5)
        hint = f"Did you mean {', '.join(near)}?" if near else "nsysmodel model list shows the bundled ones."
        raise ModelError(
            f"There is no bundled model {given!r}.",
            f"{hint} A model file or a config.json is named by its path.",
        )
    if path.suffix.lower() not in _SUFFIXES and path.is_file():
        raise ModelError(
            f"{given} is not a model file.", "A model file ends in .yaml, a configuration in .json."
        )
    document = read(path)
    return from_document(document, source=given, default_name=path.stem)


@functools.lru_cache(maxsize=64)
def _bundled(name: str) -> ModelSpec:
    text = _zoo().joinpath(f"{name}.yaml").read_text("utf-8")
    return from_document(parse_yaml(text, f"{name}.yaml"), source="bundled", default_name=name)


def from_document(document: Document, *, source: str, default_name: str) -> ModelSpec:
    """The model of a read file: a model file, or a `config.json`.

    Raises:
        ModelError: see `load`.
    """
    data = document.data
    if isinstance(data, dict) and ("model_type" in data or "architectures" in data):
        from nsysmodel.model.config import model_file

        file = model_file(document)
    else:
        file = schema.validate(document)
    name = file.name or default_name
    if (file.kernels is None) == (file.architecture is None):
        raise document.error(
            (), "a model has either 'architecture' (layered) or 'kernels' (flat).", "Give one of the two."
        )
    if file.kernels is not None:
        return flat.spec(file, document, name, source)
    return _layered(file, document, name, source)


def _layered(file: ModelFile, document: Document, name: str, source: str) -> LayeredSpec:
    """A layered model from its file."""
    arch, extra_notes, published = _architecture(file, document)
    values = base_values(arch, document)
    names = NAMES | frozenset(file.parameters)
    for parameter, text in file.parameters.items():
        if parameter in values:
            raise document.error(("parameters", parameter), "this name is a field of the architecture.")
        try:
            values[parameter] = parse_expression(text, frozenset(values))(values)
        except ModelError as error:
            raise document.error(("parameters", parameter), error.message, error.hint) from None
    known = blocks()
    if file.layer_kinds is None:
        shapes, layers = layer_shapes(arch, document)
        kinds = {kind: sum((known[part] for part in shape.blocks()), ()) for kind, shape in shapes.items()}
        kind_values = {kind: dict(shape.values) for kind, shape in shapes.items()}
    else:
        kinds = {
            kind: declare(entries, document, ("layer_kinds", kind), names)
            for kind, entries in file.layer_kinds.items()
        }
        kind_values = {kind: {} for kind in kinds}
        for entry in (entry for entries in file.layer_kinds.values() for entry in entries):
            if isinstance(entry, schema.Block):
                check_needs(entry.block, values, document)
        layers = _pattern(file, values, document)
    _check_formats(arch, document)
    return LayeredSpec(
        name=name,
        source=source,
        values=values,
        kinds=kinds,
        kind_values=kind_values,
        layers=layers,
        head=known["head"] if file.head is None else declare(file.head, document, ("head",), names),
        tail=known["tail"] if file.tail is None else declare(file.tail, document, ("tail",), names),
        quantization=_rules(arch),
        defaults=WorkloadRequest(**file.defaults.model_dump()),
        notes=(*file.notes, *extra_notes),
        published={**published, **file.published},
    )


def _architecture(
    file: ModelFile, document: Document
) -> tuple[Architecture, tuple[str, ...], dict[str, float]]:
    """The architecture of a file; `config:` supplies what the file does not say itself."""
    arch = file.architecture
    assert arch is not None
    if arch.config is None:
        return arch, (), {}
    from nsysmodel.model.config import model_file

    if document.folder is None:
        raise document.error(("architecture", "config"), "a bundled model has no configuration beside it.")
    path = Path(arch.config)
    inner = model_file(read(path if path.is_absolute() else document.folder / path))
    assert inner.architecture is not None
    own = arch.model_dump(exclude_unset=True, exclude={"config"})
    merged = Architecture.model_validate({**inner.architecture.model_dump(exclude_unset=True), **own})
    return merged, inner.notes, dict(inner.published)


def _pattern(file: ModelFile, values: Values, document: Document) -> tuple[str, ...]:
    """The kind of each layer of a model with kinds of its own."""
    kinds = file.layer_kinds or {}
    count = values["layers"]
    entries = file.layers or (tuple(kinds)[:1] if len(kinds) == 1 else ())
    result: list[str] = []
    for index, entry in enumerate(entries):
        name, star, times = entry.partition("*")
        if name not in kinds or (star and not times.isdigit()):
            hint = f"Accepted: {', '.join(kinds)}, each with *N behind it."
            raise document.error(("layers", index), f"{entry!r} is not accepted.", hint)
        result += [name] * (int(times) if star else 1)
        if len(result) > count:
            break
    if not result or len(result) > count:
        problem = f"the entries make {len(result)} layers of {count}."
        raise document.error(("layers",), problem, "List the layer kinds in order; a short list starts over.")
    return tuple(result[index % len(result)] for index in range(count))


def _check_formats(arch: Architecture, document: Document) -> None:
    """Raises where a number format of the file does not exist."""
    given: dict[tuple[str, ...], str | None] = {
        ("dtype",): arch.dtype,
        ("router_dtype",): arch.router_dtype,
        ("state_dtype",): arch.state_dtype,
    }
    quant = arch.quantization
    if quant is not None:
        given[("quantization", "format")] = quant.format
        given[("quantization", "kv")] = quant.kv
        given.update({("quantization", "modules", key): name for key, name in quant.modules.items()})
    for path, name in given.items():
        if name is None:
            continue
        try:
            formats.parse(name)
        except ModelError as error:
            raise document.error(("architecture", *path), error.message, error.hint) from None


def _rules(arch: Architecture) -> QuantRules:
    """The formats of the weights."""
    quant = arch.quantization
    if quant is None:
        return QuantRules()
    fmt = formats.parse(quant.format).name if quant.format else ""
    modules = tuple((pattern, formats.parse(name).name) for pattern, name in quant.modules.items())
    kv = formats.parse(quant.kv).name if quant.kv else ""
    return QuantRules(fmt, quant.exclude, modules, kv)
