"""The highest load that meets an SLO, per policy."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headway import _native
from headway._native import Cutoff
from headway.executors import On
from headway.points import Kept, Where, computed, settings_inputs, text_digest
from headway.results import Framed, Run, as_frame
from headway.settings import Asked, LoadTexts, number, policy_texts, text, texts
from headway.workloads import Workload, workload_source

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from headway.settings import Path, SystemSettings
    from headway.workloads import WorkloadSource


@dataclass(frozen=True)
class PolicyCapacity:
    """The highest load of a policy that meets the SLO."""

    policy: str
    #: 0 where the lowest load misses it, or where it is not shown.
    load: float
    #: The same, requests per second.
    rps: float
    #: All cores of the system, and those of them that run requests.
    cores: int
    serving_cores: int
    #: The run at that load.
    run: Run | None
    #: Why the runs were too short to show the SLO, where they were.
    unshown: str | None
    #: The least and the most load that runs of other seeds carry, where one of them carries less.
    other_seeds: tuple[float, float] | None = None


@dataclass(frozen=True)
class CapacityResult(Framed):
    """What each policy carries."""

    slo: str
    results: tuple[PolicyCapacity, ...]
    answers: tuple[dict[str, Any], ...] = field(default=(), repr=False)

    def frame(self) -> pd.DataFrame:
        """A row a policy: ``load``, ``rps``, ``of_best`` (a fraction), ``cores``, ``serving_cores``, ``shown``."""
        best = max((one.rps for one in self.results), default=0.0)
        return as_frame(
            {
                "policy": one.policy,
                "load": one.load,
                "rps": one.rps,
                "of_best": one.rps / best if best > 0 else 0.0,
                "cores": one.cores,
                "serving_cores": one.serving_cores,
                "shown": one.unshown is None,
            }
            for one in self.results
        )

    def json(self) -> str:
        """What ``headway capacity --format json`` prints."""
        return json.dumps({"slo": self.slo, "results": [one["result"] for one in self.answers]})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the policies' loads as bars."""
        from headway import plots

        return plots.capacity(self, ax)


@dataclass(frozen=True)
class SearchTask:
    """What all searches share; goes to other processes and nodes."""

    workload: Workload
    settings: list[tuple[str, str]]
    slo: str
    tolerance: float


def compute_capacity(common: SearchTask, policy: str, cutoff: Cutoff | None) -> str:
    """Searches for a policy's capacity."""
    asked = Asked(common.workload.native, policy, LoadTexts(), common.settings)
    answer = _native.capacity(asked, common.slo, common.tolerance, cutoff)
    if cutoff is not None and cutoff.is_cut:
        raise KeyboardInterrupt
    return answer


def capacity(
    policies: str | Iterable[str] = ("c-fcfs", "darc"),
    workload: WorkloadSource = "high-bimodal",
    *,
    slo: str = "class.*.slowdown.p999<=10",
    tolerance: float = 0.005,
    on: On = "threads",
    threads: int | None = None,
    store: Path | None = None,
    progress: bool | Callable[[int, int], object] = False,
    **settings: Unpack[SystemSettings],
) -> CapacityResult:
    """Searches for the highest load at which each policy meets the SLO; Ctrl-C ends it.

    :param policies: policies and their parameters.
    :param workload: what :func:`headway.workload` makes a workload of; no trace.
    :param slo: ``"class.*.slowdown.p999<=10"``, ``"class.GET.latency.p99<=250us"``, …
    :param tolerance: the largest error of the load, 0.0001 to 0.5.
    :param on: where the searches run, as in :func:`headway.sweep`.
    :param threads: how many searches run at once; the cores by default.
    :param store: a folder where each policy's answer is kept as soon as it is found, as in :func:`headway.sweep`.
    :param progress: ``True`` for a bar, or a function of the searches done and of all.
    :param settings: see :class:`headway.SystemSettings`; 2 000 000 requests by default.
    :raises HeadwayError: for a mistake, in the command's words.

    It bisects, as ``headway capacity`` does, to the same bits.
    """
    common = SearchTask(workload_source(workload), texts(settings), text("slo", slo), number("tolerance", tolerance))
    kept = Kept(lambda policy: inputs(common, policy), rows_of)
    given = computed(compute_capacity, common, policy_texts(policies), Where(on, threads, store, progress), kept, "searching")
    done = tuple(json.loads(answer) for answer in given)
    return CapacityResult(common.slo, tuple(_of(one) for one in done), done)


def inputs(common: SearchTask, policy: str) -> object:
    """All that a policy's answer depends on."""
    workload = text_digest(common.workload.to_toml())
    return ["capacity", workload, *settings_inputs(common.settings), common.slo, common.tolerance, policy]


def rows_of(answer: str) -> list[dict[str, Any]]:
    """The rows of the run at the highest load."""
    run = json.loads(answer)["result"].get("run")
    return [] if run is None else Run.of(run).rows()


def _of(answer: dict[str, Any]) -> PolicyCapacity:
    result = answer["result"]
    run = result.get("run")
    others = result.get("other_seeds")
    return PolicyCapacity(
        policy=result["spec"],
        load=result["load"],
        rps=result["rps"],
        cores=result["cores"],
        serving_cores=result["serving_cores"],
        run=None if run is None else Run.of(run),
        unshown=answer["unshown"],
        other_seeds=None if others is None else (others["lowest"], others["highest"]),
    )
