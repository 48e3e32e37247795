"""Policies × loads, for curves."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headway import _native
from headway._native import Cutoff, HeadwayError
from headway.custom import ServerPolicy, stand_in
from headway.executors import On
from headway.points import Interrupted, Kept, Where, computed, settings_inputs, text_digest
from headway.results import Framed, Interval, Run, as_frame
from headway.settings import (
    Asked,
    LoadTexts,
    Replications,
    listed,
    optional_text,
    text,
    texts,
    whole,
)
from headway.workloads import Workload, workload_source

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from headway.settings import Number, Path, SystemSettings
    from headway.workloads import WorkloadSource


#: Arrivals of a run under a policy in Python, unless it is said otherwise.
OWN_REQUESTS = "100k"


@dataclass(frozen=True)
class SweepPoint:
    """A policy at a load, with all its replications."""

    policy: str
    load: float
    runs: tuple[Run, ...]
    #: By the figure's name in an SLO, ``class.GET.latency.p99``; empty of a single run. Latencies in µs.
    intervals: dict[str, Interval]
    #: Whether every replication meets the SLO, where one is given.
    meets_slo: bool | None = None


@dataclass(frozen=True)
class SweepResult(Framed):
    """The points of a sweep: policies, then loads."""

    points: tuple[SweepPoint, ...]
    #: Notes on costs, once a policy.
    notes: tuple[str, ...] = ()
    answers: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    def rows(self) -> list[dict[str, Any]]:
        """A row a class of each run."""
        return [{"replication": number, **row} for point in self.points for number, run in enumerate(point.runs) for row in run.rows()]

    def frame(self) -> pd.DataFrame:
        """A row a class of each run, and one of all classes together: latencies in µs, slowdowns, rates in requests per second."""
        return as_frame(self.rows())

    def intervals(self) -> pd.DataFrame:
        """A row a figure of each point with several runs: ``policy``, ``load``, ``figure``, ``estimate``, ``lo``, ``hi``, ``confidence``."""
        return as_frame(
            {
                "policy": point.policy,
                "load": point.load,
                "figure": name,
                "estimate": interval.estimate,
                "lo": interval.lo,
                "hi": interval.hi,
                "confidence": interval.confidence,
            }
            for point in self.points
            for name, interval in point.intervals.items()
        )

    def json(self) -> str:
        """What ``headway sweep --format json`` prints."""
        return _printed([_named(one) for one in self.answers], self.answers)

    def plot(self, figure: str = "overall.slowdown.p999", ax: Axes | None = None) -> Axes:
        """Draws a figure by load, a line a policy, with its intervals.

        :param figure: ``overall.slowdown.p999``, ``class.GET.latency.p99``, …
        """
        from headway import plots

        return plots.sweep(self, figure, ax)


@dataclass(frozen=True)
class PointTask:
    """What all points of a sweep share; goes to other processes and nodes."""

    workload: Workload
    settings: list[tuple[str, str]]
    replications: Replications


#: A policy of the registry, or one in Python.
PolicySource = str | ServerPolicy


def compute_point(common: PointTask, item: tuple[PolicySource, LoadTexts], cutoff: Cutoff | None) -> str:
    """Runs a point."""
    policy, at = item
    if isinstance(policy, ServerPolicy):
        return own_point(common, policy, at, cutoff)
    asked = Asked(common.workload.native, policy, at, common.settings)
    answer = _native.sweep_point(asked, common.replications, 1, cutoff)
    if cutoff is not None and cutoff.is_cut:
        raise KeyboardInterrupt
    return answer


def own_point(common: PointTask, policy: ServerPolicy, at: LoadTexts, cutoff: Cutoff | None) -> str:
    """Runs a point of a policy in Python."""
    from headway.simulation import simulate_texts

    seed = next((int(value) for name, value in common.settings if name == "seed"), 1)
    others = [pair for pair in common.settings if pair[0] != "seed"]
    runs = []
    for replication in range(common.replications.replications or 1):
        settings = [*others, ("seed", str(seed + replication))]
        if not any(name in ("requests", "duration") for name, _ in settings):
            settings.append(("requests", OWN_REQUESTS))
        answer = simulate_texts(policy, common.workload, at, settings, cutoff)
        if cutoff is not None and cutoff.is_cut:
            raise KeyboardInterrupt
        runs.append(answer["run"] | {"label": policy.name})
    intervals = json.loads(_native.intervals_of(json.dumps(runs)))
    named = {"policy": policy.name, "load": runs[0]["load"], "replications": len(runs)}
    return json.dumps(named | {"cut_off": False, "intervals": intervals, "runs": runs})


def sweep(
    policies: PolicySource | Iterable[PolicySource] = ("c-fcfs", "darc"),
    workload: WorkloadSource = "high-bimodal",
    *,
    loads: str | Iterable[float] = "0.1..0.95:0.05",
    rate: Number | None = None,
    replications: int | None = None,
    until_ci: str | float | None = None,
    ci_of: str = "overall.slowdown.p999",
    slo: str | None = None,
    on: On = "threads",
    threads: int | None = None,
    store: Path | None = None,
    progress: bool | Callable[[int, int], object] = False,
    **settings: Unpack[SystemSettings],
) -> SweepResult:
    """Simulates policies at loads; Ctrl-C ends it, and what is in ``store`` stays.

    :param policies: policies and their parameters: ``["c-fcfs", "darc,delta=3"]``; or your own (:class:`headway.ServerPolicy`), of
        100 000 requests by default.
    :param workload: what :func:`headway.workload` makes a workload of; no trace, whose load is what it is.
    :param loads: loads: ``[0.5, 0.8]``, ``"0.5,0.8"`` or ``"0.1..0.95:0.05"``.
    :param rate: a rate instead, requests per second.
    :param replications: runs of each point with different seeds, two or more for intervals; with ``until_ci`` their
        largest number (1, or 100).
    :param until_ci: replicate each point until the 95 % interval of ``ci_of`` is this tight: ``"2%"`` or 0.02.
    :param ci_of: the figure whose interval ``until_ci`` bounds: ``"class.GET.latency.p99"``.
    :param slo: judge each point: ``"class.*.slowdown.p999<=10"``.
    :param on: where the points run: ``"threads"``, ``"processes"``, ``"ray"``, a ``concurrent.futures.Executor`` or a client of Dask. A program
        calls for ``"processes"`` under ``if __name__ == "__main__":``, since each of them reads it again.
    :param threads: how many points run at once; the cores by default.
    :param store: a folder where each point is kept as a Parquet file as soon as it is done. A sweep that finds its points there takes them.
    :param progress: ``True`` for a bar, or a function of the points done and of all.
    :param settings: see :class:`headway.SystemSettings`; 1 000 000 requests by default.
    :raises HeadwayError: for a mistake, in the command's words, before anything runs.

    The figures are those of ``headway sweep`` to the bit, wherever the points run.
    """
    runs = None if replications is None else whole("replications", replications, 1, 1000)
    replicated = Replications(runs, optional_text("until_ci", until_ci), text("ci_of", ci_of))
    common = PointTask(workload_source(workload), texts(settings), replicated)
    # Listed once: an iterator has its loads for one policy only.
    offered = offers(loads, rate)
    items = [(policy, at) for policy in policies_of(policies) for at in offered]
    judged_by = optional_text("slo", slo)
    notes = [checked(common, *item, judged_by) for item in items]
    kept = Kept(lambda item: inputs(common, item), rows_of)
    given = computed(compute_point, common, items, Where(on, threads, store, progress), kept, "simulating")
    done = tuple(json.loads(answer) for answer in given)
    points = tuple(point_of(one, judged_by) for one in done)
    return SweepResult(points, tuple(dict.fromkeys(note for note in notes if note)), done)


def json_until(interrupted: Interrupted) -> str:
    """What the command reads of a sweep that was interrupted: every point, without replications where it was not done."""
    answers = [None if answer is None else json.loads(answer) for answer in interrupted.answers]
    points = [{"replications": 0} if one is None else _named(one) for one in answers]
    return _printed(points, [one for one in answers if one is not None])


def _printed(points: Sequence[dict[str, Any]], answers: Iterable[dict[str, Any]]) -> str:
    return json.dumps({"runs": [run for one in answers for run in one["runs"]], "points": points})


def _named(answer: dict[str, Any]) -> dict[str, Any]:
    names = ("policy", "load", "replications")
    return {key: answer[key] for key in names} | ({"intervals": answer["intervals"]} if answer["intervals"] else {})


def policies_of(policies: object) -> list[PolicySource]:
    """One policy, or several; of the registry or in Python."""
    if isinstance(policies, ServerPolicy):
        return [policies]
    each = [policies] if isinstance(policies, str) else listed("policy", policies)
    return [one if isinstance(one, ServerPolicy) else text("policy", one) for one in each]


def checked(common: PointTask, policy: PolicySource, at: LoadTexts, slo: str | None) -> str | None:
    """Refuses a point that cannot run or be judged; what is to be noted of its costs."""
    if isinstance(policy, ServerPolicy) and common.replications.until_ci is not None:
        raise HeadwayError("until_ci: a policy in Python is replicated by a fixed number: give replications")
    name = stand_in(policy) if isinstance(policy, ServerPolicy) else policy
    return _native.check(Asked(common.workload.native, name, at, common.settings), common.replications, slo)


def offers(loads: str | Iterable[float], rate: Number | None) -> list[LoadTexts]:
    """One rate where it is given, else the loads."""
    if rate is not None:
        return [LoadTexts.of(None, rate)]
    each = _native.loads(loads) if isinstance(loads, str) else listed("loads", loads)
    return [LoadTexts.of(load, None) for load in each]


def inputs(common: PointTask, item: tuple[PolicySource, LoadTexts]) -> object:
    """All that a point's figures depend on."""
    policy, at = item
    if isinstance(policy, ServerPolicy):
        raise HeadwayError("store: the code of a policy in Python may have changed: leave the store out")
    replicated = common.replications
    how_often = [replicated.replications, replicated.until_ci, replicated.ci_of]
    workload = text_digest(common.workload.to_toml())
    return ["sweep", workload, *settings_inputs(common.settings), how_often, policy, at.load, at.rate]


def rows_of(answer: str) -> list[dict[str, Any]]:
    """A point's rows: a row a class of each run."""
    return [row for run in json.loads(answer)["runs"] for row in Run.of(run).rows()]


def point_of(answer: dict[str, Any], slo: str | None) -> SweepPoint:
    """A point of its JSON, judged where there is an SLO."""
    runs = tuple(Run.of(run) for run in answer["runs"])
    met = None if slo is None else all(_native.meets(slo, json.dumps(run.details)) for run in runs)
    intervals = {name: Interval(one["estimate"], one["lo"], one["hi"], one["confidence"]) for name, one in answer["intervals"].items()}
    return SweepPoint(answer["policy"], answer["load"], runs, intervals, met)
