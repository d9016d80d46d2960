"""What a worker does: look whether the result is still good, else judge the export and render it."""

from __future__ import annotations

import os
import shlex
import traceback

from nsysmodel.batch.digest import run_key
from nsysmodel.batch.summary import failed, summarise
from nsysmodel.batch.types import Outcome, Task
from nsysmodel.errors import NsysModelError
from nsysmodel.export.cache_folder import caching
from nsysmodel.request import HardwareRequest, Selection
from nsysmodel.workload import WorkloadRequest

SUFFIXES = (".html", ".json", ".parquet")
"""Files of one run."""


def perform(task: Task) -> Outcome:
    """One run, whatever happens: an export that cannot be judged must not stop the others."""
    run, file = task.run, os.path.basename(task.run.path)
    try:
        key = run_key(run.path, task.options)
        if key == task.known:
            return Outcome(run.name, key, unchanged=True)
        with caching(task.request.cache):
            return _judged(task, key)
    except NsysModelError as error:
        return Outcome(run.name, "", failed(run, file, error.message, error.hint))
    except MemoryError:
        return Outcome(run.name, "", failed(run, file, f"{file} does not fit into memory.", _SMALLER))
    except Exception as error:
        reason = str(error).strip().split("\n")[0][:200]
        text = f"nsysmodel failed on {file}: {type(error).__name__}" + (f": {reason}" if reason else "")
        return Outcome(run.name, "", failed(run, file, text, _FAULT), trace=traceback.format_exc())


_SMALLER = "Fewer processes (-j) leave more for each; --steps and --time-range judge a part."
_FAULT = "This is a fault of nsysmodel; please report it with what 'nsysmodel inspect' says."


def _judged(task: Task, key: str) -> Outcome:
    from nsysmodel.analyze import evaluate
    from nsysmodel.batch.pieces import piece
    from nsysmodel.report import render_html, render_json

    request, run = task.request, task.run
    evaluation = evaluate(
        run.path, request.model, workload=run.workload, hardware=request.hardware,
        selection=request.selection, command=report_command(task),
    )  # fmt: skip
    files = {
        ".html": render_html(evaluation).encode("utf-8"),
        ".json": render_json(evaluation).encode("utf-8"),
        ".parquet": piece(evaluation),
    }
    return Outcome(run.name, key, summarise(run, evaluation), files)


def report_command(task: Task) -> str:
    """The `nsysmodel report` that gives the same report, without folders of this machine."""
    words = ["nsysmodel", "report", os.path.basename(task.run.path)]
    if task.request.model_given is not None:
        words += ["--model", os.path.basename(task.request.model_given)]
    words += _workload_flags(task.run.workload)
    words += _hardware_flags(task.request.hardware)
    words += _selection_flags(task.request.selection)
    return shlex.join(words)


def _workload_flags(request: WorkloadRequest) -> list[str]:
    words = []
    for name in WorkloadRequest.__dataclass_fields__:
        value = getattr(request, name)
        if value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    return words


def _hardware_flags(request: HardwareRequest) -> list[str]:
    words = []
    for flag, value in (
        ("--gpu", request.gpu),
        ("--bandwidth", request.bandwidth),
        *(("--peak", peak) for peak in request.peaks),
        ("--clock", request.clock),
        *(("--hardware-file", os.path.basename(path)) for path in request.files),
    ):
        words += [flag, value] if value is not None else []
    return words


def _selection_flags(selection: Selection) -> list[str]:
    words = []
    for flag, value in (
        ("--process", selection.process),
        ("--device", selection.device),
        ("--steps", "-".join(map(str, selection.steps)) if selection.steps else None),
        ("--nvtx", selection.nvtx),
        ("--time-range", "-".join(_seconds(ns) for ns in selection.time_range or ()) or None),
    ):
        words += [flag, str(value)] if value is not None else []
    return words


def _seconds(ns: int) -> str:
    """Ns as seconds, exactly.

    >>> _seconds(1_500_000_000), _seconds(7)
    ('1.5', '0.000000007')
    """
    whole, rest = divmod(ns, 1_000_000_000)
    return f"{whole}.{rest:09d}".rstrip("0").rstrip(".")
