"""Floors of neighbouring workloads: the judged point is the judged floor, others are what the model says."""

from __future__ import annotations

import dataclasses

import pytest

from nsysmodel.hardware.resolve import resolve
from nsysmodel.judge.what_if import what_if
from nsysmodel.model import LayeredSpec, load, resolve_workload
from nsysmodel.theory.floor import floor_of
from nsysmodel.workload import Sourced, WorkloadRequest


def built(name: str, request: WorkloadRequest):  # type: ignore[no-untyped-def]
    spec = load(name)
    assert isinstance(spec, LayeredSpec)
    hardware = resolve("gh200")
    workload = resolve_workload(request, spec, {})
    return spec, spec.build(workload, hardware), workload, hardware


def floor(model, hardware) -> float:  # type: ignore[no-untyped-def]
    return sum(floor_of(op.cost, hardware).ns for _, op in model.places())


def test_every_point_is_the_floor_that_the_model_gives() -> None:
    spec, model, workload, hardware = built("qwen3-30b", WorkloadRequest(batch=4, context=2048))
    found = what_if(spec, model, workload, hardware)
    i, j, k = found.here
    assert (found.batches[i], found.lengths[j], found.bandwidths[k]) == (4, 2048, 1.0)
    assert found.floors_ns[i][j][k] == pytest.approx(floor(model, hardware), abs=0.1)
    other = dataclasses.replace(workload, batch=Sourced(16, "flag"), context=Sourced(8192, "flag"))
    at = found.floors_ns[found.batches.index(16)][found.lengths.index(8192)][k]
    assert at == pytest.approx(floor(spec.build(other, hardware), hardware), abs=0.1)
    assert found.tokens[found.batches.index(16)][0] == 16


def test_more_bandwidth_never_costs_and_never_beats_compute() -> None:
    spec, model, workload, hardware = built("qwen3-30b", WorkloadRequest(phase="prefill", tokens=512))
    found = what_if(spec, model, workload, hardware)
    assert found.axis == "tokens"
    least = sum(floor_of(op.cost, hardware).compute_ns for _, op in model.places())
    for row in found.floors_ns:
        for cell in row:
            assert list(cell) == sorted(cell, reverse=True)  # type: ignore[type-var]
    assert found.floors_ns[found.here[0]][found.here[1]][-1] >= least - 0.1  # type: ignore[operator]
