"""A folder of exports that are judged in no time: `evaluate` is replaced, the rest is real."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import sample

from nsysmodel.errors import ExportError
from nsysmodel.result import Evaluation


class Judge:
    """Stands in for `nsysmodel.analyze.evaluate`; remembers what it was asked.

    The text of an "export" decides: `bad` cannot be read, `bug` is a fault of ours, `unjudged` and
    `unmodeled` give such results, a number is the step time in µs.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.asked: list[dict[str, Any]] = []

    def __call__(self, export: str, model: object, **asked: Any) -> Evaluation:
        path = Path(export)
        self.seen.append(path.name)
        self.asked.append(asked)
        text = path.read_text()
        if text == "bad":
            raise ExportError(f"{path.name} is damaged.", "Export it again.")
        if text == "bug":
            raise KeyError("start")
        made = {"unjudged": sample.cannot_judge, "unmodeled": sample.no_model}.get(text, sample.evaluation)()
        return named(made, path.name, float(text) * 1000 if text.isdecimal() else None, asked["command"])


def named(made: Evaluation, name: str, step_ns: float | None, command: str) -> Evaluation:
    """The sample under the name of an export, with another step time."""
    device = made.devices[0]
    if step_ns is not None:
        floor = device.step.floor_ns or 0.0
        step = dataclasses.replace(device.step, measured_ns=step_ns, fraction_of_roofline=floor / step_ns)
        steps = dataclasses.replace(device.steps, p05_ns=int(step_ns * 0.98), p95_ns=int(step_ns * 1.04))
        device = dataclasses.replace(device, step=step, steps=steps)
    export = dataclasses.replace(made.export, file=name)
    return dataclasses.replace(made, export=export, devices=(device,), command=command)


def exports(folder: Path, **texts: str) -> list[str]:
    """Files of these names and contents."""
    folder.mkdir(exist_ok=True, parents=True)
    paths = []
    for name, text in texts.items():
        path = folder / f"{name}.sqlite"
        path.write_text(text)
        paths.append(str(path))
    return paths


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below a folder with its time of change and content."""
    return {
        path.relative_to(folder).as_posix(): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
