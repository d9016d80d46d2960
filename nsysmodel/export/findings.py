"""What is wrong or incomplete in an export: what it means for a report, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nsysmodel.export import findings_events as events
from nsysmodel.export import findings_recording as recording
from nsysmodel.result_export import Diagnostic

if TYPE_CHECKING:
    from nsysmodel.export.run import Run


def findings(run: Run) -> list[Diagnostic]:
    """All findings of an export, in the order in which they matter."""
    return [found for check in _CHECKS if (found := check(run)) is not None]


def recording_findings(run: Run) -> list[Diagnostic]:
    """The findings that say whether kernels are missing, as far as few columns tell."""
    return [found for check in _RECORDING if (found := check(run)) is not None]


_RECORDING: tuple[Callable[[Run], Diagnostic | None], ...] = (
    recording.graphs_traced_whole,
    recording.trimmed,
    recording.lost_events,
    recording.filtered,
)
_CHECKS: tuple[Callable[[Run], Diagnostic | None], ...] = (
    recording.gpu_activity_missing,
    recording.graphs_traced_whole,
    recording.trimmed,
    recording.lost_events,
    recording.filtered,
    events.kernels_without_launch,
    events.launches_without_kernel,
    events.kernels_before_launch,
    events.gpu_unknown,
    recording.contains_load,
    events.profiler_overhead,
    events.several_places,
    events.negative_times,
    events.normalised,
    events.mig,
    events.graphs_by_call,
    events.open_ranges,
    recording.schema,
    recording.absent,
    recording.synthetic,
)
