"""Models: from a name, a model file or a `config.json` to the ops of one step with their costs."""

from __future__ import annotations

from nsysmodel.model.flat import evaluate
from nsysmodel.model.loading import aliases, bundled, load
from nsysmodel.model.spec import FlatSpec, LayeredSpec, ModelSpec
from nsysmodel.model.workloads import resolve_workload

__all__ = [
    "FlatSpec",
    "LayeredSpec",
    "ModelSpec",
    "aliases",
    "bundled",
    "evaluate",
    "load",
    "resolve_workload",
]
