"""What the account works on: the GPU activity of one process and device, and the windows of its steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from nsysmodel.intervals import Ints, Spans, check_windows

KERNEL: Final = 0
COPY: Final = 1
MEMSET: Final = 2
GRAPH: Final = 3

Bools = NDArray[np.bool_]
Codes = NDArray[np.int32]
Rows = np.ndarray[Any, Any]
"""Row numbers, of the type that `index_type` chooses: those of millions of rows take half the memory."""


def index_type(rows: int) -> type[np.int32] | type[np.int64]:
    """The narrowest type that numbers this many rows."""
    return np.int32 if rows <= np.iinfo(np.int32).max else np.int64


@dataclass(frozen=True, slots=True)
class Looked:
    """A column of another table, looked up where it is asked for: of millions of rows few are.

    Attributes:
        values: the column.
        rows: for each row of this table the row of the other one; -1 for none, which has the value -1.
    """

    values: Ints
    rows: Rows

    def __getitem__(self, at: Rows | slice) -> Ints:
        rows = self.rows[at]
        found = self.values[rows]
        found[rows < 0] = -1
        return found


@dataclass(frozen=True, slots=True)
class Activity:
    """All GPU work of one process and device, sorted by start; arrays of equal length.

    Attributes:
        start_ns, end_ns: execution on the device, ns on the clock of the export.
        kind: KERNEL, COPY, MEMSET or GRAPH (a CUDA graph traced as a whole).
        op: index into the op labels; -1 where no op claims it.
        stream: CUDA stream.
        correlation_id: shared by everything that one launch call caused; -1 for none.
        name: index into the list of names that goes with this activity.
        in_graph: executed as a node of a CUDA graph (or is a traced graph).
        launch_start_ns, launch_end_ns: the API call that launched it; -1 where unknown.
        launch_thread: the whole thread key of that call; -1 where unknown.
        launch_blocks: the launching call returns only after the work is done (`cudaMemcpy`).
    """

    start_ns: Ints
    end_ns: Ints
    kind: NDArray[np.int8]
    op: Codes
    stream: Ints
    correlation_id: Rows
    name: Codes
    in_graph: Bools
    launch_start_ns: Ints | Looked
    launch_end_ns: Ints | Looked
    launch_thread: Ints
    launch_blocks: Bools | None = None

    def __len__(self) -> int:
        return int(self.start_ns.size)

    @property
    def spans(self) -> Spans:
        """Start and end of every activity, in the same order."""
        return Spans(self.start_ns, self.end_ns)

    def take(self, rows: Ints | Bools) -> Activity:
        """The activities at these rows (indices or a mask)."""
        columns = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return dataclasses.replace(self, **{n: c[rows] for n, c in columns.items() if c is not None})


@dataclass(frozen=True, slots=True)
class Window:
    """The time of one step. `index` is its number among all steps that were found."""

    index: int
    start_ns: int
    end_ns: int

    @property
    def duration_ns(self) -> int:
        """Length of the window."""
        return self.end_ns - self.start_ns


def window_spans(windows: Sequence[Window]) -> Spans:
    """Windows as intervals.

    Raises:
        ValueError: they are unsorted or overlap.
    """
    found = Spans(
        np.array([window.start_ns for window in windows], dtype=np.int64),
        np.array([window.end_ns for window in windows], dtype=np.int64),
    )
    check_windows(found)
    return found
