"""What can go wrong, each with what, where and what to do about it.

The library raises; it never prints and never exits. The command line turns any `NsysModelError` into
one sentence, a hint and the exit code of the class.
"""

from __future__ import annotations


class NsysModelError(Exception):
    """Base of every error that this package raises on purpose.

    Args:
        message: one clear sentence: what is wrong, and where.
        hint: what to do about it; where none is given, that of the class.
    """

    exit_code = 1
    default_hint = ""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint


class ExportError(NsysModelError):
    """The export cannot be read, or has nothing to show."""


class ModelError(NsysModelError):
    """A model file, a configuration or a model name is wrong."""

    default_hint = (
        "`nsysmodel model check FILE` checks a model file; `nsysmodel model init` writes one to start from."
    )


class HardwareError(NsysModelError):
    """A GPU name, a catalogue file or a peak is wrong."""


class WorkloadError(NsysModelError):
    """A workload parameter is impossible or contradicts another one."""


class OutputError(NsysModelError):
    """A result cannot be written where it was asked for."""
