"""One simulated run, of a server, a rack or a host."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headway import _native
from headway._native import Cutoff, HeadwayError
from headway.custom import ServerPolicy, stand_in
from headway.results import Framed, Run, as_frame
from headway.settings import Asked, HostAsked, LoadTexts, Recording, listed, optional_text, text, texts, whole
from headway.workloads import Workload, workload_source

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from typing_extensions import Unpack

    from headway.settings import Number, SystemSettings
    from headway.workloads import WorkloadSource

SLICE = (
    "request", "class", "service_ns", "runner", "number", "waited_from_ns", "from_ns", "to_ns", "resumed", "done",
)  # fmt: skip


@dataclass(frozen=True)
class SimulationResult(Framed):
    """One run, and what was recorded beside its figures."""

    run: Run
    #: Interrupt costs that the file of costs leaves to the policy, in a sentence.
    note: str | None
    #: The window, ns, whose slices are recorded.
    window_ns: tuple[int, int] | None
    answer: dict[str, Any] = field(repr=False)

    @property
    def cut_off(self) -> bool:
        """Whether the run was ended before its time, by a :class:`Cutoff`."""
        return bool(self.run.details.get("cut_off", False))

    def frame(self) -> pd.DataFrame:
        """A row a class, and one of all together: latencies in µs, slowdowns, rates in requests per second."""
        return self.run.frame()

    def _recorded(self, part: str) -> Any:
        if part not in self.answer:
            raise HeadwayError(f"{part}: a host's run records only its figures")
        return self.answer[part]

    def curves(self) -> pd.DataFrame:
        """Quantiles of each class: ``class``, ``quantile`` from 0.1 to 0.99999, ``latency_us``, ``slowdown``."""
        curves = self._recorded("curves")
        names = [one.name for one in self.run.classes]
        return as_frame(
            {"class": name, "quantile": quantile, "latency_us": latency_us, "slowdown": slowdown}
            for name, curve in zip(names, curves, strict=True)
            for quantile, latency_us, slowdown in curve
        )

    def timeline(self) -> pd.DataFrame:
        """Latency over the run, by the interval of arrival: ``from_ns``, ``class``, ``count``, percentiles in µs. Needs ``timeline=``."""
        intervals = self._recorded("timeline")
        names = [one.name for one in self.run.classes]
        return as_frame(
            {
                "from_ns": interval["from_ns"],
                "class": name,
                "count": count,
                "latency_us_p50": p50,
                "latency_us_p99": p99,
                "latency_us_p999": p999,
            }
            for interval in intervals
            for name, (count, p50, p99, p999) in zip(names, interval["classes"], strict=True)
        )

    def schedule(self) -> pd.DataFrame:
        """Which request ran where and when, a row a slice; times in ns from the start. Needs ``schedule=True``."""
        names = [one.name for one in self.run.classes]
        rows = (dict(zip(SLICE, slice_, strict=True)) for slice_ in self._recorded("slices"))
        return as_frame({**row, "class": names[row["class"]]} for row in rows)

    def apps(self) -> pd.DataFrame:
        """A row an application of a host: cores allocated and useful, efficiency (Shenango § 2), grants and preemptions per second."""
        apps = self.run.details.get("apps", [])
        keep = sorted({key for app in apps for key in app} - {"latency_us"})
        return as_frame({**{key: app.get(key) for key in keep}, "latency_us_p999": (app.get("latency_us") or {}).get("p999")} for app in apps)

    def plot(self, kind: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws it by matplotlib.

        :param kind: ``"slowdown"`` or ``"latency"``: quantiles of each class; ``"timeline"``: latency over the run;
            ``"schedule"``: who ran where. By default the most that was recorded.
        :raises HeadwayError: for a kind that was not recorded.
        """
        from headway import plots

        return plots.simulation(self, kind, ax)


