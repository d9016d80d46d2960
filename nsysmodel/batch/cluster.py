"""Running tasks on an existing Dask cluster. Workers read the exports; only this process writes results."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from nsysmodel.batch.local import died
from nsysmodel.batch.types import BatchError, Outcome, Task
from nsysmodel.batch.work import perform

if TYPE_CHECKING:
    from distributed import Client

PER_THREAD = 2
"""Tasks per worker thread that are under way: one runs, one waits, so that no thread runs dry."""


def installed_version() -> str:
    """Version of the package here; called on each worker to see whether it is the same there."""
    from importlib.metadata import version

    return version("nsysmodel")


def run_cluster(
    tasks: Iterable[Task], address: str, *, timeout_s: float = 30.0
) -> Generator[Outcome, None, None]:
    """Outcomes as they come.

    A worker that dies loses nothing: the scheduler gives its tasks to another. A run that takes several
    workers down is given up, the others go on.

    Args:
        tasks: taken as workers have room.
        address: of the scheduler, `tcp://host:8786`.
        timeout_s: how long to wait for the scheduler and for a first worker.

    Raises:
        BatchError: `distributed` is missing, the scheduler or workers are not there or lack this version of
            the package, or the scheduler is lost on the way.
    """
    client: Any = _connect(address, timeout_s)
    try:
        _check_workers(client, timeout_s)
        yield from _work(client, iter(tasks))
    finally:
        client.close()


def _connect(address: str, timeout_s: float) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise BatchError("--dask needs Dask.", "pip install 'nsysmodel[dask]'") from error
    try:
        make: Any = Client
        return cast("Client", make(address, timeout=timeout_s, set_as_default=False))
    except (OSError, ValueError, TimeoutError) as error:
        raise BatchError(
            f"No Dask scheduler answers at {address}.", "Give its address, for example tcp://host:8786."
        ) from error


def _check_workers(client: Any, timeout_s: float) -> None:
    try:
        client.wait_for_workers(1, timeout=timeout_s)
    except TimeoutError as error:
        raise BatchError("The Dask cluster has no worker.", "Start one: dask worker ADDRESS.") from error
    here = installed_version()
    found: Mapping[str, Any] = client.run(installed_version, on_error="return")
    wrong = {str(there) for there in found.values() if there != here}
    if wrong:
        raise BatchError(
            f"{sum(there != here for there in found.values())} of {len(found)} Dask workers lack "
            f"nsysmodel {here} ({sorted(wrong)[0][:80]}).",
            "Install the same version in the workers' environment.",
        )


def _work(client: Any, queue: Iterator[Task]) -> Iterator[Outcome]:
    suspects: list[Task] = []
    yield from _sent(client, queue, suspects)
    for task in suspects:
        # The scheduler blames every task that a dead worker held: alone, a run shows whether it was the one.
        again: list[Task] = []
        yield from _sent(client, iter([task]), again)
        if again:
            yield died(task, "every worker that judged it died, perhaps for want of memory")


def _sent(client: Any, queue: Iterator[Task], suspects: list[Task]) -> Iterator[Outcome]:
    """Outcomes of the queue; tasks whose workers died too often are added to `suspects`."""
    import distributed

    running: dict[str, Task] = {}

    def submit() -> Iterator[Any]:
        room = PER_THREAD * max(sum(client.nthreads().values()), 1)
        while len(running) < room and (task := next(queue, None)) is not None:
            future = client.submit(perform, task, pure=False, retries=0)
            running[future.key] = task
            yield future

    # Its types are not annotated.
    finished: Any = cast("Any", distributed).as_completed(submit(), loop=client.loop)
    for future in finished:
        task = running.pop(future.key)
        outcome = _outcome(future, task)
        # The result lives in a worker for as long as a future names it.
        future.release()
        if outcome is None:
            suspects.append(task)
        else:
            yield outcome
        for another in submit():
            finished.add(another)


def _outcome(future: Any, task: Task) -> Outcome | None:
    """What a worker gave back; None where the workers died."""
    from distributed import KilledWorker

    if future.status in ("lost", "cancelled"):
        raise BatchError(
            "The Dask scheduler was lost.", "What is finished is kept: run the same command again."
        )
    try:
        outcome: Outcome = future.result()
    except KilledWorker:
        return None
    except Exception as error:
        return died(task, f"its worker raised {type(error).__name__}")
    return outcome
