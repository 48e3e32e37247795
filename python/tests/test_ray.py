"""A real Ray cluster of two nodes on this machine: a worker is killed, then a node, in the middle of a sweep."""

from __future__ import annotations

import contextlib
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

import psutil
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
    cluster.node = node
    cluster.second = cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False)
    cluster.wait_for_nodes()
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture
def two_nodes(cluster: Any) -> Any:
    """The cluster, with a second node again where a test killed it."""
    if alive() == 1:
        cluster.second = cluster.add_node(**cluster.node)
        cluster.wait_for_nodes()
    wait_for_nodes(2)
    return cluster


@pytest.fixture(scope="module")
def alone() -> headway.SweepResult:
    return swept(threads=1)


def alive() -> int:
    return len([node for node in ray.nodes() if node["Alive"]])


def wait_for_nodes(count: int) -> None:
    deadline = time.monotonic() + 60
    while alive() != count and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive() == count


def test_two_nodes_give_the_frame_of_one_machine(two_nodes: Any, alone: headway.SweepResult) -> None:
    assert alive() == 2
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


def test_a_reproduction_on_two_nodes_is_the_commands(two_nodes: Any, command: Command, tmp_path: Path) -> None:
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


def test_tuning_is_the_same_on_two_nodes(two_nodes: Any) -> None:
    def tuned(**more: Any) -> Any:
        space = {"q": ["2us", "50us"]}
        return headway.tune("shinjuku-sq", space, "class.short.slowdown.p99<=3", trials=4, replications=2, requests=5_000, workers=4, **more)

    assert tuned(on="ray").frame().equals(tuned().frame())


class Killer:
    """Kills a worker after two points, and the second node after a third of them: told as progress."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.killed: list[str] = []

    def __call__(self, done: int, total: int) -> None:
        if done >= 2 and not self.killed:
            self.killed.append("worker")
            os.kill(worker_of_a_task(), signal.SIGKILL)
        elif done >= total // 3 and self.killed == ["worker"]:
            self.killed.append("node")
            self.cluster.remove_node(self.cluster.second, allow_graceful=False)

    def check(self) -> None:
        assert self.killed == ["worker", "node"]
        wait_for_nodes(1)


def test_a_killed_worker_and_a_killed_node_change_nothing(two_nodes: Any, alone: headway.SweepResult, tmp_path: Path) -> None:
    killer = Killer(two_nodes)
    result = swept(on="ray", progress=killer, store=tmp_path)
    killer.check()
    assert result.frame().equals(alone.frame())
    assert len(list(tmp_path.iterdir())) == len(alone.points)


def test_a_reproduction_outlives_a_killed_worker_and_a_killed_node(two_nodes: Any, command: Command, tmp_path: Path) -> None:
    experiment = tmp_path / "thirty.toml"
    experiment.write_text("""
        title = "Thirty points"
        paper = "none"
        figure = "Figure 0"
        testbed = "None."
        server = { workload = "high-bimodal", workers = 6, requests = 60000, seed = 3 }
        system = [{ name = "c-fcfs", policy = "c-fcfs" }, { name = "darc", policy = "darc,profile=known" }]

        [[measure]]
        kind = "sweep"
        loads = [0.30, 0.33, 0.36, 0.39, 0.42, 0.45, 0.48, 0.51, 0.54, 0.57, 0.60, 0.63, 0.66, 0.69, 0.72]
        show = ["overall.slowdown.p999", "class.short.latency.p99"]

        [[claim]]
        says = "darc is below c-fcfs"
        of = "darc: overall.slowdown.p999"
        over = "c-fcfs: overall.slowdown.p999"
        at = 0.72
        sign = "negative"
    """)
    killer = Killer(two_nodes)
    result = headway.reproduce(experiment, on="ray", progress=killer, store=tmp_path / "points")
    killer.check()
    assert len(result.frame()) == 2 * 15 * 2
    assert result.frame().equals(headway.reproduce(experiment, threads=1).frame())
    assert json.loads(result.json()) == command.json("reproduce", str(experiment))
    assert len(list((tmp_path / "points").iterdir())) == 30


def worker_of_a_task() -> int:
    """The process of a worker that runs tasks, of the cluster that began here: no other's."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if " ".join(process.cmdline()).startswith("ray::task"):
                    return process.pid
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
