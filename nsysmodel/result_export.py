"""The part of a result that an export alone gives; whoever only reads exports need not load the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

GraphMode = Literal["none", "node", "graph", "mixed"]
Completeness = Literal["complete", "trimmed", "lost_events", "no_gpu_activity", "unknown"]
Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that the reader of a report must know. `code` is stable, the sentence is not."""

    code: str
    severity: Severity
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ExportFacts:
    """What was read. Never holds environment, host or user names, nor a directory."""

    file: str
    schema_version: str
    product_version: str
    kernels: int
    graph_mode: GraphMode
    completeness: Completeness
    kernel_time_ns: int
    copies: int = 0
    memsets: int = 0
    api_calls: int = 0
    graph_traces: int = 0
    nvtx_ranges: int = 0
    span_ns: int = 0
    synthetic: bool = False
    processes: int = 0
    devices: int = 0
