"""How many points a second a sweep computes on 1 to N cores, what overhead that is over the work itself, and what follows for a large sweep.

    target/python/venv/bin/python python/measure/cores.py --points 200 --rounds 3
    target/python/venv/bin/python python/measure/cores.py --on threads --on ray --most 16

Two figures of overhead. By the clock: work is the sum of the tasks' seconds, overhead is time × cores ÷ work − 1; where others use the machine, their
share is in both. By the processors: the seconds of all processes, the driver's and Ray's among them, ÷ those of a bare loop over the points, − 1.
Rounds are interleaved, so that what else the machine does meets all alike; the figures are medians. ``ray`` is a cluster of one node here, ``ray-2``
one of two nodes that share the cores.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psutil

import headway
from headway import executors, results, sweeps
from headway.settings import LoadTexts, Replications, texts
from headway.workloads import workload

ON = ("threads", "processes", "ray", "ray-2")
#: A large sweep, on paper.
LARGE_POINTS, LARGE_CORES = 1_000_000, 1_000


@dataclass
class Ran:
    """What one sweep took."""

    took_s: float
    processors_s: float
    work_s: float
    tasks: int
    answer_bytes: float


class Tally:
    """Adds up what tasks say they took."""

    def __init__(self) -> None:
        self.work_s, self.tasks, self.points, self.bytes = 0.0, 0, 0, 0
        for kind in (executors.Futures, executors.Ray):
            kind.result = self.wrapped(kind.result)  # type: ignore[method-assign]

    def wrapped(self, result: Any) -> Any:
        """The same, counted."""

        def counted(backend: Any, handle: Any) -> Any:
            answers, seconds = result(backend, handle)
            self.work_s += seconds
            self.tasks += 1
            self.points += len(answers)
            self.bytes += sum(len(answer) for _, answer in answers)
            return answers, seconds

        return counted

    def clear(self) -> None:
        """Begins again."""
        self.work_s, self.tasks, self.points, self.bytes = 0.0, 0, 0, 0


def processors_s() -> float:
    """Seconds of the processors so far: of this process, of those that it began, and of theirs."""
    total = 0.0
    me = psutil.Process()
    for process in (me, *me.children(recursive=True)):
        try:
            total += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock, and of the processors."""
    clock, processors = time.perf_counter(), processors_s()
    work()
    return time.perf_counter() - clock, processors_s() - processors


