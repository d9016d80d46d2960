"""How a command reads exports: from kept columns where asked, with a bar on a terminal if it takes long."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from nsysmodel.export.cache_folder import Place

F = TypeVar("F", bound=Callable[..., Any])

PATIENCE_S = 1.0
"""A bar appears only for what takes longer."""


def reading_options(command: F) -> F:
    """Add `--cache` and `--cache-beside`, and show how far the command is; its arguments stay as they are."""

    @functools.wraps(command)
    def wrapper(*args: Any, cache: bool, cache_beside: bool, **kwargs: Any) -> Any:
        from nsysmodel.export.cache_folder import caching

        with caching(place_of(cache, cache_beside)), bar():
            return command(*args, **kwargs)

    return cache_options(wrapper)  # type: ignore[return-value]


def place_of(cache: bool, cache_beside: bool) -> Place | None:
    """Where decoded columns are kept, as the options say."""
    return "beside" if cache_beside else "user" if cache else None


def cache_options(command: F) -> F:
    """Add `--cache` and `--cache-beside`, passed as `cache` and `cache_beside`."""
    beside = click.option("--cache-beside", is_flag=True, help="As --cache, in a folder beside the export.")
    kept = click.option(
        "--cache", is_flag=True, help="Keep decoded columns, and read those that were kept; see cache info."
    )
    return kept(beside(command))


@contextmanager
def bar() -> Iterator[None]:
    """A bar with stage, rate and remaining time on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from nsysmodel.progress import observing

    shown = _Bar()
    try:
        with observing(shown):
            yield
    finally:
        shown.close()


class _Bar:
    """Drawn by rich, which is loaded only when a stage comes late enough."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._progress: Any = None
        self._task: Any = None
        self._stage = ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if not stage:
            self.close()
            return
        if self._progress is None:
            if time.monotonic() - self._began < PATIENCE_S:
                return
            self._progress = _drawn()
            self._progress.start()
        if stage != self._stage:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._task, self._stage = self._progress.add_task(stage, total=total or None), stage
        self._progress.update(self._task, completed=done, total=total or None)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
        self._progress, self._task, self._stage = None, None, ""


def _drawn() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(show_speed=True),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
