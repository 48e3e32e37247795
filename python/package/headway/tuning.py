"""The parameters of a policy that use least of an SLO, by Optuna's samplers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headway import _native
from headway._native import HeadwayError
from headway.executors import On
from headway.progress import Progress
from headway.registry import Parameter, policies
from headway.results import Framed, Interval, as_frame
from headway.settings import listed, text, whole
from headway.sweeps import sweep
from headway.workloads import Workload, workload_source

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

    from headway.settings import Path, SystemSettings
    from headway.workloads import WorkloadSource

#: How far from its default a parameter is searched where the registry bounds it less: a factor either way.
REACH = 30.0
#: Of intervals.
CONFIDENCE = 0.95
#: What a parameter's space may be: its values, or its least and most.
Space = Mapping[str, "Iterable[Any] | tuple[Any, Any]"]


@dataclass(frozen=True)
class TuneResult(Framed):
    """The parameters found, and every trial."""

    #: The policy with the best parameters, as other functions take it.
    policy: str
    params: dict[str, Any]
    slo: str
    #: Largest figure ÷ its bound, 1 or less meets the SLO; a mean over replications with its interval.
    slo_use: Interval
    met: bool
    trials: tuple[dict[str, Any], ...] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """A row a trial: its parameters, ``slo_use``, ``replications``, ``pruned``."""
        return as_frame(self.trials)


def tune(
    policy: str,
    space: Space | Iterable[str] | None = None,
    slo: str = "class.*.slowdown.p999<=10",
    workload: WorkloadSource = "high-bimodal",
    *,
    load: float | str = 0.8,
    trials: int = 40,
    replications: int = 5,
    at_once: int = 4,
    sampler: Any = None,
    pruner: Any = None,
    on: On = "threads",
    threads: int | None = None,
    store: Path | None = None,
    progress: bool | Callable[[int, int], object] = False,
    **settings: Unpack[SystemSettings],
) -> TuneResult:
    """Searches a policy's parameters for those that use least of the SLO at a load.

    :param policy: a policy of the registry, with the parameters that are to stay: ``"darc,window=20000"``.
    :param space: the parameters to search. Keys alone take their ranges and units from the registry; a mapping gives a pair ``(least, most)`` or a
        list of values. All that the registry bounds by default.
    :param slo: the SLO; a trial's value is its largest figure ÷ bound, infinite where the server is overloaded.
    :param workload: what :func:`headway.workload` makes a workload of; no trace.
    :param load: offered load, a fraction of the workers' capacity.
    :param trials: how many sets of parameters; the policy's defaults are the first.
    :param replications: runs of each, 2 to 1000, of the same seeds for all (common random numbers). After each run the pruner may end a trial.
    :param at_once: trials of a round: their runs go to ``on`` together. The result depends on it, but neither on ``on`` nor on ``threads``.
    :param sampler: one of Optuna's; ``TPESampler(seed=seed)`` by default (Bergstra et al., NIPS 2011).
    :param pruner: one of Optuna's; ``MedianPruner`` by default, from the second run of the sixth trial on (Golovin et al., KDD 2017).
    :param on: where the runs take place, as in :func:`headway.sweep`.
    :param threads: how many runs at once; the cores by default.
    :param store: a folder where each run is kept as soon as it is done, as in :func:`headway.sweep`: a search that was cut off goes on.
    :param progress: ``True`` for a bar, or a function of the trials done and of all.
    :param settings: see :class:`headway.SystemSettings`; 1 000 000 requests a run by default.
    :raises HeadwayError: for a mistake, before anything runs, and where the pruner ended every trial.

    The planner's own grid of a policy's parameters is searched by :func:`headway.plan`; docs/python.md shows both on three workloads.
    """
    try:
        import optuna
    except ImportError as error:
        raise HeadwayError("tune: needs the package optuna: pip install 'headway-sched[tune]'") from error
    whole("trials", trials, 1), whole("replications", replications, 2, 1000), whole("at_once", at_once, 1)
    policy, slo = text("policy", policy), text("slo", slo)
    if settings.get("core_changes") is not None and not isinstance(settings["core_changes"], str):
        # Each run reads them, and an iterator has them once.
        settings["core_changes"] = listed("core_changes", settings["core_changes"])
    common = TrialTask(policy, slo, workload_source(workload), load, replications, on, threads, store, settings)
    searched = distributions(optuna, policy, space)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        sampler=sampler or optuna.samplers.TPESampler(seed=common.seed % 2**32),
        pruner=pruner or optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
    )
    study.enqueue_trial(defaults(policy, searched))
    rows: list[dict[str, Any]] = []
    with Progress(progress, trials, "tuning") as bar:
        while len(rows) < trials:
            round_ = [study.ask(searched) for _ in range(min(at_once, trials - len(rows)))]
            for trial, uses in zip(round_, common.uses(round_), strict=True):
                pruned = len(uses) < replications
                state = optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE
                study.tell(trial, None if pruned else finite(mean(uses)), state=state)
                value = {"slo_use": mean(uses), "replications": len(uses), "pruned": pruned}
                rows.append({"policy": spec(policy, trial.params), **trial.params, **value, "uses": tuple(uses)})
            bar.advance(len(round_))
    return best_of(rows, slo, searched)


@dataclass(frozen=True)
class TrialTask:
    """What all trials share."""

    policy: str
    slo: str
    workload: Workload
    load: float | str
    replications: int
    on: On
    threads: int | None
    store: Path | None
    settings: SystemSettings

    @property
    def seed(self) -> int:
        """The seed of the first replication."""
        try:
            seed = int(self.settings.get("seed", 1))
        except (TypeError, ValueError, OverflowError):
            raise HeadwayError(f"seed: {self.settings['seed']!r} is no whole number") from None
        # Each replication's seed is one more than that before.
        return whole("seed", seed, 0, 2**64 - self.replications)

    def uses(self, trials: Sequence[Any]) -> list[list[float]]:
        """What each trial uses of the SLO, a figure a replication; the pruner ends a trial after fewer."""
        specs = [spec(self.policy, trial.params) for trial in trials]
        uses: list[list[float]] = [[] for _ in trials]
        going = list(range(len(trials)))
        for step in range(self.replications):
            found = self.run(list(dict.fromkeys(specs[at] for at in going)), self.seed + step)
            for at in list(going):
                uses[at].append(_native.slo_use(self.slo, found[_native.canonical(specs[at])]))
                trials[at].report(finite(mean(uses[at])), step)
                if trials[at].should_prune():
                    going.remove(at)
            if not going:
                break
        return uses

    def run(self, specs: list[str], seed: int) -> dict[str, str]:
        """The run of each policy under this seed."""
        settings: SystemSettings = {**self.settings, "seed": seed}
        where: dict[str, Any] = {"on": self.on, "threads": self.threads, "store": self.store}
        points = sweep(specs, self.workload, loads=[self.load], slo=self.slo, **where, **settings).points  # type: ignore[list-item]
        return {point.policy: json.dumps(point.runs[0].details) for point in points}


def best_of(rows: Sequence[dict[str, Any]], slo: str, searched: Iterable[str]) -> TuneResult:
    """The trial that uses least of the SLO, of those that were not pruned."""
    whole_trials = [row for row in rows if not row["pruned"]]
    if not whole_trials:
        raise HeadwayError("pruner: it ended every trial, so none has all its replications: give another")
    best = min(whole_trials, key=lambda row: row["slo_use"])
    use = interval(best["uses"])
    return TuneResult(best["policy"], {key: best[key] for key in searched}, slo, use, use.estimate <= 1.0, tuple(rows))


def mean(values: Sequence[float]) -> float:
    """The mean; infinite where one is."""
    return sum(values) / len(values)


def finite(value: float) -> float:
    """The value for Optuna, which takes no infinity."""
    return min(value, 1e9)


def interval(values: Sequence[float]) -> Interval:
    """Student's interval of a mean; infinite where an overloaded run is among them."""
    if math.isinf(mean(values)):
        return Interval(math.inf, math.inf, math.inf, CONFIDENCE)
    found = json.loads(_native.mean_interval(list(values)))
    return Interval(found["estimate"], found["lo"], found["hi"], found["confidence"])


