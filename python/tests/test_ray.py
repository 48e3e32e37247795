"""A real Ray cluster of two nodes on this machine: a worker is killed, then a node, in the middle of a sweep."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Command

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


def test_a_reproduction_on_two_nodes_is_the_commands(cluster: Any, command: Command, tmp_path: Path) -> None:
    theirs = command.json("reproduce", "synergy-fig4-1", "--fast")
    ours = headway.reproduce("synergy-fig4-1", fast=True, on="ray", store=tmp_path)
    assert json.loads(ours.json()) == theirs
    kept = len(list(tmp_path.glob("*.parquet")))
    assert kept > 1
    again: list[int] = []
    headway.reproduce("synergy-fig4-1", fast=True, on="ray", store=tmp_path, progress=lambda done, _: again.append(done))
    assert again == [kept]


def test_the_commands_sweep_runs_on_the_cluster(cluster: Any, command: Command) -> None:
    flags = ["--policy", "darc", "--loads", "0.3,0.6", "--requests", "20k"]
    there = ["--on", "ray", "--python", sys.executable]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    done = subprocess.run([command.path, "sweep", *flags, *there, "--format", "json"], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == command.json("sweep", *flags)


def test_tuning_is_the_same_on_two_nodes(cluster: Any) -> None:
    def tuned(**more: Any) -> Any:
        space = {"q": ["2us", "50us"]}
        return headway.tune("shinjuku-sq", space, "class.short.slowdown.p99<=3", trials=4, replications=2, requests=5_000, workers=4, **more)

    assert tuned(on="ray").frame().equals(tuned().frame())


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
