"""Many exports at once: a report for each, an index page, one table of all ops; nothing is done twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nsysmodel.batch.plan import plan
    from nsysmodel.batch.run import run_batch
    from nsysmodel.batch.types import Batch, RunRow

_WHERE = {
    "plan": "nsysmodel.batch.plan",
    "run_batch": "nsysmodel.batch.run",
    "Batch": "nsysmodel.batch.types",
    "RunRow": "nsysmodel.batch.types",
}

__all__ = ["Batch", "RunRow", "plan", "run_batch"]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        import importlib

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'nsysmodel.batch' has no attribute {name!r}")
