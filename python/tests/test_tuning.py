"""Parameters are found by Optuna within the registry's ranges; the result depends on seeds alone."""

from __future__ import annotations

from typing import Any

import pytest

import headway
from headway import HeadwayError

pytest.importorskip("optuna")
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
