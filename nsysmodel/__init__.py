"""Joins an Nsight Systems export with a model of the kernels that should run.

`open_run` reads an export; `evaluate` judges it against a model; `compare` sets two results side by side;
`estimate` gives the floors of a model on a GPU without any export. Names are loaded when first used, so
that `import nsysmodel` is quick.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself would take longer to import than all that is here
if TYPE_CHECKING:
    from typing import Any

    from nsysmodel.analyze import evaluate
    from nsysmodel.comparison import compare
    from nsysmodel.estimation import estimate
    from nsysmodel.export.run import open_run

    __version__: str

# No module may carry the name of one of these: importing it would put the module in the function's place.
_WHERE = {
    "open_run": "nsysmodel.export.run",
    "evaluate": "nsysmodel.analyze",
    "compare": "nsysmodel.comparison",
    "estimate": "nsysmodel.estimation",
}

__all__ = ["__version__", "compare", "estimate", "evaluate", "open_run"]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("nsysmodel")
    if name in _WHERE:
        import importlib

        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'nsysmodel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
