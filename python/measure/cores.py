"""How many points a second a sweep computes on 1 to N cores, what overhead that is over the work itself, and what follows for a large sweep.

    target/python/venv/bin/python python/measure/cores.py --points 200 --rounds 3
    target/python/venv/bin/python python/measure/cores.py --on threads --on ray --most 16

Work is the sum of the tasks' seconds, overhead is time × cores ÷ work − 1. Rounds are interleaved, so that what else the machine does meets all
alike; the figures are medians. ``ray`` is a cluster of one node here, ``ray-2`` one of two nodes that share the cores.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import headway
from headway import executors, results

ON = ("threads", "processes", "ray", "ray-2")
#: A large sweep, on paper.
LARGE_POINTS, LARGE_CORES = 1_000_000, 1_000


@dataclass
class Ran:
    """What one sweep took."""

    took_s: float
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


def swept(on: str, cores: int, points: int, requests: str, tally: Tally) -> Ran:
    """One sweep."""
    loads = [0.2 + 0.6 * at / points for at in range(points)]
    tally.clear()
    begun = time.perf_counter()
    headway.sweep("darc", loads=loads, requests=requests, workers=8, on=on.removesuffix("-2"), threads=cores)
    took_s = time.perf_counter() - begun
    return Ran(took_s, tally.work_s, tally.tasks, tally.bytes / max(tally.points, 1))


def measured(on: str, cores: int, arguments: argparse.Namespace, tally: Tally) -> Ran:
    """One sweep in its place; a cluster's start is no part of it."""
    if not on.startswith("ray"):
        return swept(on, cores, arguments.points, arguments.requests, tally)
    with cluster(2 if on == "ray-2" else 1, cores):
        # The workers' first import of the package.
        headway.sweep("darc", loads=[0.3] * 2 * cores, requests="1k", on="ray")
        return swept(on, cores, arguments.points, arguments.requests, tally)


def driver_s() -> float:
    """What the driver does with one answer, s: it reads the JSON, and makes rows of it."""
    answer = headway.sweep("darc", loads=[0.5], requests="20k", workers=8).answers[0]
    text = json.dumps(answer)
    times = []
    for _ in range(200):
        begun = time.perf_counter()
        for run in json.loads(text)["runs"]:
            results.Run.of(run).rows()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


def on_paper(point_s: float, answer_bytes: float) -> None:
    """A large sweep, of the measured sizes."""
    reading_s, work_s = driver_s() * LARGE_POINTS, point_s * LARGE_POINTS / LARGE_CORES
    per_task = max(1, round(executors.TASK_S / point_s))
    tasks_per_s = LARGE_CORES / max(executors.TASK_S, point_s)
    print(f"\non paper, {LARGE_POINTS:,} points on {LARGE_CORES:,} cores, of the sizes measured:")
    print(f"  the work takes {work_s:,.0f} s: {point_s * 1e3:.1f} ms a point; a task has {per_task} points; {tasks_per_s:,.0f} tasks a second")
    print(f"  the answers are {answer_bytes * LARGE_POINTS / 1e9:.1f} GB ({answer_bytes:,.0f} bytes a point)")
    print(f"  one driver reads them in {reading_s:,.0f} s ({driver_s() * 1e3:.2f} ms a point)")
    print(f"  the bottleneck is {'the driver' if reading_s > work_s else 'the work'}")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", action="append", choices=ON, help="where; repeat for more [all]")
    parser.add_argument("--most", type=int, default=executors.available_cores(), help="cores [the machine's]")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--requests", default="60k", help="arrivals of a point")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    places = arguments.on or list(ON)
    cases = [(on, cores) for cores in range(1, arguments.most + 1) for on in places if not (on == "ray-2" and cores < 2)]
    tally, ran = Tally(), {case: [] for case in cases}
    for number in range(arguments.rounds):
        for case in cases if number % 2 == 0 else reversed(cases):
            ran[case].append(measured(*case, arguments, tally))
    print(f"{arguments.points} points of {arguments.requests} requests, medians of {arguments.rounds} rounds\n")
    print("| where | cores | points/s | tasks | work, s | overhead |\n|---|---|---|---|---|---|")
    for (on, cores), runs in ran.items():
        rate = statistics.median(arguments.points / run.took_s for run in runs)
        work_s = statistics.median(run.work_s for run in runs)
        overhead = statistics.median(run.took_s * cores / run.work_s - 1 for run in runs)
        tasks = statistics.median(run.tasks for run in runs)
        print(f"| {on} | {cores} | {rate:.1f} | {tasks:.0f} | {work_s:.1f} | {100 * overhead:.1f} % |")
    alone = ran[cases[0]]
    on_paper(statistics.median(run.work_s for run in alone) / arguments.points, statistics.median(run.answer_bytes for run in alone))


if __name__ == "__main__":
    main()
