"""Findings about the recording: whether the export holds what ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmodel.export.facts import collected, is_graph_launch, is_launch, lost, stored
from nsysmodel.export.gpu_frames import GRAPH_TRACE
from nsysmodel.intervals import union_length
from nsysmodel.result_export import Diagnostic, Severity
from nsysmodel.units import bytes_, count, ns, percent

if TYPE_CHECKING:
    from nsysmodel.export.run import Run

NEWEST_SCHEMA = (3, 28, 1)
CAPTURE = "nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --output=trace YOUR_COMMAND"
EXPORT = "nsys export --type sqlite --output trace.sqlite trace.nsys-rep"
CAPTURE_HINT = f"Capture and export again: {CAPTURE} && {EXPORT}"
CUT_HINT = (
    "Limit the capture to the steps: call cudaProfilerStart and cudaProfilerStop around them and add "
    "--capture-range=cudaProfilerApi to nsys profile; or judge a part of this one with --time-range or "
    "--nvtx."
)

_LOAD_BYTES = 500_000_000
_LOAD_SHARE = 0.1


def graphs_traced_whole(run: Run) -> Diagnostic | None:
    """CUDA graphs whose kernels are not in the export."""
    if not run.count(GRAPH_TRACE):
        return None
    traces = run.graph_traces()
    if not len(traces):
        return None
    kernels = run.some_kernels(["duration_ns"])
    hidden, shown = int(traces["duration_ns"].sum()), int(kernels["duration_ns"].sum())
    share = hidden / (hidden + shown) if hidden + shown else 1.0
    severity: Severity = "error" if share > 0.1 else "warning"
    return Diagnostic(
        "graphs_traced_whole",
        severity,
        f"{count(len(traces))} executions of CUDA graphs ({ns(hidden)}, {percent(share)} of the time) were "
        "traced as a whole: the kernels inside them are not in the export, so nothing in them can be judged.",
        CAPTURE_HINT,
    )


def gpu_activity_missing(run: Run) -> Diagnostic | None:
    """Nothing of the device was recorded."""
    if run.facts.completeness != "no_gpu_activity":
        return None
    calls = run.api_calls()
    launched = int(is_launch(calls).sum() + is_graph_launch(calls).sum())
    if not launched:
        return Diagnostic(
            "nothing_recorded",
            "error",
            "The export holds no GPU activity and no kernel launch: there is nothing to judge.",
            f"Make sure that the capture covers the work and traces CUDA. {CAPTURE_HINT}",
        )
    return Diagnostic(
        "gpu_activity_missing",
        "error",
        f"{count(launched)} kernel launches and no GPU activity: what the GPU did was not recorded. "
        "It was not idle.",
        "Under WSL2, use nsys 2025.1 or newer with a current driver; elsewhere check that the driver is not "
        f"newer than nsys supports, and that nothing was filtered (--tables). {CAPTURE_HINT}",
    )


def lost_events(run: Run) -> Diagnostic | None:
    """The profiler says that it lost events."""
    if not lost(run):
        return None
    return Diagnostic(
        "lost_events",
        "warning",
        "The profiler says that CUDA events may have been lost: counts and gaps may be wrong.",
        "Capture a shorter range, and let the program end by itself instead of killing it.",
    )


def trimmed(run: Run) -> Diagnostic | None:
    """Fewer events than the profiler collected."""
    said = collected(run)
    if said is None:
        return Diagnostic(
            "completeness_unknown",
            "info",
            "The export does not say how many CUDA events were collected, so it cannot be checked for gaps.",
        )
    held = stored(run)
    if held == said:
        return None
    if held > said:
        return Diagnostic(
            "completeness_unknown",
            "info",
            f"The export holds {count(held)} CUDA events where the profiler collected {count(said)}.",
        )
    return Diagnostic(
        "export_trimmed",
        "warning",
        f"The profiler collected {count(said)} CUDA events, and the export holds {count(held)}: it was "
        "filtered or trimmed, so steps may lack kernels or calls.",
        f"Export the whole report, without --tables and --times: {EXPORT}",
    )


def filtered(run: Run) -> Diagnostic | None:
    """The export left out tables or times on purpose."""
    names = ("EXPORT_PARAM_TABLES_TO_EXPORT", "EXPORT_PARAM_TIMES_TO_EXPORT")
    if not any(run.metadata.get(name, "").strip() for name in names):
        return None
    return Diagnostic(
        "export_filtered",
        "warning",
        "The export was made with --tables or --times: activities or calls outside are missing.",
        f"Export the whole report: {EXPORT}",
    )


def absent(run: Run) -> Diagnostic | None:
    """Tables that every judgement needs and the export lacks."""
    named = {
        "CUPTI_ACTIVITY_KIND_KERNEL": "kernels",
        "CUPTI_ACTIVITY_KIND_RUNTIME": "API calls",
        "StringIds": "names",
        "TARGET_INFO_GPU": "GPUs",
    }
    tables = {name.upper() for name in run.tables()}
    if "TARGET_INFO_CUDA_GPU" in tables:
        tables.add("TARGET_INFO_GPU")
    missing = [what for table, what in named.items() if table.upper() not in tables]
    if not missing:
        return None
    return Diagnostic(
        "tables_absent",
        "info",
        f"The export has no table of {', '.join(missing)}; nsys leaves out tables without rows.",
    )


def schema(run: Run) -> Diagnostic | None:
    """A schema that is not known."""
    text = run.schema_version
    if not text:
        return Diagnostic(
            "schema_unknown",
            "info",
            "The export does not state its schema version; nsys before 2022 wrote such exports.",
        )
    parts = tuple(int(part) for part in text.split(".") if part.isdigit())
    if len(parts) < 3 or parts <= NEWEST_SCHEMA:
        return None
    return Diagnostic(
        "schema_newer",
        "info",
        f"Schema {text} is newer than any this version knows; what it knows was read.",
        "Look for a newer nsysmodel if something is missing.",
    )


def synthetic(run: Run) -> Diagnostic | None:
    """A script wrote the export."""
    if not run.facts.synthetic:
        return None
    return Diagnostic(
        "synthetic", "info", "This export is synthetic: no GPU ran, and no number is a measurement."
    )


def contains_load(run: Run) -> Diagnostic | None:
    """The capture covers the loading of a model."""
    copies = run.copies()
    up = copies[copies["kind"] == "HtoD"]
    size, busy = int(up["bytes"].sum()), union_length(up["start_ns"], up["end_ns"])
    if size < _LOAD_BYTES or busy < _LOAD_SHARE * run.facts.span_ns:
        return None
    return Diagnostic(
        "capture_contains_load",
        "info",
        f"{bytes_(size)} were copied to the device in {ns(busy)}: the capture contains the loading of "
        "weights or data, which is no step.",
        CUT_HINT,
    )
