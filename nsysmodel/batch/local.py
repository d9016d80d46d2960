"""Running tasks on this machine: in this process, or in several; a process that dies costs one run only."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from nsysmodel.batch.summary import failed
from nsysmodel.batch.types import Outcome, Task
from nsysmodel.batch.work import perform


def run_local(tasks: Iterable[Task], jobs: int = 1) -> Generator[Outcome, None, None]:
    """Outcomes as they come.

    Args:
        tasks: taken one by one, so that no more than `jobs` are under way.
        jobs: processes; 1 works in this one.
    """
    if jobs == 1:
        for task in tasks:
            yield perform(task)
        return
    queue = iter(tasks)
    while suspects := (yield from _pooled(queue, jobs)):
        # One of these killed its process: on its own each shows whether it was the one.
        for task in suspects:
            if (yield from _pooled(iter([task]), 1)):
                yield died(task, "the process that judged it died, perhaps for want of memory")


def died(task: Task, how: str) -> Outcome:
    """The outcome of a run that takes its worker down."""
    file = os.path.basename(task.run.path)
    hint = "Fewer processes (-j) leave more memory for each; --steps and --time-range judge a part."
    return Outcome(task.run.name, "", failed(task.run, file, f"{file} gave no result: {how}.", hint))


def _pooled(queue: Iterator[Task], jobs: int) -> Generator[Outcome, None, list[Task]]:
    """Work until the queue is empty or the pool breaks; gives the tasks that were under way then."""
    pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_quiet_interrupt)
    running: dict[Future[Outcome], Task] = {}
    lost: list[Task] = []
    try:
        while not lost:
            while len(running) < jobs and (task := next(queue, None)) is not None:
                try:
                    running[pool.submit(perform, task)] = task
                except BrokenProcessPool:
                    lost.append(task)
                    break
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                try:
                    outcome = future.result()
                except BrokenProcessPool:
                    lost.append(task)
                else:
                    yield outcome
        # The others of a broken pool end at once; one may still have finished.
        for future, task in running.items():
            try:
                outcome = future.result()
            except BrokenProcessPool:
                lost.append(task)
            else:
                yield outcome
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return lost


def _quiet_interrupt() -> None:
    """A worker dies of Ctrl-C without a traceback; the parent says what happened."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
