"""What the reader of a report must know about an export (placeholder: filled next)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nsysmodel.result import Diagnostic

if TYPE_CHECKING:
    from nsysmodel.export.run import Run


def findings(run: Run) -> list[Diagnostic]:
    """Findings of an export."""
    _ = run.facts
    return []