@contextmanager
def cluster(nodes: int, cores: int) -> Iterator[None]:
    """A cluster of Ray on this machine, of so many cores in all."""
    import ray
    from ray.cluster_utils import Cluster

    each = [cores // nodes + (1 if node < cores % nodes else 0) for node in range(nodes)]
    memory = {"object_store_memory": 100 << 20}
    begun = Cluster(initialize_head=True, head_node_args={"num_cpus": each[0], "include_dashboard": False, **memory})
    for cpus in each[1:]:
        begun.add_node(num_cpus=cpus, **memory)
    ray.init(address=begun.address, log_to_driver=False)
    begun.wait_for_nodes()
    try:
        yield
    finally:
        ray.shutdown()
        begun.shutdown()


def loads(points: int) -> list[float]:
    """As many loads."""
    return [0.2 + 0.6 * at / points for at in range(points)]


def bare(points: int, requests: str) -> float:
    """Seconds of the processors for the points alone, one after the other."""
    once = Replications(None, None, "overall.slowdown.p999")
    common = sweeps.PointTask(workload("high-bimodal"), texts({"requests": requests, "workers": 8}), once)
    each = [LoadTexts.of(load, None) for load in loads(points)]
    return timed(lambda: [sweeps.compute_point(common, ("darc", at), None) for at in each])[1]


def swept(on: str, cores: int, points: int, requests: str, tally: Tally) -> Ran:
    """One sweep."""
    tally.clear()
    place = on.removesuffix("-2")
    took_s, processors = timed(lambda: headway.sweep("darc", loads=loads(points), requests=requests, workers=8, on=place, threads=cores))
    return Ran(took_s, processors, tally.work_s, tally.tasks, tally.bytes / max(tally.points, 1))


def measured(on: str, cores: int, arguments: argparse.Namespace, tally: Tally) -> Ran:
    """One sweep in its place; a cluster's start is no part of it."""
    if not on.startswith("ray"):
        return swept(on, cores, arguments.points, arguments.requests, tally)
    with cluster(2 if on == "ray-2" else 1, cores):
        # The workers' first import of the package.
        headway.sweep("darc", loads=[0.3] * 2 * cores, requests="1k", on="ray")
        return swept(on, cores, arguments.points, arguments.requests, tally)


def reading_s() -> float:
    """What the driver does with one answer, s: it reads the JSON, and makes rows of it."""
    answer = headway.sweep("darc", loads=[0.5], requests="20k", workers=8).answers[0]
    text = json.dumps(answer)
    times = []
    for _ in range(200):
        begun = time.process_time()
        for run in json.loads(text)["runs"]:
            results.Run.of(run).rows()
        times.append(time.process_time() - begun)
    return statistics.median(times)


def kept_bytes(points: int = 2_000) -> float:
    """What the driver keeps of one point in memory, bytes."""
    me = psutil.Process()
    headway.sweep("darc", loads=[0.5], requests=100)
    before = me.memory_info().rss
    kept = headway.sweep("darc", loads=[0.5] * points, requests=100, workers=8)
    return (me.memory_info().rss - before) / len(kept.points)


def echoed(_common: None, _item: int, _cutoff: object) -> str:
    """A point without work."""
    return "x" * 2_500


def handing_s(tasks: int = 8_000) -> float:
    """What the driver does for one task of Ray, s of its processor, while as many tasks are in flight as 1 000 cores have."""
    executors.TASK_S = 0.0
    slots, executors.Ray.slots = executors.Ray.slots, property(lambda _: LARGE_CORES)  # type: ignore[assignment, method-assign]
    with cluster(1, executors.available_cores()):
        list(executors.answers("ray", None, echoed, None, [(at, at) for at in range(10)]))
        begun = time.process_time()
        done = len(list(executors.answers("ray", None, echoed, None, [(at, at) for at in range(tasks)])))
        took_s = time.process_time() - begun
    executors.Ray.slots, executors.TASK_S = slots, 2.0  # type: ignore[method-assign]
    return took_s / done


def on_paper(point_s: float, answer_bytes: float) -> None:
    """A large sweep, of the measured sizes."""
    per_task = max(1, round(executors.TASK_S / point_s))
    tasks = LARGE_POINTS / per_task
    tasks_per_s = LARGE_CORES / max(executors.TASK_S, point_s)
    work_s, read_s, hand_s, kept = point_s * LARGE_POINTS / LARGE_CORES, reading_s(), handing_s(), kept_bytes()
    driver_s = read_s * LARGE_POINTS + hand_s * tasks
    print(f"\non paper, {LARGE_POINTS:,} points on {LARGE_CORES:,} cores, of the sizes measured:")
    print(f"  the work takes {work_s:,.0f} s: {point_s * 1e3:.1f} ms a point; a task has {per_task} points; {tasks_per_s:,.0f} tasks a second")
    print(f"  the answers are {answer_bytes * LARGE_POINTS / 1e9:.1f} GB ({answer_bytes:,.0f} bytes a point)")
    print(f"  the driver takes {driver_s:,.0f} s of one core: {read_s * 1e3:.2f} ms to read a point, {hand_s * 1e3:.2f} ms to hand out a task")
    print(f"  the driver keeps {kept * LARGE_POINTS / 1e9:,.0f} GB ({kept / 1e3:.1f} kB a point)")
    print(f"  the bottleneck is {'the driver' if driver_s > work_s else 'the work'}")
    # Where points are longer than that, and still several make a task.
    spare = 1 / LARGE_CORES - hand_s / executors.TASK_S
    if spare > 0:
        print(f"  both take as long with points of {1e3 * read_s / spare:.0f} ms")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", action="append", choices=ON, help="where; repeat for more [all]")
    parser.add_argument("--least", type=int, default=1, help="cores [1]")
    parser.add_argument("--most", type=int, default=executors.available_cores(), help="cores [the machine's]")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--requests", default="60k", help="arrivals of a point")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    places = arguments.on or list(ON)
    cases = [(on, cores) for cores in range(arguments.least, arguments.most + 1) for on in places if not (on == "ray-2" and cores < 2)]
    tally, ran = Tally(), {case: [] for case in cases}
    alone_s = []
    for number in range(arguments.rounds):
        alone_s.append(bare(arguments.points, arguments.requests))
        for case in cases if number % 2 == 0 else reversed(cases):
            ran[case].append(measured(*case, arguments, tally))
    size = f"{arguments.points} points of {arguments.requests} requests"
    print(f"{size}, medians of {arguments.rounds} rounds; load average {os.getloadavg()[1]:.1f}\n")
    print("| where | cores | points/s | tasks | overhead by the clock | by the processors |\n|---|---|---|---|---|---|")
    for (on, cores), runs in ran.items():
        rate = statistics.median(arguments.points / run.took_s for run in runs)
        clock = statistics.median(run.took_s * cores / run.work_s - 1 for run in runs)
        processors = statistics.median(run.processors_s / bare_s - 1 for run, bare_s in zip(runs, alone_s, strict=True))
        tasks = statistics.median(run.tasks for run in runs)
        print(f"| {on} | {cores} | {rate:.1f} | {tasks:.0f} | {100 * clock:.1f} % | {100 * processors:.1f} % |")
    some = ran[cases[0]]
    on_paper(statistics.median(alone_s) / arguments.points, statistics.median(run.answer_bytes for run in some))


if __name__ == "__main__":
    main()
