"""Parameters are found by Optuna within the registry's ranges; the result depends on seeds alone."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import headway
from headway import HeadwayError, _native

optuna = pytest.importorskip("optuna")
SLO = "class.short.slowdown.p99<=3"


def tuned(**more: Any) -> headway.TuneResult:
    given: dict[str, Any] = {"trials": 8, "replications": 3, "requests": 10_000, "workers": 6, "load": 0.8, **more}
    return headway.tune(given.pop("policy", "shinjuku-sq"), given.pop("space", {"q": ("2us", "200us")}), SLO, **given)


def test_what_is_found_beats_the_default_and_is_repeated() -> None:
    result = tuned(space={"q": ["2us", "50us", "500us"]})
    frame = result.frame()
    assert len(frame) == 8
    assert result.slo_use.estimate == frame[~frame["pruned"]]["slo_use"].min()
    assert result.slo_use.lo <= result.slo_use.estimate <= result.slo_use.hi
    assert result.met == (result.slo_use.estimate <= 1)
    # By hand: each value under the same seeds.
    means = {}
    for q in ("2us", "50us", "500us"):
        runs = [headway.simulate(f"shinjuku-sq,q={q}", load=0.8, workers=6, requests=10_000, seed=seed).run for seed in (1, 2, 3)]
        means[q] = sum(run["short"].slowdown.p99 / 3 if not run.overloaded else 1e9 for run in runs) / 3
    best = min(means, key=lambda q: means[q])
    assert result.policy == f"shinjuku-sq,q={best}"
    assert result.slo_use.estimate == pytest.approx(means[best], rel=1e-12)
    again = tuned(space={"q": ["2us", "50us", "500us"]}, on="processes", threads=2)
    assert again.frame().equals(frame)


def test_ranges_and_units_come_from_the_registry() -> None:
    result = tuned(policy="darc", space=["delta"], trials=5)
    about = next(param for param in headway.policies().named("darc").params if param.key == "delta")
    assert about.range is not None
    deltas = result.frame()["delta"]
    assert deltas[0] == float(about.default)
    assert (deltas >= about.range["min"]).all()


@pytest.mark.parametrize("workload", ["high-bimodal", "tpcc", "leveldb-synergy"])
def test_tuning_finds_what_the_planners_grid_finds_or_better(workload: str) -> None:
    slo, workers = "class.*.slowdown.p99<=20", 4
    common: dict[str, Any] = {"slo": slo, "requests": 10_000, "replications": 3}
    # A worker's core each, and the dispatcher's.
    planned = headway.plan(workload, policies="shinjuku-sq", load=0.6 * workers / (workers + 1), cores=workers + 1, **common)
    assert planned.workers == workers
    found = headway.tune("shinjuku-sq", ["q"], workload=workload, load=0.6, workers=workers, trials=16, **common)

    def uses(policy: str) -> list[float]:
        runs = [headway.simulate(policy, workload, load=0.6, workers=workers, requests=10_000, seed=seed).run for seed in (1, 2, 3)]
        return [_native.slo_use(slo, json.dumps(run.details)) for run in runs]

    grid = headway.Interval(**json.loads(_native.mean_interval(uses(planned.policy))))
    assert found.slo_use.estimate == pytest.approx(sum(uses(found.policy)) / 3, rel=1e-12)
    assert found.slo_use.estimate <= grid.hi
    # And it can tell: the worst of its trials lies beyond the grid's interval.
    assert found.frame()["slo_use"].max() > grid.hi


def test_the_pruner_spares_runs_and_changes_nothing_of_the_best() -> None:
    # A sampler that does not heed results, so that both try the same values.
    given: dict[str, Any] = {"trials": 20, "replications": 5, "workers": 6}
    whole, pruned = (tuned(**given, sampler=optuna.samplers.RandomSampler(seed=3), pruner=pruner) for pruner in (optuna.pruners.NopPruner(), None))
    assert list(whole.frame()["q"]) == list(pruned.frame()["q"])
    assert (whole.policy, whole.params, whole.slo_use) == (pruned.policy, pruned.params, pruned.slo_use)
    assert not whole.frame()["pruned"].any()
    cut = pruned.frame()["pruned"]
    assert cut.sum() >= 3
    assert pruned.frame()["replications"].sum() < whole.frame()["replications"].sum() == 20 * 5
    # What it ended was ended by its first runs, which are those of the whole search, and none of it would have been the best.
    for all_runs, few in zip(whole.trials, pruned.trials, strict=True):
        assert all_runs["uses"][: few["replications"]] == few["uses"]
    assert (whole.frame()["slo_use"][cut] > whole.slo_use.estimate).all()


def test_an_overloaded_server_uses_all_of_any_slo() -> None:
    result = tuned(space={"q": ["2us", "5us"]}, load=1.6, trials=2)
    assert (result.slo_use.estimate, result.met) == (math.inf, False)
    assert (result.frame()["slo_use"] == math.inf).all()


def test_a_pruner_that_ends_every_trial_is_named() -> None:
    with pytest.raises(HeadwayError, match="pruner: it ended every trial"):
        tuned(pruner=optuna.pruners.ThresholdPruner(upper=0.0), trials=2)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        ({"trials": 0}, "trials: must be 1 or more, not 0"),
        ({"replications": 1}, "replications: must be 2 to 1000, not 1"),
        ({"at_once": 0}, "at_once: must be 1 or more"),
        ({"threads": -1}, "threads: must be 1 to 1024"),
        ({"seed": "x"}, "seed: 'x' is no whole number"),
    ],
)
def test_a_number_out_of_its_range_is_named(more: dict[str, Any], part: str) -> None:
    with pytest.raises(HeadwayError, match=part):
        tuned(**more)


def test_a_mistake_in_the_slo_is_named_before_anything_runs() -> None:
    with pytest.raises(HeadwayError, match="slo: "):
        headway.tune("darc", ["delta"], "class.nonesuch.slowdown.p99<=3", requests=10**10)


@pytest.mark.parametrize(
    ("policy", "space", "part"),
    [
        ("darc", ["detla"], "there are: "),
        ("darc,delta=3", ["delta"], "is fixed by"),
        ("ps", None, "no parameters"),
        ("darc", {"delta": (3, 2)}, "no values from 3"),
        ("drac", None, "no policy is called"),
    ],
)
def test_a_mistake_is_named(policy: str, space: Any, part: str) -> None:
    with pytest.raises(HeadwayError, match=part):
        headway.tune(policy, space, SLO, requests=1_000)
