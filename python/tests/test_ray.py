"""A real Ray cluster of two nodes on this machine: a worker is killed, then a node, in the middle of a sweep."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headway
from headway import HeadwayError

ray = pytest.importorskip("ray")
LOADS = "0.3..0.72:0.03"


def swept(**more: Any) -> headway.SweepResult:
    return headway.sweep(["c-fcfs", "darc"], loads=LOADS, requests=60_000, workers=6, **more)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    from ray.cluster_utils import Cluster

    memory = 100 << 20
    node = {"num_cpus": 1, "object_store_memory": memory}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    cluster.second = cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def alone() -> headway.SweepResult:
    return swept(threads=1)


def test_two_nodes_give_the_frame_of_one_machine(cluster: Any, alone: headway.SweepResult) -> None:
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    result = swept(on="ray")
    assert result.frame().equals(alone.frame())
    searched = headway.capacity(["c-fcfs", "darc"], requests=20_000, tolerance=0.05, on="ray")
    assert searched == headway.capacity(["c-fcfs", "darc"], requests=20_000, tolerance=0.05)


def test_a_mistake_of_a_task_is_the_same_exception(cluster: Any) -> None:
    from headway.executors import answers

    def mistaken(_common: None, item: int, _cutoff: object) -> str:
        raise HeadwayError(f"a mistake of {item}")

    with pytest.raises(HeadwayError, match="a mistake of 3"):
        list(answers("ray", None, mistaken, None, [(0, 3)]))


def test_a_killed_worker_and_a_killed_node_change_nothing(cluster: Any, alone: headway.SweepResult, tmp_path: Path) -> None:
    killed: list[str] = []

    def disturb(done: int, total: int) -> None:
        if done >= 2 and not killed:
            killed.append("worker")
            victim = worker_of_a_task()
            os.kill(victim, signal.SIGKILL)
        elif done >= total // 3 and killed == ["worker"]:
            killed.append("node")
            cluster.remove_node(cluster.second, allow_graceful=False)

    result = swept(on="ray", progress=disturb, store=tmp_path)
    assert killed == ["worker", "node"]
    deadline = time.monotonic() + 60
    while len([node for node in ray.nodes() if node["Alive"]]) != 1 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len([node for node in ray.nodes() if node["Alive"]]) == 1
    assert result.frame().equals(alone.frame())
    assert len(list(tmp_path.iterdir())) == len(alone.points)


def worker_of_a_task() -> int:
    """The process of a worker that runs tasks of this package."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                name = (process / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            if name.startswith(b"ray::task"):
                return int(process.name)
        time.sleep(0.01)
    raise AssertionError("no task runs")


def test_an_interrupt_cancels_what_runs(cluster: Any) -> None:
    def interrupt(done: int, _: int) -> None:
        raise KeyboardInterrupt

    threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        swept(on="ray", progress=interrupt)
    assert threading.active_count() <= threads + 4
    # The cluster serves the next sweep.
    again = headway.sweep("darc", loads=[0.5], requests=5_000, on="ray")
    assert again.points[0].runs[0].requests == 5_000
