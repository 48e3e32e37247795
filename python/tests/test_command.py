"""The same seed gives the command's figures, to the bit, and a mistake its sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import Command

import headway
from headway import HeadwayError

LENGTH = ("--requests", "20k", "--seed", "7")


@pytest.mark.parametrize(
    "policy",
    [
        "darc,delta=3",
        "c-fcfs",
        "concord,q=5us",
        "tiny-quanta",
        "synergy",
        "ps",
        "racksched,inner=darc",
        "pallas",
    ],
)
def test_a_run_is_the_commands(command: Command, policy: str) -> None:
    servers = 3 if policy.startswith(("racksched", "pallas")) else 1
    flags = ("--policy", policy, "--workload", "tpcc", "--load", "0.7", "--workers", "6", "--servers", str(servers))
    ours = headway.simulate(policy, "tpcc", load=0.7, workers=6, servers=servers, requests="20k", seed=7)
    assert ours.run.details == command.json("sim", *flags, *LENGTH)
    other = headway.simulate(policy, "tpcc", load=0.7, workers=6, servers=servers, requests="20k", seed=8)
    assert other.run.details["overall"] != ours.run.details["overall"]


def test_circumstances_are_the_commands(command: Command) -> None:
    flags = ("--policy", "jbsq", "--cores", "8", "--rate", "90k", "--network", "10us", "--dispatch-cost", "200ns")
    more = ("--queue-limit", "40", "--unknown", "0.1", "--core-change", "5ms:-1", "--core-change", "9ms:+1")
    ours = headway.simulate(
        "jbsq", rate=90_000, cores=8, network="10us", dispatch_cost="200ns", queue_limit=40, unknown=0.1,
        core_changes=["5ms:-1", "9ms:+1"], requests=20_000, seed=7,
    )  # fmt: skip
    assert ours.run.details == command.json("sim", *flags, *more, *LENGTH)


def test_a_host_is_the_commands(command: Command) -> None:
    apps = ["kv:workload=fixed-1us,rate=1M,cores=4", "b:batch"]
    flags = ("--policy", "shenango", "--app", apps[0], "--app", apps[1], "--workers", "8", "--host-costs", "wake=2us")
    ours = headway.simulate("shenango", apps=apps, workers=8, host_costs="wake=2us", requests="20k", seed=7)
    assert ours.run.details == command.json("sim", *flags, *LENGTH)
    assert list(ours.apps()["name"]) == ["kv", "b"]


def test_a_sweep_is_the_commands(command: Command) -> None:
    flags = ("--policy", "c-fcfs", "--policy", "darc", "--loads", "0.3..0.7:0.2")
    for ours, theirs in [
        ({"replications": 3}, ("--replications", "3")),
        ({"until_ci": "8%", "replications": 9}, ("--until-ci", "8%", "--replications", "9")),
        ({}, ()),
    ]:
        result = headway.sweep(["c-fcfs", "darc"], loads="0.3..0.7:0.2", requests="20k", seed=7, **ours)
        assert json.loads(result.json()) == command.json("sweep", *flags, *theirs, *LENGTH)


def test_a_capacity_is_the_commands(command: Command) -> None:
    ours = headway.capacity(["c-fcfs", "darc"], requests="50k", tolerance=0.02, slo="class.*.slowdown.p99<=10")
    flags = ("--requests", "50k", "--tolerance", "0.02", "--slo", "class.*.slowdown.p99<=10")
    assert json.loads(ours.json()) == command.json("capacity", *flags)
    assert ours.frame()["load"].between(0.02, 1).all()


def test_a_plan_is_the_commands(command: Command, tmp_path: Path) -> None:
    policies = ["darc", "c-fcfs", "concord"]
    flags = [flag for policy in policies for flag in ("--policy", policy)]
    ours = headway.plan("tpcc", policies=policies, load=0.6, cores=7, requests="20k", replications=2)
    length = ("--requests", "20k", "--replications", "2")
    theirs = command.json("plan", "--workload", "tpcc", "--load", "0.6", "--cores", "7", *flags, *length)
    assert ours.details == theirs
    # For a trace: it is fitted, and its own arrivals decide.
    trace = trace_file(tmp_path)
    ours = headway.plan(str(trace), policies=policies[:2], requests="20k", replications=2)
    theirs = command.json("plan", "--trace", str(trace), *flags[:4], *length)
    assert ours.details == theirs


def trace_file(folder: Path, rows: int = 3_000) -> Path:
    rng = np.random.default_rng(1)
    at_us = np.cumsum(rng.exponential(10.0, rows)).round(3)
    service_us = rng.exponential(20.0, rows).round(3) + 0.001
    names = rng.choice(["GET", "SCAN"], rows)
    lines = [f"{at},{name},{service}" for at, name, service in zip(at_us, names, service_us, strict=True)]
    path = folder / "trace.csv"
    path.write_text("time,class,service\n" + "\n".join(lines) + "\n")
    return path


def test_a_fit_is_the_commands(command: Command, tmp_path: Path) -> None:
    trace = trace_file(tmp_path)
    ours = headway.fit(str(trace))
    assert json.loads(ours.json()) == command.json("fit", str(trace))
    # What was fitted is the same workload after it was written and read.
    again = headway.workload(ours.workload.to_toml(), name=f"{ours.workload.name}.toml")
    runs = [headway.simulate("c-fcfs", one, requests=20_000).run.details for one in (ours.workload, again)]
    assert runs[0] == runs[1]


def test_the_policies_are_the_commands(command: Command) -> None:
    theirs = command.json("policies")["policies"]
    assert [one["name"] for one in theirs] == [one.name for one in headway.policies()]
    darc = headway.policies().named("darc")
    assert {param.key for param in darc.params} >= {"delta", "window"}
    assert len(headway.policies("rack").frame()) == sum(one["level"] == "rack" for one in theirs)


@pytest.mark.parametrize(
    ("call", "flags"),
    [
        ({"policy": "drac"}, ("sim", "--policy", "drac")),
        ({"policy": "darc,detla=3"}, ("sim", "--policy", "darc,detla=3")),
        ({"workload": "hgh-bimodal"}, ("sim", "--workload", "hgh-bimodal")),
        ({"policy": "pallas-normal"}, ("sim", "--policy", "pallas-normal")),
        ({"policy": "ps", "dispatch_cost": "1us"}, ("sim", "--policy", "ps", "--dispatch-cost", "1us")),
        ({"policy": "c-fcfs", "servers": 3}, ("sim", "--policy", "c-fcfs", "--servers", "3")),
        ({"policy": "concord", "cores": 1}, ("sim", "--policy", "concord", "--cores", "1")),
        ({"policy": "shenango", "servers": 2}, ("sim", "--policy", "shenango", "--servers", "2")),
        ({"core_changes": ["1ms:-20"]}, ("sim", "--core-change", "1ms:-20")),
        ({"costs": "/nonesuch.json"}, ("sim", "--costs", "/nonesuch.json")),
    ],
)
def test_a_mistake_has_the_commands_sentence(command: Command, call: dict[str, object], flags: tuple[str, ...]) -> None:
    with pytest.raises(HeadwayError) as refused:
        headway.simulate(**call)  # type: ignore[arg-type]
    place, _, sentence = str(refused.value).partition(": ")
    said = command.refusal(*flags)
    assert said in (f"error: --{place.replace('_', '-')}: {sentence}", f"error: {refused.value}")


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_the_commands_sweep_on_python_is_its_own(command: Command, tmp_path: Path, on: str) -> None:
    flags = ["--policy", "c-fcfs", "--policy", "darc,delta=3", "--workload", "tpcc", "--loads", "0.3,0.6", "--workers", "5", "--network", "3us"]
    flags += ["--core-change", "1ms:-2", "--replications", "2", *LENGTH]
    alone = command.json("sweep", *flags)
    assert len(alone["points"]) == 4
    there = ["--on", on, "--python", sys.executable, "--store", str(tmp_path)]
    assert command.json("sweep", *flags, *there) == alone
    assert len(list(tmp_path.glob("*.parquet"))) == 4
    # The points are kept: the next one takes them, in each format.
    shown = command.run("sweep", *flags, *there, "--format", "csv")
    assert shown.stdout == command.run("sweep", *flags, "--format", "csv").stdout
    precise = ["--until-ci", "20%", "--ci-of", "overall.latency.mean", "--rate", "150k", *LENGTH]
    assert command.json("sweep", *precise, *there) == command.json("sweep", *precise)


def test_the_lines_that_replace_pieces_run(command: Command, tmp_path: Path) -> None:
    flags = ["--workload", "tpcc", "--loads", "0.4", "--requests", "20k", "--dispatch-cost", "100ns", "--unknown", "0.1"]
    said = command.run("sweep", *flags, "--shard", "1/2").stderr.splitlines()
    (at,) = (number for number, line in enumerate(said) if line.strip() == "import headway")
    lines = " ".join(said[at + 1 :]).split(".frame()")[0]
    sweep = eval(lines.replace('on="ray"', 'on="threads"').replace('"points"', repr(str(tmp_path))), {"headway": headway})
    assert json.loads(sweep.json()) == command.json("sweep", *flags)


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_a_sweep_on_python_is_interrupted_and_goes_on(command: Command, tmp_path: Path, on: str) -> None:
    # The points are done in another order.
    flags = ["sweep", "--policy", "darc", "--policy", "c-fcfs", "--loads", "0.3..0.8:0.01", "--requests", "100k", "--on", on, "--threads", "2"]
    flags += ["--python", sys.executable, "--store", str(tmp_path), "--format", "json"]
    child = subprocess.Popen([command.path, *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=60)
    kept = len(list(tmp_path.glob("*.parquet")))
    assert (1 <= kept < 102, child.returncode) == (True, 130), err
    until = json.loads(out)
    assert until["cut_off"]
    assert len(until["points"]) in (kept, kept + 1)
    again = command.run(*flags)
    assert again.returncode == 0, again.stderr
    whole = json.loads(again.stdout)
    assert len(whole["points"]) == 102
    done = [whole["points"].index(point) for point in until["points"]]
    assert until["runs"] == [whole["runs"][at] for at in done]


@pytest.mark.parametrize("on", ["threads", "processes"])
def test_a_sweep_on_python_runs_no_file_of_the_current_folder(command: Command, tmp_path: Path, on: str) -> None:
    for name in ("json", "grp", "pickle", "socket", "multiprocessing", "headway"):
        (tmp_path / f"{name}.py").write_text(f"open('ran', 'a').write('{name} ')\n")
    flags = ["sweep", "--loads", "0.5", "--requests", "2k", "--on", on, "--python", sys.executable]
    done = subprocess.run([command.path, *flags], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists(), (tmp_path / "ran").read_text()


def test_a_mistake_of_the_package_is_the_commands(command: Command, tmp_path: Path) -> None:
    # A folder that is a file.
    file = tmp_path / "file"
    file.write_text("")
    done = command.run("sweep", "--loads", "0.5", "--requests", "2k", "--on", "threads", "--python", sys.executable, "--store", str(file))
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert "--store: " in done.stderr
    assert "Traceback" not in done.stderr
