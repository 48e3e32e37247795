"""Arguments drawn at random: whatever is wrong with them is an exception of Python, and never a panic."""

from __future__ import annotations

import contextlib
import string
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import headway

WORDS = [
    "",
    "x",
    "5us",
    "0us",
    "-1",
    "1e999",
    "nan",
    "inf",
    "20ms:-3",
    "3:+9",
    "darc",
    "c-fcfs",
    "ps",
    "pallas",
    "shenango",
    "\0",
    "Ω",
    "0.5",
    "7",
]
POLICIES = [
    f"{name}{more}"
    for name in ("darc", "concord", "pallas", "racksched,inner=darc", "ps", "shenango", "drac", "")
    for more in ("", ",", ",q=5us", ",delta=-1", ",=")
]
ANY = st.one_of(
    st.sampled_from(WORDS),
    st.text(max_size=8),
    st.integers(-(2**70), 2**70),
    st.integers(-2, 300),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    st.none(),
    st.lists(st.sampled_from(WORDS), max_size=3),
)
#: A number of runs, or of what runs at once: few, or none that is right.
FEW = st.one_of(st.integers(-2, 3), st.sampled_from([*WORDS, None, True, 0.5, -(2**70)]))
#: Few requests and small systems, so that what is right runs quickly.
SMALL = {"requests": st.one_of(ANY, st.integers(1, 300)).filter(lambda it: not is_many(it))}
NAMES = [
    "workers",
    "cores",
    "servers",
    "racks",
    "seed",
    "costs",
    "dispatch_cost",
    "network",
    "queue_limit",
    "begun_at_most",
    "resume",
    "classifier",
    "unknown",
    "core_changes",
    "wrkers",
]


def is_many(given: Any) -> bool:
    """Whether this many requests would take long."""
    try:
        return float(str(given).strip().rstrip("kMG")) > 300 or str(given).strip()[-1:] in "kMG"
    except ValueError:
        return False


def refuses_or_runs(call: Any, *others: type[Exception]) -> None:
    """What is wrong is the package's exception with its sentence: no fault, no panic, and nothing of a library underneath."""
    with contextlib.suppress(headway.HeadwayError, *others):
        call()


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    policy=st.one_of(st.sampled_from(POLICIES), ANY),
    workload=st.one_of(st.sampled_from(["high-bimodal", "tpcc", "nonesuch", ""]), ANY),
    at=st.one_of(st.fixed_dictionaries({}), st.fixed_dictionaries({"load": ANY}), st.fixed_dictionaries({"rate": ANY})),
    more=st.dictionaries(st.sampled_from(NAMES), ANY, max_size=3),
    length=st.fixed_dictionaries(SMALL),
    recording=st.fixed_dictionaries({}, optional={"timeline": st.sampled_from(["1s", "x"]), "schedule": st.booleans(), "window": ANY}),
)
def test_simulate(policy: Any, workload: Any, at: Any, more: Any, length: Any, recording: Any) -> None:
    if length["requests"] is None:
        length = {"requests": 100}
    refuses_or_runs(lambda: headway.simulate(policy, workload, **at, **length, **recording, **more))


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    policies=st.one_of(st.lists(st.sampled_from(POLICIES), max_size=2), ANY),
    loads=st.one_of(
        st.lists(st.one_of(st.floats(), st.floats(0.1, 0.9)), max_size=3),
        st.sampled_from(["0.1..0.9:0.4", "1..0:0.1", "0.1..0.2", "..", "0.1..100:0.00001", ","]),
        ANY,
    ),
    replicated=st.fixed_dictionaries(
        {},
        optional={
            "replications": st.one_of(FEW, st.just(2**40)),
            "threads": FEW,
            "until_ci": ANY,
            "ci_of": ANY,
            "slo": ANY,
        },
    ),
)
def test_sweep(policies: Any, loads: Any, replicated: Any) -> None:
    if replicated.get("until_ci") is not None:
        replicated = {**replicated, "replications": 2}
    refuses_or_runs(lambda: headway.sweep(policies, loads=loads, requests=100, workers=2, **{"threads": 1, **replicated}))


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    slo=st.one_of(
        st.sampled_from(["class.*.slowdown.p99<=10", "overall.latency.p50<=5us", "x<=1", "class.short.slowdown.p99<=10"]),
        ANY,
    ),
    tolerance=st.one_of(st.floats(), st.just(0.3), ANY),
    more=st.dictionaries(st.sampled_from(NAMES), ANY, max_size=1),
    replications=st.one_of(st.just(2), FEW),
)
def test_capacity_and_plan(slo: Any, tolerance: Any, more: Any, replications: Any) -> None:
    refuses_or_runs(lambda: headway.capacity("c-fcfs", slo=slo, tolerance=tolerance, requests=200, threads=1, **more))
    refuses_or_runs(lambda: headway.plan(slo=slo, policies=["c-fcfs"], requests=200, replications=replications, threads=1, **more))


KEYS = st.sampled_from(["name", "class", "share", "service", "dist", "mean", "arrivals", "process", "phase", "slo", "x"])
TREE = st.recursive(ANY, lambda inner: st.one_of(st.dictionaries(KEYS, inner, max_size=4), st.lists(inner, max_size=3)), max_leaves=12)


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(source=st.one_of(st.dictionaries(KEYS, TREE, max_size=4), TREE, st.text(string.printable, max_size=60)))
def test_workload(source: Any) -> None:
    refuses_or_runs(lambda: headway.workload(source).to_toml())