def spec(policy: str, params: Mapping[str, Any]) -> str:
    """The policy with these parameters."""
    return ",".join([policy, *(f"{key}={written(value)}" for key, value in params.items())])


def written(value: Any) -> str:
    """A parameter's value as a policy's text has it."""
    return text("space", value)


def distributions(optuna: Any, policy: str, space: Space | Iterable[str] | None) -> dict[str, Any]:
    """Optuna's distribution of each parameter."""
    name, _, given = policy.partition(",")
    fixed = {part.partition("=")[0] for part in given.split(",") if part}
    about = {param.key: param for param in policies().named(name).params}
    if space is None:
        space = [key for key, param in about.items() if param.range and key not in fixed]
    ranges: dict[str, Any] = dict(space) if isinstance(space, Mapping) else dict.fromkeys(text("space", key) for key in listed("space", space))
    if not ranges:
        raise HeadwayError(f"space: '{name}' has no parameters to search")
    for key in ranges:
        if key not in about:
            raise HeadwayError(f"space: '{name}' has no parameter '{key}'; there are: {', '.join(about)}")
        if key in fixed:
            raise HeadwayError(f"space: '{key}' is fixed by '{policy}': leave it out of one of them")
    return {key: distribution(optuna, about[key], given) for key, given in ranges.items()}


