"""What a baseline file must look like. It is data from elsewhere: checked before anything uses it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from nsysmodel.comparison.snapshot import SCHEMA, DeviceSnapshot, Part, Snapshot
from nsysmodel.errors import ExportError

MOST_STEPS = 100_000


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")
    kind: Literal["op", "kernel", "graph", "copy", "gap", "overlap"]
    name: str
    values_ns: list[int] = Field(max_length=MOST_STEPS)
    launches: float = 0.0
    kernels: list[str] = []
    kernel_class: str = ""
    floor_ns: float | None = None
    bound: str = ""
    ratio: float | None = None


class _Device(BaseModel):
    model_config = ConfigDict(extra="ignore")
    process: int
    device: int
    gpu: dict[str, Any]
    unit: Literal["step", "repetition", "window"]
    method: str
    layers: int
    coverage: float
    workload: dict[str, Any]
    steps: list[int]
    windows_ns: list[int] = Field(max_length=MOST_STEPS)
    parts: list[_Part]
    sequence: list[tuple[int, str]] = []
    kernel_time_ns: int = 0
    found: int = 0

    @model_validator(mode="after")
    def _adds_up(self) -> _Device:
        """The parts of each step sum to its window; names are there once."""
        if len({(part.kind, part.name) for part in self.parts}) != len(self.parts):
            raise ValueError("two parts have the same name")
        if any(len(part.values_ns) != len(self.windows_ns) for part in self.parts):
            raise ValueError("a part has another number of steps than the device")
        for number, window in enumerate(self.windows_ns):
            if sum(part.values_ns[number] for part in self.parts) != window:
                raise ValueError(f"the parts of step {number} do not sum to its window")
        if any(not 0 <= place < len(self.parts) for place, _ in self.sequence):
            raise ValueError("the sequence names a part that does not exist")
        return self


class _Baseline(BaseModel):
    model_config = ConfigDict(extra="ignore")
    file: str
    version: str
    model: dict[str, Any] | None
    status: Literal["ok", "cannot_judge"]
    headline: str
    graph_mode: str
    completeness: str
    devices: list[_Device] = Field(min_length=1)
    synthetic: bool = False
    notes: list[str] = []


def parse(data: Any, name: str) -> Snapshot:
    """A checked snapshot.

    Raises:
        ExportError: the data are no baseline, of another version, or do not add up.
    """
    schema = data.get("schema") if isinstance(data, dict) else None
    if schema != SCHEMA:
        told = f" of version {str(schema)[:40]!r}" if schema else ""
        raise ExportError(
            f"{name} is no baseline{told}; {SCHEMA} is wanted.", "nsysmodel baseline save writes one."
        )
    try:
        read = _Baseline.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(step) for step in first["loc"])
        raise ExportError(
            f"{name} is a damaged baseline: {where}: {first['msg']}.",
            "Save it anew: nsysmodel baseline save.",
        ) from error
    fields = read.model_dump()
    devices = tuple(_device(device) for device in fields.pop("devices"))
    return Snapshot(**{**fields, "notes": tuple(fields["notes"])}, devices=devices)


def _device(fields: dict[str, Any]) -> DeviceSnapshot:
    parts = tuple(
        Part(**{**part, "values_ns": tuple(part["values_ns"]), "kernels": tuple(part["kernels"])})
        for part in fields.pop("parts")
    )
    lists = ("steps", "windows_ns", "sequence")
    return DeviceSnapshot(**{**fields, **{name: tuple(fields[name]) for name in lists}}, parts=parts)
