"""The ops of a run as a small Parquet file, and all of them as one, read and written a run at a time."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from nsysmodel.batch.types import RunRow
from nsysmodel.result import Evaluation, OpRow

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]

ROWS = 20_000
"""Rows that are collected before they are written: what the memory holds of the whole."""

SHARED = ("model", "gpu", "phase", "batch", "context", "tokens", "dtype", "tp", "ep", "dp", "gpus")
"""Facts of a run that stand beside each of its ops; `dtype` is `run_dtype` there."""


def piece(evaluation: Evaluation) -> bytes:
    """The ops of one evaluation: columns of `nsysmodel.report.ops_frame`, of the same types in every run."""
    import pyarrow as pa
    import pyarrow.parquet as pq  # type: ignore[import-untyped]

    from nsysmodel.report import ops_frame

    frame = ops_frame(evaluation)[_schema().names]
    table = pa.Table.from_pandas(frame, schema=_schema(), preserve_index=False)
    buffer = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(None), buffer)
    return buffer.getvalue()


def write_all(
    target: str, rows: Iterable[RunRow], read: Callable[[str], bytes], labels: Iterable[str]
) -> int:
    """Write every run's ops to one file; gives the number of rows.

    Columns: `run`, `file`, facts of the run, `label.KEY` for each label, then those of the pieces.

    Args:
        target: path of the file.
        rows: the runs, in order; those that failed have no ops.
        read: gives the piece of a run.
        labels: keys of all labels.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    keys = tuple(labels)
    schema = pa.schema([*_run_fields(keys), *_schema()])
    waiting: list[Any] = []
    held = total = 0
    with pq.ParquetWriter(target, schema) as writer:
        for row in rows:
            if row.status == "failed":
                continue
            table = _with_run(pq.read_table(io.BytesIO(read(row.name))), row, keys, schema)
            waiting.append(table)
            held, total = held + table.num_rows, total + table.num_rows
            if held >= ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting, held = [], 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    return total


def _with_run(table: pa.Table, row: RunRow, labels: tuple[str, ...], schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    shared: dict[str, object] = {"run": row.name, "file": row.file}
    shared.update({_column(fact): row.facts.get(fact) for fact in SHARED})
    shared.update({f"label.{key}": row.labels.get(key) for key in labels})
    columns = [
        pa.repeat(pa.scalar(shared[field.name], field.type), table.num_rows)
        if field.name in shared
        else table.column(field.name).cast(field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _column(fact: str) -> str:
    return "run_dtype" if fact == "dtype" else fact


def _run_fields(labels: tuple[str, ...]) -> list[pa.Field]:
    import pyarrow as pa

    text, number = pa.string(), pa.int64()
    words = ("model", "gpu", "phase", "dtype")
    facts = [pa.field(_column(fact), text if fact in words else number) for fact in SHARED]
    return [pa.field("run", text), pa.field("file", text), *facts,
            *(pa.field(f"label.{key}", text) for key in labels)]  # fmt: skip


@lru_cache(maxsize=1)
def _schema() -> pa.Schema:
    """Types of the op columns, by the types of `OpRow`: a run without ops has them, too."""
    import pyarrow as pa

    kinds = {"float": pa.float64(), "int": pa.int64(), "str": pa.string(), "bool": pa.bool_()}

    fields = [
        pa.field("process", pa.int64()),
        pa.field("device", pa.int64()),
        pa.field("status", pa.string()),
    ]
    for item in dataclasses.fields(OpRow):
        word = str(item.type).split(" ")[0]
        kind = "str" if item.name == "flags" else word
        if kind in kinds:
            fields.append(pa.field(item.name, kinds[kind]))
    return pa.schema(fields)