def distribution(optuna: Any, param: Parameter, given: Any) -> Any:
    """Of the values given, of the bounds given, or of those of the registry."""
    kinds = optuna.distributions
    if isinstance(given, list):
        if not given:
            raise HeadwayError(f"space: {param.key} has no values to try")
        return kinds.CategoricalDistribution([written(value) for value in given])
    if param.range is None:
        raise HeadwayError(f"space: '{param.key}' is {param.values}: list the values to try")
    kind = param.range["kind"]
    if kind == "word":
        return kinds.CategoricalDistribution(param.range["choices"])
    if given is not None and not (isinstance(given, Sequence) and not isinstance(given, str) and len(given) == 2):
        raise HeadwayError(f"space: {param.key} is searched in a list of values or from a least to a most, (least, most), not {given!r}")
    least, most = bounds(param) if given is None else (number(param, one) for one in given)
    if not (math.isfinite(least) and math.isfinite(most)):
        raise HeadwayError(f"space: {param.key} is searched between two numbers, not from {least} to {most}")
    if not least < most:
        raise HeadwayError(f"space: {param.key} has no values from {least} to {most}")
    if kind == "number":
        return kinds.FloatDistribution(least, most, log=least > 0)
    if kind == "whole":
        return kinds.IntDistribution(int(least), int(most), log=least >= 1)
    # Times: a few values a decade, as texts with their unit.
    steps = 24
    ratio = most / max(least, 1.0)
    values = dict.fromkeys(round(max(least, 1.0) * ratio ** (step / steps)) for step in range(steps + 1))
    default = [int(number(param, param.default))] if is_number(param) else []
    return kinds.CategoricalDistribution([f"{ns}ns" for ns in sorted({*values, *default})])


def bounds(param: Parameter) -> tuple[float, float]:
    """The registry's bounds, and no farther from the default than a factor."""
    limits = param.range or {}
    low, high = limits.get("min"), limits.get("max")
    if not is_number(param):
        if low is None or high is None:
            raise HeadwayError(f"space: {param.key} follows from the server ({param.default}): give its least and most")
        return float(low), float(high)
    default = number(param, param.default)
    least = default / REACH if low is None else max(float(low), default / REACH)
    most = default * REACH if high is None else min(float(high), default * REACH)
    return least, max(most, least + 1e-9) if default else float(high or 1.0)


def is_number(param: Parameter) -> bool:
    """Whether the default is a value, and not words."""
    try:
        number(param, param.default)
    except HeadwayError:
        return False
    return True


def number(param: Parameter, value: Any) -> float:
    """A value of a parameter, times in ns."""
    units = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    if isinstance(value, str) and (param.range or {}).get("kind") == "time":
        for unit, ns in units.items():
            head = value.removesuffix(unit)
            if head != value and head.replace(".", "", 1).isdigit():
                return float(head) * ns
    try:
        return float(value)
    except (TypeError, ValueError):
        raise HeadwayError(f"space: {param.key}={value!r} is no value of it: {param.values}") from None


def defaults(policy: str, searched: Mapping[str, Any]) -> dict[str, Any]:
    """The registry's defaults of what is searched, where they are values."""
    about = {param.key: param for param in policies().named(policy.partition(",")[0]).params}
    found: dict[str, Any] = {}
    for key, kind in searched.items():
        param = about[key]
        if param.range is None or not is_number(param):
            continue
        value: Any = number(param, param.default)
        if param.range["kind"] == "time":
            value = f"{int(value)}ns"
        elif param.range["kind"] == "whole":
            value = int(value)
        if holds(kind, value):
            found[key] = value
    return found


def holds(kind: Any, value: Any) -> bool:
    """Whether a distribution has the value."""
    if hasattr(kind, "choices"):
        return value in kind.choices
    return bool(kind.low <= value <= kind.high)
