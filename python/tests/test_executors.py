"""Points run anywhere to the same frame, and a sweep that was cut off goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import headway
from headway import HeadwayError
from headway.executors import task_size

LOADS = [0.3, 0.5, 0.7]


def swept(**more: Any) -> headway.SweepResult:
    return headway.sweep(["c-fcfs", "darc"], loads=LOADS, requests=10_000, replications=2, workers=6, **more)


@pytest.fixture(scope="module")
def alone() -> headway.SweepResult:
    return swept(threads=1)


def test_threads_processes_and_an_executor_give_equal_frames(alone: headway.SweepResult) -> None:
    with ThreadPoolExecutor(3) as pool:
        for on in ("threads", "processes", pool):
            result = swept(on=on, threads=2)
            assert result.frame().equals(alone.frame()), on
            assert result.json() == alone.json(), on


def test_a_client_of_dask_gives_an_equal_frame(alone: headway.SweepResult) -> None:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert swept(on=client).frame().equals(alone.frame())
        searched = headway.capacity(["c-fcfs"], requests=20_000, tolerance=0.05, on=client)
    assert searched == headway.capacity(["c-fcfs"], requests=20_000, tolerance=0.05)


def cut_after(points: int) -> Callable[[int, int], None]:
    def progress(done: int, _: int) -> None:
        if done >= points:
            raise KeyboardInterrupt

    return progress


def test_a_sweep_that_was_cut_off_goes_on(alone: headway.SweepResult, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        swept(store=tmp_path, progress=cut_after(2), threads=1)
    kept = sorted(tmp_path.glob("*.parquet"))
    assert 2 <= len(kept) < 6
    written = {path: path.stat().st_mtime_ns for path in kept}
    told: list[int] = []
    result = swept(store=tmp_path, progress=lambda done, _: told.append(done))
    assert told[0] == len(kept)
    assert result.frame().equals(alone.frame())
    assert len(list(tmp_path.iterdir())) == 6
    assert {path: path.stat().st_mtime_ns for path in kept} == written
    # Each file is a table for others, too.
    import pandas as pd

    table = pd.concat(pd.read_parquet(path) for path in tmp_path.iterdir())
    assert sorted(table["latency_us_p99"]) == sorted(alone.frame()["latency_us_p99"])


def test_points_of_other_inputs_are_not_taken(tmp_path: Path) -> None:
    costs = tmp_path / "costs.json"
    folder = tmp_path / "points"
    costs.write_text(json.dumps({"overhead_ns": 100}))

    def one(**more: Any) -> float:
        given: dict[str, Any] = {"requests": 5_000, "seed": 1, "costs": costs, "store": folder, **more}
        result = headway.sweep("darc", given.pop("workload", "tpcc"), loads=[0.5], **given)
        return result.points[0].runs[0].overall.latency_us.mean

    first = one()
    assert one() == first
    assert len(list(folder.iterdir())) == 1
    others = [one(seed=2), one(workload="rocksdb"), one(requests=6_000), one(network="5us"), one(workers=3)]
    costs.write_text(json.dumps({"overhead_ns": 900}))
    others.append(one())
    assert len({first, *others}) == len(others) + 1


def test_a_file_that_is_no_point_is_refused(tmp_path: Path) -> None:
    headway.sweep("darc", loads=[0.5], requests=5_000, store=tmp_path)
    (path,) = tmp_path.iterdir()
    path.write_bytes(b"nothing")
    with pytest.raises(HeadwayError, match="remove it"):
        headway.sweep("darc", loads=[0.5], requests=5_000, store=tmp_path)


def test_a_mistake_is_said_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="did you mean 'darc'"):
        headway.sweep(["c-fcfs", "drac"], loads=LOADS, requests=10**9, store=tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(HeadwayError, match="slo: "):
        headway.sweep("darc", loads=LOADS, requests=10**10, slo="class.nonesuch.slowdown.p99<=3")
    with pytest.raises(HeadwayError, match="neither 'threads'"):
        headway.sweep("darc", on="somewhere")


def test_tasks_last_as_long_as_they_should() -> None:
    # Nothing is known of the first; then points of 10 ms are put together, but never so many that a slot gets none.
    assert task_size(0, 0.0, 1_000, 2) == 1
    assert task_size(4, 0.04, 1_000, 2) == 200
    assert task_size(4, 0.04, 100, 8) == 13
    assert task_size(4, 400.0, 100, 8) == 1


def test_a_process_that_dies_ends_the_sweep_with_its_error() -> None:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool
    from multiprocessing import get_context

    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        pool.submit(os.getpid).result()
        for process in pool._processes.values():
            process.kill()
        with pytest.raises(BrokenProcessPool):
            swept(on=pool)
