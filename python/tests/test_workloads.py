"""Workloads of names, texts, dicts, arrays and strangers' tables."""

from __future__ import annotations

import pickle
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_command import trace_file

import headway
from headway import HeadwayError

TWO = {
    "name": "two",
    "class": [
        {"name": "GET", "share": 0.9, "service": {"dist": "exponential", "mean": "2us"}},
        {"name": "SCAN", "share": 0.1, "service": {"dist": "constant", "mean": "100us"}, "slo": "latency.p99<=1ms"},
    ],
}


def figures(workload: object) -> dict[str, object]:
    run = headway.simulate("darc", workload, workers=4, requests=5_000).run  # type: ignore[arg-type]
    return {key: run.details[key] for key in ("overall", "classes", "load", "requests")}


def test_a_dict_is_the_workload_file_of_its_shape(tmp_path: Path) -> None:
    text = headway.workload(TWO).to_toml()
    file = tmp_path / "two.toml"
    file.write_text(text)
    assert figures(TWO) == figures(text) == figures(file) == figures(str(file))
    assert headway.workload(TWO).classes == ["GET", "SCAN"]


def test_arrays_are_the_trace_of_the_file(tmp_path: Path) -> None:
    path = trace_file(tmp_path)
    frame = pd.read_csv(path)
    columns = {"time": "time", "class": "class", "service": "service"}
    strange = frame.rename(columns={"time": "t", "class": "op", "service": "cost"})
    parquet = tmp_path / "strange.parquet"
    strange.to_parquet(parquet)
    names = {"time": "t", "class": "op", "service": "cost"}
    ns = (frame["time"].to_numpy() * 1e3).round().astype(np.uint64)
    codes, classes = pd.factorize(frame["class"])
    service_ns = (frame["service"].to_numpy() * 1e3).round().astype(np.uint64)
    as_given = [
        headway.workload(path, columns=columns),
        headway.workload(parquet, columns=names),
        headway.workload(strange, columns=names),
        headway.workload(arrivals=frame["time"], classes=frame["class"], service=frame["service"]),
        headway.workload(arrivals=ns, classes=codes, class_names=list(classes), service=service_ns, unit="ns"),
    ]
    for workload in as_given:
        assert figures(workload) == figures(str(path)), workload


@pytest.mark.parametrize("make", [lambda: "tpcc", lambda: TWO, lambda: array_trace(100)])
def test_a_workload_is_the_same_in_another_process(make: object) -> None:
    workload = headway.workload(make())  # type: ignore[operator]
    assert figures(pickle.loads(pickle.dumps(workload))) == figures(workload)


def array_trace(rows: int) -> headway.Workload:
    at_ns = np.arange(rows, dtype=np.uint64) * np.uint64(1_000)
    service_ns = np.full(rows, 500, dtype=np.uint64)
    classes = (np.arange(rows) % 2).astype(np.uint16)
    return headway.workload(arrivals=at_ns, classes=classes, class_names=["a", "b"], service=service_ns, unit="ns")


def test_ten_million_rows_are_taken_without_a_text() -> None:
    begun = time.perf_counter()
    workload = array_trace(10_000_000)
    run = headway.simulate("c-fcfs", workload, workers=2, requests=100_000).run
    # No assertion of the time: a line for who measures.
    print(f"10^7 rows in {time.perf_counter() - begun:.1f} s")
    assert workload.requests == 10_000_000
    assert (run.requests, run["overall"].slowdown.p50) == (100_000, 1.0)


@pytest.mark.parametrize(
    ("call", "part"),
    [
        ({"arrivals": [3.0, 1.0], "service": [1, 1]}, "arrays:2: time: "),
        ({"arrivals": [1.0, 2.0], "service": [1, 0]}, "arrays:2: service: is zero"),
        ({"arrivals": [1.0, 2.0], "service": [1]}, "differ in length"),
        ({"arrivals": [1.0, np.nan], "service": [1, 1]}, "row 2 is nan"),
        ({"arrivals": [-1.0, 2.0], "service": [1, 1]}, "row 1 is -1.0"),
        ({"arrivals": [[1.0]], "service": [1]}, "shape (n,)"),
        ({"arrivals": ["a"], "service": [1]}, "must be numbers"),
        ({"arrivals": [], "service": []}, "at least one record"),
        ({"arrivals": [1e300], "service": [1]}, "292 years"),
        ({"arrivals": [1.0], "service": [1], "classes": [3], "class_names": ["a"]}, "the index of a class"),
        ({"arrivals": [1.0], "service": [1], "classes": [None]}, "row 1 has no class"),
        ({"arrivals": [1.0], "service": [1], "unit": "h"}, "none of ns"),
        ({"arrivals": [1.0]}, "service times are needed"),
        ({"source": {"class": [{"name": "a", "shar": 1.0}]}}, "did you mean `share`"),
        ({"source": {"class": object()}}, "has no place"),
        ({"source": 3}, "is no name"),
        ({"source": "tpcc", "skip_zero": True}, "no trace or log"),
        ({"source": "/nonesuch.csv", "columns": {"time": "t", "service": "s"}}, "cannot read"),
        ({"source": pd.DataFrame({"t": [1]}), "columns": {"time": "t", "service": "s"}}, "no column 's'"),
        ({"source": pd.DataFrame({"t": [1]}), "columns": {"tme": "t"}}, "name the columns"),
    ],
)
def test_a_mistake_is_named_with_its_place(call: dict[str, object], part: str) -> None:
    with pytest.raises(HeadwayError) as refused:
        headway.workload(**call)  # type: ignore[arg-type]
    assert part in str(refused.value)


def test_a_trace_has_the_load_that_it_has() -> None:
    with pytest.raises(HeadwayError, match="load/rate: a trace is replayed at the times it recorded"):
        headway.simulate("darc", array_trace(10), load=0.5)
    with pytest.raises(HeadwayError, match="whatever the load"):
        headway.sweep("darc", array_trace(10))