def simulate(
    policy: str | ServerPolicy = "darc",
    workload: WorkloadSource = "high-bimodal",
    *,
    load: float | str | None = None,
    rate: Number | None = None,
    timeline: str | None = None,
    schedule: bool = False,
    window: str | None = None,
    apps: Iterable[str] = (),
    threads_per_core: int | None = None,
    host_costs: str | None = None,
    cutoff: Cutoff | None = None,
    **settings: Unpack[SystemSettings],
) -> SimulationResult:
    """Simulates one run, without the interpreter's lock; Ctrl-C ends it.

    :param policy: a policy and its parameters: ``"darc,delta=3"``; of a rack, with ``servers=``: ``"pallas"``;
        of a host, whose applications trade its cores (``workers=``): ``"shenango"``; or one of your own
        (:class:`headway.ServerPolicy`), which is slow.
    :param workload: what :func:`headway.workload` makes a workload of. A trace is replayed at its times.
    :param load: offered rate × mean service time ÷ workers (0.8).
    :param rate: offered rate instead, requests per second: ``260_000`` or ``"260k"``.
    :param timeline: record latencies by intervals of this length: ``"10ms"``.
    :param schedule: record which request ran where, in ``window``.
    :param window: the part of the run to record: ``"20ms..21ms"``; some 500 requests after the warm-up by default.
    :param apps: a host's applications as the command's ``--app`` takes them:
        ``["kv:workload=fixed-1us,rate=2M,cores=4", "swaptions:batch"]``. Without any, one of ``workload`` and ``load``
        with every core guaranteed, and a batch application.
    :param threads_per_core: a host's hyper-threads per physical core, 1 or 2 (2).
    :param host_costs: a host's costs of moving cores: ``"daemon=2us,leave=1us"``; Shenango's figures by default.
    :param cutoff: ends the run from another thread; its figures are those of the requests until then.
    :param settings: see :class:`headway.SystemSettings`; 2 000 000 requests by default, 500 000 of a host.
    :raises HeadwayError: for a mistake, in the command's words.

    The model is that of the papers' simulations: docs/guide.md and ARCHITECTURE.md.
    """
    siblings = None if threads_per_core is None else whole("threads_per_core", threads_per_core, 1, 2)
    recording = Recording(optional_text("timeline", timeline), bool(schedule), optional_text("window", window))
    of_host = HostAsked([text("apps", app) for app in listed("apps", apps)], siblings, optional_text("host_costs", host_costs))
    source, at = workload_source(workload), LoadTexts.of(load, rate)
    given = policy if isinstance(policy, ServerPolicy) else text("policy", policy)
    if isinstance(given, ServerPolicy):
        for name, value in (("apps", of_host.apps), ("threads_per_core", siblings), ("host_costs", of_host.costs)):
            if value:
                raise HeadwayError(f"{name}: only a host has that, and a policy in Python is a server's")
    answer = simulate_texts(given, source, at, texts(settings), cutoff, recording, of_host)
    window_ns = answer.get("window_ns")
    return SimulationResult(
        run=Run.of(answer["run"]),
        note=answer.get("note"),
        window_ns=None if window_ns is None else (window_ns[0], window_ns[1]),
        answer=answer,
    )


def simulate_texts(
    policy: str | ServerPolicy,
    workload: Workload,
    at: LoadTexts,
    settings: list[tuple[str, str]],
    cutoff: Cutoff | None,
    recording: Recording | None = None,
    of_host: HostAsked | None = None,
) -> dict[str, Any]:
    """The compiled part's answer, of the command's texts."""
    recording, of_host = recording or Recording(), of_host or HostAsked([])
    if isinstance(policy, ServerPolicy):
        asked = Asked(workload.native, stand_in(policy), at, settings)
        answer = _native.simulate_custom(asked, recording, policy, cutoff)
    else:
        answer = _native.simulate(Asked(workload.native, policy, at, settings), recording, of_host, cutoff)
    found: dict[str, Any] = json.loads(answer)
    return found
