"""Small timelines for the tests of the account: kernels, calls and waits laid down one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from nsysmodel.account.build import build_activity
from nsysmodel.account.gaps import GapAccount, find_gaps
from nsysmodel.account.types import Activity, Window

PID = (1 << 48) | (77 << 24)
MAIN = PID | 1
WORKER = PID | 2

KERNEL_COLUMNS = ["start_ns", "end_ns", "stream", "correlation_id", "graph_node_id", "short_name", "op"]


@dataclass
class Case:
    """A timeline under construction; all times in ns."""

    kernels: list[dict[str, Any]] = field(default_factory=list)
    copies: list[dict[str, Any]] = field(default_factory=list)
    memsets: list[dict[str, Any]] = field(default_factory=list)
    graphs: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    syncs: list[dict[str, Any]] = field(default_factory=list)
    overheads: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 100

    def call(self, start: int, end: int, name: str = "cudaLaunchKernel", thread: int = MAIN) -> int:
        """An API call; its correlation id."""
        self.correlation += 1
        self.calls.append(
            {
                "start_ns": start,
                "end_ns": end,
                "name": name,
                "global_tid": thread,
                "correlation_id": self.correlation,
            }
        )
        return self.correlation

    def kernel(
        self,
        start: int,
        end: int,
        launch: tuple[int, int] | None = None,
        *,
        name: str = "kernel",
        op: int = -1,
        stream: int = 7,
        correlation: int = -1,
        thread: int = MAIN,
        node: int = -1,
    ) -> None:
        """A kernel, with a launch call of its own or of a graph launch made before."""
        if launch is not None:
            correlation = self.call(*launch, thread=thread)
        row = (start, end, stream, correlation, node, name, op)
        self.kernels.append(dict(zip(KERNEL_COLUMNS, row, strict=True)))

    def copy(
        self, start: int, end: int, launch: tuple[int, int], name: str = "cudaMemcpyAsync", kind: str = "DtoH"
    ) -> None:
        self.copies.append(
            {
                "start_ns": start,
                "end_ns": end,
                "stream": 7,
                "correlation_id": self.call(*launch, name=name),
                "graph_node_id": -1,
                "bytes": 4096,
                "kind": kind,
                "src_kind": "device",
                "dst_kind": "pageable",
            }
        )

    def sync(self, start: int, end: int, kind: str = "stream", thread: int = MAIN) -> None:
        """A host wait: the API call and the record of the wait inside it."""
        names = {"stream": "cudaStreamSynchronize", "context": "cudaDeviceSynchronize"}
        correlation = self.call(start, end, names.get(kind, "cudaEventSynchronize"), thread)
        self.syncs.append({"start_ns": start, "end_ns": end, "kind": kind, "correlation_id": correlation})

    def overhead(self, start: int, end: int, thread: int = MAIN, name: str = "CUPTI Buffer flush") -> None:
        self.overheads.append({"start_ns": start, "end_ns": end, "name": name, "global_tid": thread})

    def frame(self, rows: list[dict[str, Any]], *columns: str) -> pd.DataFrame:
        found = pd.DataFrame(
            rows, columns=None if rows else ["start_ns", "end_ns", "correlation_id", *columns]
        )
        found = found.astype({name: "int64" for name in found if name.endswith(("_ns", "_id", "_tid"))})
        found["global_pid"] = PID
        return found

    @property
    def api(self) -> pd.DataFrame:
        return self.frame(self.calls, "name", "global_tid")

    def activity(self) -> tuple[Activity, tuple[str, ...]]:
        kernels = self.frame(self.kernels, *KERNEL_COLUMNS[2:3], *KERNEL_COLUMNS[4:])
        return build_activity(
            kernels,
            self.frame(self.copies, "kind", "bytes"),
            self.frame(self.memsets, "bytes"),
            self.frame(self.graphs),
            self.api,
            op=kernels["op"].to_numpy(np.int32),
        )

    def gaps(self, *windows: tuple[int, int], ops: tuple[str, ...] = ()) -> GapAccount:
        activity, names = self.activity()
        return find_gaps(
            activity,
            [Window(index, *window) for index, window in enumerate(windows)],
            ops,
            self.api,
            self.frame(self.syncs, "kind"),
            self.frame(self.overheads, "name", "global_tid"),
            names,
        )
