"""Which policy and how many workers meet an SLO, and workloads that are fitted to traces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from headway import _native
from headway._native import HeadwayError
from headway.progress import Progress
from headway.results import Framed, as_frame
from headway.settings import LoadTexts, policy_texts, text, texts, whole
from headway.workloads import Workload, workload_source

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

    from headway.settings import Number, Path
    from headway.workloads import WorkloadSource


class PlanSettings(TypedDict, total=False):
    """What a plan heeds of :class:`headway.SystemSettings`."""

    seed: int | str
    costs: Path
    dispatch_cost: str
    network: str
    queue_limit: Number
    resume: str


@dataclass(frozen=True)
class PlanResult(Framed):
    """A plan: the ranking, and how many cores the best need. ``details`` is the command's whole JSON (docs/json.md)."""

    #: ``"met"``, ``"missed"`` or ``"impossible"``.
    verdict: str
    #: The best policy with its parameters.
    policy: str
    #: The best policy that a live server runs.
    live: str | None
    workers: int
    load: float
    offered_rps: float
    caveats: tuple[str, ...]
    details: Mapping[str, Any] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """The ranking, a row a candidate, the best first."""
        return as_frame(self.details["ranking"])

    def cores(self) -> pd.DataFrame:
        """How many workers and cores the best candidates need, a row a candidate."""
        return as_frame(self.details["cores"])

    def json(self) -> str:
        """What ``headway plan --format json`` prints."""
        return json.dumps(self.details)


@dataclass(frozen=True)
class PlanAsked:
    """What a plan is asked, for the compiled part."""

    slo: str
    policies: list[str]
    requests: str
    replications: int
    cores: int | None
    threads: int | None


def plan(
    workload: WorkloadSource = "high-bimodal",
    *,
    slo: str = "class.*.slowdown.p999<=10",
    policies: str | Iterable[str] = (),
    load: float | str | None = None,
    rate: Number | None = None,
    cores: int | None = None,
    requests: Number = "400k",
    replications: int = 5,
    threads: int | None = None,
    progress: bool | Callable[[int, int], object] = False,
    **settings: Unpack[PlanSettings],
) -> PlanResult:
    """Ranks policies by whether and how well they meet an SLO; Ctrl-C ends it after the stage's runs that have begun.

    :param workload: what :func:`headway.workload` makes a workload of. A trace is planned for by the workload that is
        fitted to it, and its own arrivals decide.
    :param slo: ``"class.*.slowdown.p999<=10"``, …
    :param policies: try these only; all of a server by default.
    :param load: offered load, a fraction of the workers' capacity (0.8).
    :param rate: offered rate instead, requests per second: ``260_000`` or ``"260k"``.
    :param cores: cores of the machine, dispatchers' among them; 15 by default, and where a rate is given enough for a load of 0.7.
    :param requests: arrivals of each run of the last round.
    :param replications: runs of each candidate in the last round, 2 to 1000.
    :param threads: threads; the plan does not depend on it.
    :param progress: ``True`` for a bar, or a function of the runs done and of all that were begun.
    :param settings: ``seed``, ``costs``, ``dispatch_cost``, ``network``, ``queue_limit`` and ``resume`` of :class:`headway.SystemSettings`.
    :raises HeadwayError: for a mistake, in the command's words.

    The candidates, rounds and bounds are described in docs/planning.md.
    """
    for name in settings:
        if name not in PlanSettings.__annotations__:
            raise HeadwayError(f"{name}: a plan does not take it; it takes {', '.join(PlanSettings.__annotations__)}")
    asked = PlanAsked(
        slo=text("slo", slo),
        policies=policy_texts(policies),
        requests=text("requests", requests),
        replications=whole("replications", replications, 2, 1000),
        cores=None if cores is None else whole("cores", cores, 1, 256),
        threads=None if threads is None else whole("threads", threads, 1, 1024),
    )
    source = workload_source(workload)
    with Progress(progress, 0, "planning") as bar:

        def hear(done: int, more: int) -> None:
            bar.extend(more)
            bar.advance(done)

        at = LoadTexts.of(load, rate)
        details = json.loads(_native.plan(source.native, at, asked, texts(settings), hear))
    best = details["ranking"][0]
    return PlanResult(
        verdict=details["verdict"],
        policy=best["policy"],
        live=details.get("live"),
        workers=details["workers"],
        load=details["load"],
        offered_rps=details["offered_rps"],
        caveats=tuple(details["caveats"]),
        details=details,
    )


@dataclass(frozen=True)
class FitResult(Framed):
    """A workload that is fitted to a trace, and how well it fits."""

    workload: Workload
    #: Of the arrivals: ``process``, ``rps``, ``cv``, ``lag1``, ``candidates``, ``doubt``.
    arrivals: Mapping[str, Any]
    details: Mapping[str, Any] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """A row a class and candidate distribution: its Kolmogorov-Smirnov distance ``ks`` and errors of the first two moments."""
        return as_frame(
            {
                "class": one["name"],
                "count": one["count"],
                "service_us": one["service_us"],
                "scv": one["scv"],
                **candidate,
                "chosen": candidate["distribution"] == one["chosen"]["distribution"],
            }
            for one in self.details["classes"]
            for candidate in one["candidates"]
        )

    def json(self) -> str:
        """What ``headway fit --format json`` prints."""
        return json.dumps(self.details)


def fit(trace: WorkloadSource, *, trace_format: str | None = None, service_model: str | None = None, skip_zero: bool = False) -> FitResult:
    """Fits a synthetic workload to a trace, which can be offered at any load.

    :param trace: a trace's file, or a :class:`headway.Workload` of arrays or a table.
    :param trace_format: of a file, as :func:`headway.workload` takes it, like ``service_model`` and ``skip_zero``.
    :param service_model: service times of a log that has none.
    :param skip_zero: leave out the rows whose requests took no time.
    :raises HeadwayError: where it is no trace, or cannot be read.

    Which processes and distributions are tried, and by which distance the best is chosen, is in docs/traces.md.
    """
    if isinstance(trace, Workload):
        source = trace
    else:
        from headway.workloads import workload

        source = workload(trace, trace_format=trace_format, service_model=service_model, skip_zero=skip_zero)
    native, quality = _native.fit(source.native)
    details = json.loads(quality)
    fitted = Workload(native, ("toml", native.to_toml(), f"{native.name}.toml"))
    return FitResult(fitted, details["arrivals"], details)
