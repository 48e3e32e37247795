"""Where the points of a sweep run: threads, processes, an executor of somebody else's, or Ray.

Points are handed out in tasks whose size is chosen so that a task lasts about a second or two: the first tasks are single points, whose
time is measured. Results are taken as they come. No figure depends on where or in which order points ran.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import current_process, get_context, parent_process
from typing import Any, Protocol, TypeVar

from headway._native import Cutoff, HeadwayError
from headway.settings import whole

#: How long a task should last, s.
TASK_S = 2.0
#: Tasks in flight for each slot, so that none idles between two.
AHEAD = 2
#: How often a wait looks up, s: for Ctrl-C.
LOOK_S = 0.1
#: How often Ray runs a task again whose worker or node is gone.
RETRIES = 20

#: What to do where processes do not work.
ELSEWHERE = 'give on="threads"'
#: Why a process may end too early.
ENDED = (
    "on: 'processes': one of them ended before its points were done. Each reads the program again: it has to be a file, and to sweep under "
    f'`if __name__ == "__main__":`; else {ELSEWHERE}. What the process said stands above; it said nothing if it was killed, as for want of memory'
)

C = TypeVar("C")
#: Computes an item's answer: of what all items share, of the item, and of what ends it early.
Compute = Callable[[C, Any, Cutoff | None], str]
#: A name, an executor or a client.
On = Any


class Backend(Protocol):
    """Runs tasks of points."""

    @property
    def slots(self) -> int:
        """How many tasks run at once."""

    def submit(self, items: Sequence[tuple[int, Any]]) -> Any:
        """Begins a task, and gives its handle."""

    def done(self, handles: Sequence[Any]) -> Sequence[Any]:
        """Those that are done, after a short wait for one."""

    def result(self, handle: Any) -> tuple[list[tuple[int, str]], float]:
        """The answers of a task that is done, and how long they took, s."""

    def stop(self) -> None:
        """Ends what still runs."""


def task(compute: Compute[C], common: C, items: Sequence[tuple[int, Any]], cutoff: Cutoff | None = None) -> tuple[list[tuple[int, str]], float]:
    """Computes some items, and says how long it took, s."""
    begun = time.perf_counter()
    answers = [(index, compute(common, item, cutoff)) for index, item in items]
    return answers, time.perf_counter() - begun


class Futures:
    """Tasks on a ``concurrent.futures.Executor``."""

    def __init__(self, executor: Executor, slots: int, compute: Compute[C], common: C) -> None:
        self.executor, self._slots = executor, slots
        self._compute: Any = compute
        self._common: Any = common

    @property
    def slots(self) -> int:
        """The executor's workers."""
        return self._slots

    def submit(self, items: Sequence[tuple[int, Any]]) -> Future[Any]:
        """Begins a task."""
        return self.executor.submit(task, self._compute, self._common, items)

    def done(self, handles: Sequence[Future[Any]]) -> Sequence[Future[Any]]:
        """Those that are done."""
        if isinstance(handles[0], Future):
            return list(wait(handles, LOOK_S, return_when=FIRST_COMPLETED).done)
        # Futures of another kind, such as Dask's.
        deadline = time.monotonic() + LOOK_S
        while not (ready := [each for each in handles if each.done()]) and time.monotonic() < deadline:
            time.sleep(LOOK_S / 20)
        return ready

    def result(self, handle: Future[Any]) -> tuple[list[tuple[int, str]], float]:
        """The answers of a task."""
        answers: tuple[list[tuple[int, str]], float] = handle.result()
        return answers

    def stop(self) -> None:
        """Tasks are cancelled one by one."""


class Threads(Futures):
    """Tasks on threads of this process."""

    def __init__(self, executor: Executor, slots: int, compute: Compute[C], common: C) -> None:
        super().__init__(executor, slots, compute, common)
        self._cutoff = Cutoff()
        #: The threads that compute.
        self._computing: set[int] = set()

    def submit(self, items: Sequence[tuple[int, Any]]) -> Future[Any]:
        """Begins a task."""
        return self.executor.submit(self._task, items)

    def _task(self, items: Sequence[tuple[int, Any]]) -> tuple[list[tuple[int, str]], float]:
        thread = threading.get_ident()
        self._computing.add(thread)
        try:
            return task(self._compute, self._common, items, self._cutoff)
        finally:
            self._computing.discard(thread)

    def stop(self) -> None:
        """Ends the runs, and the Python code of a role in them, which does not look at the cutoff."""
        self._cutoff.cut()
        for thread in tuple(self._computing):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(KeyboardInterrupt))


class Processes(Futures):
    """Tasks on a pool of processes."""

    def submit(self, items: Sequence[tuple[int, Any]]) -> Future[Any]:
        """Begins a task."""
        try:
            given = pickle.dumps((self._compute, self._common, items))
        except Exception as error:
            raise HeadwayError(f"on: 'processes': what they compute cannot be sent to them ({error}): {ELSEWHERE}") from error
        return self.executor.submit(task_of_another, given)


