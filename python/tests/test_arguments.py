"""Arguments are heeded, or refused: none is taken in part."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headway
from headway import HeadwayError
from headway._native import Shape
from headway.store import Store


def test_each_policy_of_a_sweep_has_all_loads_of_an_iterator() -> None:
    points = headway.sweep(["c-fcfs", "darc"], loads=iter([0.3, 0.6]), requests=2_000, workers=4).points
    assert [(point.policy, point.load) for point in points] == [("c-fcfs", 0.3), ("c-fcfs", 0.6), ("darc", 0.3), ("darc", 0.6)]


def test_each_run_of_a_search_has_all_core_changes_of_an_iterator() -> None:
    pytest.importorskip("optuna")

    def tuned(changes: Any) -> list[Any]:
        found = headway.tune(
            "shinjuku-sq", {"q": ["2us", "50us"]}, load=0.5, trials=2, replications=2, requests=2_000, workers=4, core_changes=changes
        )
        return [trial["uses"] for trial in found.trials]

    assert tuned(iter(["1ms:-0"])) == tuned(["1ms:-0"]) != tuned([])


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.uint8, np.int16])
def test_times_are_computed_in_whole_numbers_whatever_the_arrays_type(kind: Any) -> None:
    at = np.array([100, 110, 120], dtype=kind)
    service = np.array([1, 2, 3], dtype=kind)
    exact = headway.workload(arrivals=[100_000_000, 110_000_000, 120_000_000], service=[1_000_000, 2_000_000, 3_000_000], unit="ns")
    assert headway.workload(arrivals=at, service=service, unit="ms").to_toml() == exact.to_toml()
    assert figures(headway.workload(arrivals=at, service=service, unit="ms")) == figures(exact)


def figures(workload: headway.Workload) -> Any:
    run = headway.simulate("c-fcfs", workload, workers=2).run
    return run.details["overall"], [one.count for one in run.classes]


def test_a_workload_keeps_no_array_of_its_caller() -> None:
    at_ns, service_ns = np.arange(1, 21, dtype=np.uint64) * np.uint64(1_000), np.full(20, 500, dtype=np.uint64)
    classes = np.arange(20, dtype=np.uint16) % np.uint16(2)
    workload = headway.workload(arrivals=at_ns, service=service_ns, classes=classes, class_names=["a", "b"], unit="ns")
    before = figures(workload)
    service_ns[:] = 9_000
    classes[:] = 0
    assert figures(pickle.loads(pickle.dumps(workload))) == before == figures(workload)


def test_arrays_that_are_not_aligned_are_taken() -> None:
    def shifted(values: list[int], kind: Any) -> Any:
        array = np.frombuffer(b"-" + np.array(values, dtype=kind).tobytes(), dtype=kind, offset=1)
        assert not array.flags.aligned
        return array

    at, took, classes = shifted([1_000, 2_000, 3_000], np.uint64), shifted([500, 600, 700], np.uint64), shifted([0, 1, 0], np.uint16)
    strange = headway.workload(arrivals=at, service=took, classes=classes, class_names=["a", "b"], unit="ns")
    plain = headway.workload(arrivals=[1_000, 2_000, 3_000], service=[500, 600, 700], classes=[0, 1, 0], class_names=["a", "b"], unit="ns")
    assert figures(strange) == figures(plain)


def test_a_class_of_a_dict_may_have_any_name_that_prints() -> None:
    def named(name: str) -> dict[str, Any]:
        return {"class": [{"name": name, "share": 1.0, "service": {"dist": "constant", "mean": "2us"}}]}

    name = "".join(chr(code) for code in range(32, 0x2000) if chr(code).isprintable())
    assert headway.workload(named(name)).classes == [name]
    for control in "\n\x7f\x85":
        with pytest.raises(HeadwayError, match="a name without control characters"):
            headway.workload(named(f"a{control}"))


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ({"source": "tpcc", "name": "x"}, "name: a name or a file does not take it"),
        ({"source": "trace.csv", "unit": "ns"}, "unit: a name or a file does not take it"),
        ({"source": "tpcc", "classes": [1]}, "classes: a name or a file does not take it"),
        ({"source": {"class": []}, "skip_zero": True}, "skip_zero: a workload file's content does not take it; it takes name"),
        ({"source": headway.workload("tpcc"), "name": "x"}, "name: a workload that is made does not take it; it takes no options"),
        ({"source": "a.csv", "columns": {"time": "t", "service": "s"}, "trace_format": "csv"}, "trace_format: a table does not take it"),
        ({"arrivals": [1.0], "service": [1.0], "skip_zero": True}, "skip_zero: a workload of arrays does not take it"),
        ({"arrivals": [1.0], "service": [1.0], "class_names": ["a"]}, "class_names: give classes too"),
        ({"arrivals": [1.0], "service": [1.0], "classes": ["a"], "class_names": ["b"]}, "these are names already"),
        ({"source": "tpcc", "arrivals": [1.0], "service": [1.0]}, "a source or arrays, not both"),
        ({"arrivals": [1.0, [2.0]], "service": [1.0, 1.0]}, "arrivals: is no array"),
        ({"arrivals": [1.0, 2.0], "service": [1.0, 1.0], "classes": ["a", ["b"]]}, "classes: is no array"),
    ],
)
def test_an_option_of_another_kind_of_source_is_refused(call: dict[str, Any], part: str) -> None:
    with pytest.raises(HeadwayError) as refused:
        headway.workload(**call)
    assert part in str(refused.value)


def test_threads_that_share_a_store_keep_the_same_points(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    store = Store(tmp_path)
    faults: list[BaseException] = []
    begin = threading.Barrier(8)

    def keep() -> None:
        begin.wait()
        try:
            for point in range(20):
                store.put(point, f"answer {point}", [{"point": point}])
        except BaseException as error:
            faults.append(error)

    threads = [threading.Thread(target=keep) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert [store.get(point) for point in range(20)] == [f"answer {point}" for point in range(20)]
    assert not list(tmp_path.glob("*.partial"))


class Nothing(headway.ServerPolicy):
    name = "nothing"

    def ingress(self, shape: Shape) -> None:
        return None


@pytest.mark.parametrize(
    ("call", "part"),
    [
        (lambda: headway.simulate(Nothing(), apps=["kv:batch"]), "apps: only a host has that"),
        (lambda: headway.simulate(Nothing(), threads_per_core=2), "threads_per_core: only a host has that"),
        (lambda: headway.simulate(Nothing(), host_costs="leave=1us"), "host_costs: only a host has that"),
        (lambda: headway.plan(cores=257), "cores: must be 1 to 256"),
        (lambda: headway.plan(cores=2**70), "cores: must be 1 to 256"),
        (lambda: headway.plan(threads=2**70), "threads: must be 1 to 1024"),
        (lambda: headway.sweep("darc", threads=2**70), "threads: must be 1 to 1024"),
        (lambda: headway.sweep("darc", loads=[0.5], requests=1_000, store=5), "store: 5 is no folder"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(call: Any, part: str) -> None:
    with pytest.raises(HeadwayError) as refused:
        call()
    assert part in str(refused.value)


@pytest.mark.parametrize(
    ("space", "part"),
    [
        ({"q": (1, 2, 3)}, "q is searched in a list of values or from a least to a most"),
        ({"q": "5us"}, "q is searched in a list of values or from a least to a most"),
        ({"q": []}, "q has no values to try"),
        ({"q": (1, float("inf"))}, "q is searched between two numbers"),
        ([5], "space: 'shinjuku-sq' has no parameter '5'"),
        (5, "space: 5 is no list"),
    ],
)
def test_a_space_that_is_none_is_refused(space: Any, part: str) -> None:
    pytest.importorskip("optuna")
    with pytest.raises(HeadwayError) as refused:
        headway.tune("shinjuku-sq", space, requests=1_000)
    assert part in str(refused.value)


def test_a_search_takes_the_seeds_that_a_run_takes() -> None:
    pytest.importorskip("optuna")
    common: dict[str, Any] = {"trials": 1, "replications": 2, "requests": 1_000, "workers": 2}
    assert len(headway.tune("shinjuku-sq", ["q"], seed=2**64 - 2, **common).trials) == 1
    with pytest.raises(HeadwayError, match="seed: must be 0 to"):
        headway.tune("shinjuku-sq", ["q"], seed=2**64 - 1, **common)


def test_a_hosts_run_says_that_it_has_no_curves() -> None:
    result = headway.simulate("shenango", workers=4, load=0.4, requests=2_000)
    for frame in (result.curves, result.timeline, result.schedule):
        with pytest.raises(HeadwayError, match="a host's run records only its figures"):
            frame()


def test_intervals_of_a_timeline_that_memory_does_not_hold_are_refused() -> None:
    with pytest.raises(HeadwayError, match=r"the timeline's interval must be 500us or longer.* not 1us") as refused:
        headway.simulate("c-fcfs", requests=2_000_000, timeline="1us", workers=100)
    assert "histogram" in str(refused.value)
    assert len(headway.simulate("c-fcfs", requests=20_000, timeline="1ms").timeline()) > 10
