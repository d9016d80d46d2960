"""How far a long piece of work is: the library tells whoever watches, and stays silent where nobody does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Observer = Callable[[str, int, int], None]
"""Called with the name of a stage, how much of it is done, and its total; 0 and 0 where that is not known.
No name says that the work is done.

It may be called from several threads, one at a time.
"""

_watching: ContextVar[Observer | None] = ContextVar("watching", default=None)


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Tell this observer of every stage that begins inside.

    >>> seen = []
    >>> with observing(lambda stage, done, total: seen.append(stage)):
    ...     tell("counting")
    >>> seen
    ['counting']
    """
    token = _watching.set(observer)
    try:
        yield
    finally:
        _watching.reset(token)


def tell(stage: str, done: int = 0, total: int = 0) -> None:
    """A stage begins, or has come so far."""
    observer = _watching.get()
    if observer is not None:
        observer(stage, done, total)


def counter(stage: str) -> Callable[[int, int], None] | None:
    """What a worker thread calls with done and total; None where nobody watches."""
    observer = _watching.get()
    if observer is None:
        return None
    watcher = observer
    return lambda done, total: watcher(stage, done, total)


def settle() -> None:
    """The work is done and what follows is shown: whoever watches may leave the screen."""
    tell("")
