"""The form of a catalogue file, and reading one with errors that name file, line and field."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from nsysmodel.errors import HardwareError
from nsysmodel.units import parse_bandwidth, parse_bytes, parse_clock, parse_flops

MAX_FILE_BYTES = 4_000_000


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Value(_Form):
    """A number in base units, where it comes from, and why it should be read with care."""

    value: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    source: str = ""
    uncertain: str = ""


def _value(parse: Callable[[str], float]) -> Any:
    """A validator: `4.0TB/s`, `4e12` or `{value: …, source: …}` become a mapping for `Value`."""

    def read(given: Any) -> Any:
        if isinstance(given, Value):
            return given
        fields = dict(given) if isinstance(given, dict) else {"value": given}
        if isinstance(fields.get("value"), str):
            fields["value"] = parse(fields["value"])
        if isinstance(fields.get("source"), list):
            fields["source"] = "|".join(str(part) for part in fields["source"])
        return fields

    return read


Rate = Annotated[Value, BeforeValidator(_value(parse_bandwidth))]
Flops = Annotated[Value, BeforeValidator(_value(parse_flops))]
Clock = Annotated[Value, BeforeValidator(_value(parse_clock))]
Size = Annotated[Value, BeforeValidator(_value(parse_bytes))]
Number = Annotated[Value, BeforeValidator(_value(float))]
Kind = Literal["nvlink", "c2c", "pcie"]
Capability = Annotated[str, Field(pattern=r"^\d+\.\d+$")]
Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=60)]


class Gpu(_Form):
    """One GPU. See the head of the bundled `catalogue.yaml` for what each field means."""

    key: Key
    name: str = ""
    aliases: tuple[str, ...] = ()
    device_names: tuple[str, ...] = ()
    chip: str = ""
    compute_capability: Capability | None = None
    sm_count: Number | None = None
    clock: Clock | None = None
    bandwidth: Rate
    pin_bandwidth: Rate | None = None
    memory: Size | None = None
    reported_memory: Size | None = None
    l2: Size | None = None
    flop_per_cycle: dict[str, Number] = Field(default_factory=dict)
    peaks: dict[str, Flops] = Field(default_factory=dict)
    links: dict[Kind, Rate] = Field(default_factory=dict)
    note: str = ""


class Cpu(_Form):
    """One CPU: peak = 2 x SIMD width x FMA per cycle x clock x cores."""

    key: Key
    name: str = ""
    aliases: tuple[str, ...] = ()
    cores: Number
    clock: Clock
    simd_clock: Clock | None = None
    simd_width: dict[str, Annotated[float, Field(gt=0)]]
    fma_per_cycle: Number
    bandwidth: Rate
    cache: Size | None = None
    links: dict[Kind, Rate] = Field(default_factory=dict)
    note: str = ""


class Architecture(_Form):
    """Dense FLOP per cycle and SM of a compute capability."""

    compute_capability: Capability
    name_contains: str = ""
    flop_per_cycle: dict[str, Annotated[float, Field(gt=0)]]


class CatalogueFile(_Form):
    """A whole file."""

    form: Literal["nsysmodel.hardware/1"] = Field(default="nsysmodel.hardware/1", alias="schema")
    sources: dict[str, str] = Field(default_factory=dict)
    architectures: tuple[Architecture, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    cpus: tuple[Cpu, ...] = ()


def read_catalogue(path: str | Path) -> CatalogueFile:
    """Read a catalogue file (YAML or JSON) of the user.

    Raises:
        HardwareError: the file cannot be read, is not YAML, or a field is wrong; with line and field.
    """
    try:
        with open(path, "rb") as stream:
            raw = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise HardwareError(
            f"The catalogue file {path} cannot be read: {error.strerror}.", "Check the path."
        ) from error
    if len(raw) > MAX_FILE_BYTES:
        raise HardwareError(
            f"The catalogue file {path} is larger than 4 MB.", "Give a file of a few devices."
        )
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise HardwareError(f"The catalogue file {path} is not UTF-8 text.", "Save it as UTF-8.") from None
    return parse_catalogue(text, str(path))


def parse_catalogue(text: str, name: str) -> CatalogueFile:
    """Check the text of a catalogue file; `name` is what errors call it."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = yaml.load(text, Loader=loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "not YAML"
        raise HardwareError(f"{name}{where}: {problem}.", "Fix the YAML; JSON is accepted too.") from error
    if not isinstance(data, dict):
        raise HardwareError(
            f"{name} is not a catalogue: it has no fields.", "Start with 'gpus:' and a list of devices."
        )
    try:
        return CatalogueFile.model_validate(data)
    except ValidationError as error:
        raise HardwareError(
            _first(error, text, name), "See `nsysmodel hardware show h100 -f json`."
        ) from error


def _first(error: ValidationError, text: str, name: str) -> str:
    """The first problems as text: file, line, field, what is wrong."""
    lines = []
    for problem in error.errors()[:5]:
        path = [part for part in problem["loc"] if part != "[key]"]
        field = ".".join(str(part) for part in path) or "file"
        message = problem["msg"].removeprefix("Value error, ").rstrip(".")
        lines.append(f"{name}, line {_line(text, path)}: {field}: {message}.")
    return " ".join(lines)


def _line(text: str, path: Iterable[str | int]) -> int:
    """The line of a field; of its nearest parent where the field is missing."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 1
    for part in path:
        child = None
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == str(part):
                    line, child = key.start_mark.line + 1, value
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            child = node.value[part]
            line = child.start_mark.line + 1
        if child is None:
            break
        node = child
    return line