@settings(max_examples=250, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    arrivals=st.one_of(st.lists(st.floats(), max_size=4), st.lists(st.integers(-1, 2**65), max_size=4), ANY),
    service=st.one_of(st.lists(st.floats(), max_size=4), st.lists(st.integers(0, 9), max_size=4), ANY),
    classes=st.one_of(st.none(), st.lists(st.one_of(st.integers(-1, 9), st.text(max_size=2), st.none()), max_size=4)),
    class_names=st.one_of(st.none(), st.lists(st.text(max_size=2), max_size=3)),
    unit=st.sampled_from(["ns", "us", "s", "h"]),
)
def test_arrays(arrivals: Any, service: Any, classes: Any, class_names: Any, unit: Any) -> None:
    def made() -> None:
        workload = headway.workload(arrivals=arrivals, service=service, classes=classes, class_names=class_names, unit=unit)
        headway.simulate("darc", workload, workers=2)
        headway.fit(workload)

    refuses_or_runs(made)


EXPERIMENT = {
    "title": '"t"',
    "paper": '"p"',
    "figure": '"f"',
    "testbed": '"none"',
    "server": "{ workers = 2, requests = 200 }",
    "system": '[{ name = "a", policy = "c-fcfs" }]',
    "measure": '[{ kind = "sweep", loads = [0.5], show = ["overall.slowdown.p99"] }]',
    "claim": '[{ says = "s", of = "a: overall.slowdown.p99", at_most = 9.0 }]',
}
WRONG = [
    "3",
    '"x"',
    "[]",
    "{}",
    "{ workers = 0 }",
    "{ workers = 1000, requests = 9 }",
    '{ workload = "nonesuch" }',
    '[{ name = "a", policy = "drac" }]',
    '[{ kind = "sweep" }]',
    '[{ kind = "sweep", loads = [-1.0, nan], show = ["x"] }]',
    '[{ kind = "capacity", slo = "x<=1" }]',
    '[{ kind = "host", figure = "interval", at = ["x"], duration_ms = 1 }]',
    '[{ says = "s", of = "b: rps", paper = nan }]',
    "nan",
]


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    name=st.one_of(st.sampled_from(["all", "persephone", "concord-fig9-live", "x.toml", ".toml", "/", "persephone-fig1.toml"]), ANY),
    changed=st.dictionaries(st.sampled_from(sorted(EXPERIMENT)), st.one_of(st.none(), st.sampled_from(WRONG)), max_size=3),
    more=st.fixed_dictionaries({}, optional={"on": st.one_of(st.text(max_size=3), st.integers()), "fast": ANY}),
)
def test_reproduce(tmp_path_factory: Any, name: Any, changed: Any, more: Any) -> None:
    refuses_or_runs(lambda: headway.reproduce(name, **more))
    file = tmp_path_factory.getbasetemp() / "drawn.toml"
    written = {**EXPERIMENT, **changed}
    file.write_text("\n".join(f"{key} = {value}" for key, value in written.items() if value is not None))
    refuses_or_runs(lambda: headway.reproduce(file, threads=1, **more))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    policy=st.one_of(st.sampled_from(POLICIES), ANY),
    space=st.one_of(
        st.dictionaries(st.sampled_from(["delta", "q", "x"]), ANY, max_size=2), st.lists(st.sampled_from(["delta", "q"]), max_size=2), ANY
    ),
    slo=st.one_of(st.just("overall.slowdown.p99<=9"), ANY),
    numbers=st.fixed_dictionaries({}, optional={name: FEW for name in ("trials", "replications", "at_once", "threads", "seed")}),
)
def test_tune(policy: Any, space: Any, slo: Any, numbers: Any) -> None:
    given = {"trials": 1, "replications": 2, "threads": 1, **numbers}
    refuses_or_runs(lambda: headway.tune(policy, space, slo, requests=100, workers=2, **given))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    decisions=st.lists(st.one_of(ANY, st.tuples(st.integers(-1, 4), st.integers(-1, 9))), min_size=1, max_size=4),
    about=st.fixed_dictionaries({}, optional={"depth": ANY, "steers": st.booleans(), "notif_ns": ANY, "shared_queues": st.integers(-1, 3)}),
)
def test_a_policys_answers(decisions: Any, about: Any) -> None:
    class Drawn(headway.Ingress):
        turn = 0

        def arrived(self, now_ns: int, job: Any) -> Any:
            return decisions[0]

        def poll(self, now_ns: int) -> Any:
            self.turn += 1
            return decisions[self.turn % len(decisions)]

    class Policy(headway.ServerPolicy):
        def ingress(self, shape: Any) -> headway.Ingress:
            return Drawn()

    for key, value in about.items():
        setattr(Policy, key, value)
    # What a class of the caller's answers has Python's own exceptions for a wrong type.
    refuses_or_runs(lambda: headway.simulate(Policy(), requests=100, workers=3), TypeError, OverflowError)
    refuses_or_runs(lambda: headway.check_policy(Policy(), requests=50, seeds=1), TypeError, OverflowError)
