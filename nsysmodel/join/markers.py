"""Steps that an engine marked itself with NVTX ranges, with phase and batch read from the range's name."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nsysmodel.bundled import bundled_yaml
from nsysmodel.join.types import Codes, Ints


@dataclass(frozen=True, slots=True)
class Marker:
    """One marked step: the range's start on the host, its thread, and what its name says."""

    start_ns: int
    end_ns: int
    global_tid: int
    phase: str | None
    batch: int | None
    tokens: int | None
    engine: str


@functools.cache
def _rules() -> tuple[list[tuple[str, re.Pattern[str]]], dict[str, str]]:
    data: dict[str, Any] = bundled_yaml("nsysmodel.join", "data", "steps.yaml")
    rules = [(entry["engine"], re.compile(entry["pattern"])) for entry in data["markers"]]
    return rules, data["phases"]


def read_marker(text: str) -> tuple[str, str | None, int | None, int | None] | None:
    """(engine, phase, batch, tokens) that a range's name states; None where it marks no step.

    >>> read_marker("execute_context_0(0)_generation_4(4)")
    ('vllm', 'decode', 4, 4)
    >>> read_marker("step[EXTEND bs=17 toks=8192]")
    ('sglang', 'prefill', 17, 8192)
    >>> read_marker("forward") is None
    True
    """
    rules, phases = _rules()
    for engine, pattern in rules:
        match = pattern.search(text)
        if match is None:
            continue
        found = {key: value for key, value in match.groupdict().items() if value is not None}
        if "phase" in found:
            phase = phases.get(found["phase"], found["phase"].lower())
            batch = int(found["batch"]) if "batch" in found else None
            tokens = int(found["tokens"]) if "tokens" in found else (batch if phase == "decode" else None)
            return engine, phase, batch, tokens
        ctx, gen = int(found.get("ctx", 0)), int(found.get("gen", 0))
        phase = "decode" if not ctx else ("prefill" if not gen else "mixed")
        gen_tokens = int(found.get("gen_tokens", gen))
        ctx_tokens = int(found["ctx_tokens"]) if "ctx_tokens" in found else None
        tokens = gen_tokens if not ctx else (None if ctx_tokens is None else gen_tokens + ctx_tokens)
        return engine, phase, ctx + gen, tokens
    return None


def find_markers(ranges: pd.DataFrame) -> list[Marker]:
    """The step markers of one process, by start; nested repeats of the same text are one marker.

    Args:
        ranges: NVTX ranges of the process (columns of `Run.nvtx`).
    """
    if not len(ranges):
        return []
    texts = ranges["text"].astype("category")
    known = [read_marker(str(text)) for text in texts.cat.categories]
    codes = texts.cat.codes.to_numpy()
    marks = np.array([*(found is not None for found in known), False], bool)
    rows = np.flatnonzero(marks[codes])
    markers: list[Marker] = []
    starts, ends = ranges["start_ns"].to_numpy(), ranges["end_ns"].to_numpy()
    threads = ranges["global_tid"].to_numpy()
    for row in rows[np.argsort(starts[rows], kind="stable")]:
        found = known[int(codes[row])]
        assert found is not None
        engine, phase, batch, tokens = found
        if phase == "idle" or (markers and starts[row] < markers[-1].end_ns):
            continue
        markers.append(
            Marker(int(starts[row]), int(ends[row]), int(threads[row]), phase, batch, tokens, engine)
        )
    return markers


def step_of_launches(markers: list[Marker], launch_start_ns: Ints) -> Codes:
    """For each launch the marker that began last before it; -1 before the first and without a launch.

    What runs after a range ended (sampling in many engines) still belongs to its step. GPU times are never
    compared with ranges: kernels run after the host has moved on.
    """
    starts = np.array([marker.start_ns for marker in markers], np.int64)
    if (launch_start_ns[1:] >= launch_start_ns[:-1]).all():
        # Launches in order: where the markers lie among them says the same, in far fewer searches.
        first = np.searchsorted(launch_start_ns, starts, side="left")
        counts = np.diff(first, prepend=0, append=len(launch_start_ns))
        step = np.repeat(np.arange(-1, len(starts), dtype=np.int32), counts)
    else:
        step = np.searchsorted(starts, launch_start_ns, side="right").astype(np.int32) - np.int32(1)
    step[launch_start_ns < 0] = -1
    return step
