"""The ops of an evaluation as rows, for CSV and Parquet."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from nsysmodel.report.view import is_judged
from nsysmodel.result import Evaluation, OpRow

if TYPE_CHECKING:
    import pandas as pd

_NESTED = ("kernels", "layers_ns", "reasons", "link_use")
_JUDGED = ("floor_ns", "floor_total_ns", "floor_hbm_ns", "floor_strict_ns", "latency_floor_ns", "ratio",
"excess_ns",
           "recoverable_ns", "recoverable_80_ns", "fraction_of_peak")  # fmt: skip
_INTEGERS = ("process", "device", "instances", "expected_instances", "total_ns", "floor_total_ns",
"median_ns", "p05_ns",
             "p95_ns")  # fmt: skip


def ops_frame(evaluation: Evaluation) -> pd.DataFrame:
    """A row per process, device and op, in the order of the result.

    Columns are `process`, `device`, `status` and the fields of `OpRow` without the nested ones; `flags` are
    joined with commas. Where nothing is judged, floors, ratios and excesses are missing values.
    """
    import pandas as pd

    scalar = [item.name for item in dataclasses.fields(OpRow) if item.name not in _NESTED]
    rows = []
    for device in evaluation.devices:
        for op in device.ops:
            row: dict[str, object] = {
                "process": device.process,
                "device": device.device,
                "status": evaluation.verdict.status,
            }
            row.update({name: getattr(op, name) for name in scalar})
            row["flags"] = ",".join(op.flags)
            if not is_judged(evaluation):
                row.update(dict.fromkeys(_JUDGED))
            rows.append(row)
    frame = pd.DataFrame(rows, columns=["process", "device", "status", *scalar])
    for name in frame.columns:
        if name in _INTEGERS:
            frame[name] = frame[name].astype("Int64")
        elif name in _FLOATS:
            frame[name] = frame[name].astype("float64")
    return frame


_FLOATS = frozenset(
    item.name for item in dataclasses.fields(OpRow) if "float" in str(item.type) and item.name not in _NESTED
)
