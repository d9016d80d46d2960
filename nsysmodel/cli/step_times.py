"""The time of a step in an export, for scaling laws."""

from __future__ import annotations

from nsysmodel.cli.measurements import MeasurementError


def median_step_ns(path: str, model: str | None = None) -> float:
    """Median step of the slowest device: the others wait for it.

    Raises:
        MeasurementError: no steps were found.
        NsysModelError: the export or the model cannot be read.
    """
    from nsysmodel.analyze import evaluate

    found = [device.steps.median_ns for device in evaluate(path, model).devices if device.steps.used >= 1]
    if not found or max(found) <= 0:
        raise MeasurementError(
            f"No steps were found in {path}.", "Give --model, or measure the times and give --measurements."
        )
    return float(max(found))