def task_of_another(given: bytes) -> tuple[list[tuple[int, str]], float]:
    """Computes some items for another process."""
    try:
        compute, common, items = pickle.loads(given)
    except Exception as error:
        raise HeadwayError(
            f"on: 'processes': one cannot read what it computes ({error}): define a policy's class in a module or file, outside of "
            f'`if __name__ == "__main__":`; or {ELSEWHERE}'
        ) from error
    try:
        return task(compute, common, items)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            raise HeadwayError(f"{type(error).__name__}: {error}") from error
        raise


def leave_with_parent() -> None:
    """Ends this process of a pool when the one that began it is gone: it holds both ends of the pool's pipes, so it would wait for ever."""
    parent = parent_process()
    assert parent is not None

    def wait_for_it() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=wait_for_it, daemon=True).start()


class Ray:
    """Tasks on the Ray cluster that this process is connected to, or on one that begins here."""

    def __init__(self, compute: Compute[C], common: C) -> None:
        try:
            import ray
        except ImportError as error:
            raise HeadwayError("on: 'ray' needs the package ray: pip install 'headway-sched[ray]'") from error
        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        self._ray = ray
        self._common = ray.put(common)
        self._task = ray.remote(max_retries=RETRIES)(task)
        self._compute: Any = compute

    @property
    def slots(self) -> int:
        """The cluster's processors now: nodes come and go."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def submit(self, items: Sequence[tuple[int, Any]]) -> Any:
        """Begins a task."""
        return self._task.remote(self._compute, self._common, list(items))

    def done(self, handles: Sequence[Any]) -> Sequence[Any]:
        """Those that are done."""
        ready, _ = self._ray.wait(list(handles), num_returns=1, timeout=LOOK_S)
        return list(ready)

    def result(self, handle: Any) -> tuple[list[tuple[int, str]], float]:
        """The answers of a task."""
        try:
            answers: tuple[list[tuple[int, str]], float] = self._ray.get(handle)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        return answers

    def stop(self) -> None:
        """Tasks are cancelled one by one."""


@contextmanager
def backend(on: On, threads: int | None, compute: Compute[C], common: C) -> Iterator[Backend]:
    """The backend that ``on`` names, for as long as it is needed."""
    slots = available_cores() if threads is None else whole("threads", threads, 1, 1024)
    if on == "ray":
        yield Ray(compute, common)
    elif on == "threads":
        with ThreadPoolExecutor(slots, thread_name_prefix="headway") as pool:
            try:
                yield Threads(pool, slots, compute, common)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    elif on == "processes":
        with process_pool(slots) as pool:
            try:
                yield Processes(pool, slots, compute, common)
            except BrokenProcessPool as error:
                raise HeadwayError(ENDED) from error
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    else:
        executor = on.get_executor() if hasattr(on, "get_executor") else on
        if not hasattr(executor, "submit"):
            raise HeadwayError(f"on: {on!r} is neither 'threads', 'processes', 'ray', an executor nor a client of Dask")
        yield Futures(executor, threads or getattr(executor, "_max_workers", None) or slots, compute, common)


def process_pool(slots: int) -> ProcessPoolExecutor:
    """A pool of processes, where one may begin."""
    this = current_process()
    if getattr(this, "_inheriting", False):
        # It reads the program again, and so came to the sweep that began it. The process that waits for it says what is wrong.
        sys.exit(1)
    if this.daemon:
        raise HeadwayError(f"on: 'processes': this process is a daemon of multiprocessing's, which may begin none: {ELSEWHERE}")
    # A process that was forked would inherit locks of this one's threads.
    return ProcessPoolExecutor(slots, mp_context=get_context("spawn"), initializer=leave_with_parent)


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def answers(on: On, threads: int | None, compute: Compute[C], common: C, items: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, str]]:
    """The answer of each item with its number, as they come."""
    if not items:
        return
    with backend(on, threads, compute, common) as runs:
        left = list(reversed(items))
        flying: list[Any] = []
        done, took_s = 0, 0.0
        try:
            while left or flying:
                while left and len(flying) < AHEAD * runs.slots:
                    size = task_size(done, took_s, len(left), runs.slots)
                    flying.append(runs.submit([left.pop() for _ in range(size)]))
                for handle in runs.done(flying):
                    flying.remove(handle)
                    computed, seconds = runs.result(handle)
                    done, took_s = done + len(computed), took_s + seconds
                    yield from computed
        except BaseException:
            # None begins any more when the others end.
            for handle in flying:
                _cancel(handle)
            runs.stop()
            raise


def task_size(done: int, took_s: float, left: int, slots: int) -> int:
    """How many points the next task has: as many as last for a task's time, and few enough that every slot gets one."""
    if done == 0:
        return 1
    lasting = int(TASK_S * done / max(took_s, 1e-9))
    return max(1, min(lasting, -(-left // slots), left))


def _cancel(handle: Any) -> None:
    if hasattr(handle, "cancel"):
        handle.cancel()
    else:
        import ray

        ray.cancel(handle, force=True)
