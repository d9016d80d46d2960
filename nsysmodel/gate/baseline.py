"""Baselines: the results of a run in a small file, so that its export need not be kept."""

from __future__ import annotations

from pathlib import Path

from nsysmodel.comparison.snapshot import is_baseline, read_snapshot
from nsysmodel.errors import ModelError


def model_of(baseline: str, model: str | None) -> str | None:
    """The model to take a run with so that it fits a baseline: the given one, else that of the baseline.

    Raises:
        ModelError: the baseline was taken with a model that is not bundled, and none is given.
        ExportError: the baseline is damaged.
    """
    if model is not None or not is_baseline(Path(baseline)):
        return model
    facts = read_snapshot(Path(baseline)).model
    if facts is None:
        return None
    from nsysmodel.model import load

    name = str(facts.get("name", ""))
    try:
        load(name)
    except ModelError as error:
        raise ModelError(
            f"{Path(baseline).name} was taken with the model {name[:80]!r}, which is not bundled.",
            "Give its file with --model.",
        ) from error
    return name
