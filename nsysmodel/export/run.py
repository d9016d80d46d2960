"""An opened export: typed frames, read when asked for and kept."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from nsysmodel.export import device_frames, gpu_frames, host_frames
from nsysmodel.export.device_frames import GpuFacts
from nsysmodel.export.nvtx_frames import nvtx
from nsysmodel.export.opening import Opened, open_source
from nsysmodel.export.reader import Reader, Wanted
from nsysmodel.result_export import Diagnostic, ExportFacts

if TYPE_CHECKING:
    import pandas as pd

    from nsysmodel.export.durations import Durations
    from nsysmodel.export.reader import Ints

SYNTHETIC = "NSYSMODEL_SYNTHETIC"
_SYNTHETIC_TEXT = re.compile(r"^synthetic export\b.*\bnsysmodel\b", re.IGNORECASE)
META_TABLES = ("META_DATA_EXPORT", "EXPORT_META_DATA")


class Run:
    """An export with one DataFrame per kind of event.

    Columns, units and meanings are in `nsysmodel.export.columns.FRAMES`. Frames are sorted by start, and
    are the same object at each call: do not change them. A table that the export lacks gives an empty
    frame; `diagnostics` says what was missing, left out or inferred.

    Use it as a context manager, or call `close`: a compressed export lives in a temporary file until then.
    """

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._reader = Reader(opened.source, opened.name)
        self._kept: dict[str, Any] = {}
        if opened.source.cut_off:
            self._reader.note(
                "file_cut_off",
                "error",
                f"{opened.name} is shorter than it says of itself: it was cut off.",
                "Copy it again, or export it again; the disk may have been full.",
            )

    def __enter__(self) -> Run:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Run({self.path_name!r})"

    def close(self) -> None:
        """Close the file and remove temporary copies. Frames that were read stay usable."""
        self._opened.close()

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._kept:
            self._kept[name] = make()
        return self._kept[name]

    @property
    def path_name(self) -> str:
        """Name of the file, without its folder."""
        return self._opened.name

    @property
    def metadata(self) -> dict[str, str]:
        """What the export says about itself: product and schema versions; never hosts, users or paths."""
        found: dict[str, str] = self._once("metadata", lambda: _metadata(self._reader))
        return found

    @property
    def schema_version(self) -> str:
        """Version of the schema, for example `3.16.1`; empty where the export does not say (before 2022)."""
        return self.metadata.get("EXPORT_SCHEMA_VERSION", "")

    @property
    def product_version(self) -> str:
        """Version of the nsys that exported; it may be newer than the one that captured. Empty if unknown."""
        return self.metadata.get("EXPORT_PRODUCT_VERSION", "")

    def kernels(self) -> pd.DataFrame:
        """One row per execution of a kernel."""
        return self._frame("kernels", lambda: gpu_frames.kernels(self._reader))

    def some_kernels(self, columns: Iterable[str]) -> pd.DataFrame:
        """Start, end and some more columns of the kernels, read for these alone where that is possible.

        The rows are those of `kernels()`, but stand in the order of the export and are not kept.
        """
        names = tuple(columns)
        if "kernels" in self._kept or not gpu_frames.few_columns(names):
            return self.kernels()
        return gpu_frames.some_kernels(self._reader, names)

    def durations(self, columns: Iterable[str]) -> Durations | None:
        """Durations of the kernels by some raw columns; see `nsysmodel.export.durations`."""
        from nsysmodel.export.durations import durations

        return None if "kernels" in self._kept else durations(self._opened.source, columns)

    def texts(self, ids: Ints) -> list[str] | None:
        """Texts of string ids; None where one of them has none."""
        strings = self._reader.strings()
        found = [strings.get(i) for i in ids.tolist()]
        return None if None in found else found  # type: ignore[return-value]

    def copies(self) -> pd.DataFrame:
        """One row per copy, migrations of unified memory included."""
        return self._frame("copies", lambda: gpu_frames.copies(self._reader))

    def memsets(self) -> pd.DataFrame:
        """One row per memset."""
        return self._frame("memsets", lambda: gpu_frames.memsets(self._reader))

    def graph_traces(self) -> pd.DataFrame:
        """One row per execution of a CUDA graph that was traced as a whole."""
        return self._frame("graph_traces", lambda: gpu_frames.graph_traces(self._reader))

    def api_calls(self) -> pd.DataFrame:
        """One row per call of the CUDA runtime or driver."""
        return self._frame("api_calls", lambda: host_frames.api_calls(self._reader))

    def syncs(self) -> pd.DataFrame:
        """One row per wait for the device."""
        return self._frame("syncs", lambda: host_frames.syncs(self._reader))

    def nvtx(self) -> pd.DataFrame:
        """One row per NVTX range or mark."""
        return self._frame("nvtx", lambda: nvtx(self._reader, self._last_ns))

    def gpus(self) -> pd.DataFrame:
        """One row per CUDA GPU of the machine."""
        return self._frame("gpus", lambda: device_frames.gpus(self._reader))

    def overhead(self) -> pd.DataFrame:
        """One row per span in which the profiler held a thread."""
        return self._frame("overhead", lambda: host_frames.overhead(self._reader))

    def log_events(self) -> pd.DataFrame:
        """One row per message of the profiler."""
        return self._frame("log_events", lambda: host_frames.log_events(self._reader))

    def log_messages(self) -> dict[str, int]:
        """Messages of the profiler and how often each one came, in order of their first."""
        found: dict[str, int] = self._once("log_messages", lambda: host_frames.log_messages(self._reader))
        return found

    def gpu_metrics(self) -> pd.DataFrame:
        """One row per sampled GPU metric."""
        return self._frame("gpu_metrics", lambda: device_frames.gpu_metrics(self._reader))

    def graph_nodes(self) -> pd.DataFrame:
        """One row per CUDA graph node that was made."""
        return self._frame("graph_nodes", lambda: host_frames.graph_nodes(self._reader))

    def launches(self) -> pd.DataFrame:
        """The launching call of each kernel, aligned with `kernels()`; see `nsysmodel.export.joins`."""
        from nsysmodel.export import joins

        return self._frame("launches", lambda: joins.launches(self))

    def gpu_clock_samples(self) -> pd.DataFrame:
        """Samples of the SM clock (`timestamp_ns`, `gpu`, `clock_hz`); empty where none were taken."""
        return self._frame("clocks", lambda: device_frames.clock_samples(self.gpu_metrics()))

    def gpu_for(self, process: int, device: int) -> GpuFacts | None:
        """The GPU behind a device of a process.

        Args:
            process: process key (`global_pid`) or OS pid.
            device: CUDA ordinal within the process.

        Returns:
            None where the export has no GPUs, or several and no way to tell.
        """
        found: GpuFacts | None = self._once(
            f"gpu {process} {device}",
            lambda: device_frames.gpu_of(self._reader, self.gpus(), process, device),
        )
        return found

    @property
    def synthetic(self) -> bool:
        """True where a script wrote the export; those without a metadata table say so in a string."""
        if self.metadata:
            return SYNTHETIC in self.metadata
        return any(_SYNTHETIC_TEXT.search(text) for text in self._reader.strings().values())

    @property
    def facts(self) -> ExportFacts:
        """What the export holds, in numbers."""
        from nsysmodel.export.facts import facts

        found: ExportFacts = self._once("facts", lambda: facts(self))
        return found

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """Everything that a reader of results from this export must know, worst first."""
        from nsysmodel.export.findings import findings

        own: list[Diagnostic] = self._once("findings", lambda: findings(self))
        return _worst_first([*own, *self._reader.notes])

    @property
    def recording_diagnostics(self) -> list[Diagnostic]:
        """What makes a list of kernels incomplete, found without reading the calls; worst first."""
        from nsysmodel.export.findings import recording_findings

        return _worst_first([*recording_findings(self), *self._reader.notes])

    def tables(self) -> dict[str, int]:
        """Rows of every table of the export, by name."""
        found: dict[str, int] = self._once("tables", self._count_tables)
        return found

    def _count_tables(self) -> dict[str, int]:
        return {name: self.count(name) for name in self._opened.source.tables()}

    @property
    def damaged(self) -> bool:
        """True where the file was cut off, or a table that was asked for could not be read."""
        return any(note.code in ("table_damaged", "file_cut_off") for note in self._reader.notes)

    def count(self, table: str) -> int:
        """Rows of a table of the export; 0 where it is absent or damaged."""
        from nsysmodel.errors import ExportError

        try:
            return self._opened.source.count(table)
        except ExportError as error:
            self._reader.note("table_damaged", "error", error.message, error.hint)
            return 0

    def _frame(self, name: str, make: Callable[[], pd.DataFrame]) -> pd.DataFrame:
        frame: pd.DataFrame = self._once(name, make)
        return frame

    def _last_ns(self) -> int:
        """End of the session: its stated length, or the last event, whichever is later."""
        rows, length = self._reader.rows("ANALYSIS_DETAILS", (Wanted("duration"),))
        ends = [int(rows["duration"].max())] if length else []
        for frame in (self.kernels(), self.copies(), self.memsets(), self.graph_traces(), self.api_calls()):
            if len(frame):
                ends.append(int(frame["end_ns"].max()))
        return min(max([*ends, 0]), 4 * 10**18 - 1)


def _worst_first(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    rank = {"error": 0, "warning": 1, "info": 2}
    return sorted(found, key=lambda d: rank[d.severity])


_SHOWN_METADATA = ("EXPORT_PRODUCT_", "EXPORT_SCHEMA_", "EXPORT_LAZY", SYNTHETIC)
_SHOWN_PARAMETERS = ("LAZY", "TABLES_TO_EXPORT", "TIMES_TO_EXPORT", "TIME_NORMALIZE", "TIME_SHIFT")


def _metadata(reader: Reader) -> dict[str, str]:
    """The rows of the metadata tables that name no host, user or path."""
    found: dict[str, str] = {}
    for table in META_TABLES:
        rows, _ = reader.rows(table, (Wanted("name", "text"), Wanted("value", "text")))
        for name, value in zip(rows["name"].tolist(), rows["value"].tolist(), strict=True):
            key = str(name)
            known = key.startswith(_SHOWN_METADATA) or key.removeprefix("EXPORT_PARAM_") in _SHOWN_PARAMETERS
            if known and key not in found:
                found[key] = "" if value is None else str(value)[:200]
    return found


def open_run(path: str | os.PathLike[str]) -> Run:
    """Open an export.

    Args:
        path: a `.sqlite` file (any name, gzip or zstd too), a folder of `nsys export --type parquetdir` or
            `arrowdir`, or an `.nsys-rep` where `nsys` is on PATH.

    Raises:
        ExportError: it is not an export, or cannot be read; the hint says what to do.
    """
    return Run(open_source(path))
