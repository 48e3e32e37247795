"""The parameters of a policy that use least of an SLO, by Optuna's samplers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headway import _native
from headway._native import HeadwayError
from headway.executors import On
from headway.progress import Progress
from headway.registry import Parameter, policies
from headway.results import Framed, Interval, as_frame
from headway.settings import text
from headway.sweeps import sweep
from headway.workloads import workload_source

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import Unpack

    from headway.settings import Path, SystemSettings
    from headway.workloads import WorkloadSource

#: How far from its default a parameter is searched where the registry bounds it less: a factor either way.
REACH = 30.0
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
    :param trials: how many sets of parameters; the policy's defaults are the first.
    :param replications: runs of each, of the same seeds for all (common random numbers). After each run the pruner may end a trial.
    :param at_once: trials of a round: their runs go to ``on`` together. The result depends on it, but neither on ``on`` nor on ``threads``.
    :param sampler: one of Optuna's; ``TPESampler(seed=seed)`` by default.
    :param pruner: one of Optuna's; ``MedianPruner`` by default.
    :param store: a folder where each run is kept as soon as it is done, as in :func:`headway.sweep`: a search that was cut off goes on.
    :param settings: see :class:`headway.SystemSettings`; 1 000 000 requests a run by default.
    :raises HeadwayError: for a mistake.
    """
    try:
        import optuna
    except ImportError as error:
        raise HeadwayError("tune: needs the package optuna: pip install 'headway-sched[tune]'") from error
    policy, slo = text("policy", policy), text("slo", slo)
    source, seed = workload_source(workload), int(settings.get("seed", 1))
    searched = distributions(optuna, policy, space)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        sampler=sampler or optuna.samplers.TPESampler(seed=seed),
        pruner=pruner or optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=1),
    )
    study.enqueue_trial(defaults(policy, searched))
    rows: list[dict[str, Any]] = []
    with Progress(progress, trials, "tuning") as bar:
        while len(rows) < trials:
            round_ = [study.ask(searched) for _ in range(min(at_once, trials - len(rows)))]
            specs = [spec(policy, trial.params) for trial in round_]
            uses: list[list[float]] = [[] for _ in round_]
            going = list(range(len(round_)))
            for step in range(replications):
                again: SystemSettings = {**settings, "seed": seed + step}
                ran = sweep(
                    list(dict.fromkeys(specs[at] for at in going)), source, loads=[load],  # type: ignore[list-item]
                    on=on,
                    threads=threads,
                    store=store,
                    **again,
                )  # fmt: skip
                found = {point.policy: json.dumps(point.runs[0].details) for point in ran.points}
                for at in list(going):
                    uses[at].append(_native.slo_use(slo, found[canonical(specs[at])]))
                    round_[at].report(mean(uses[at]), step)
                    if round_[at].should_prune():
                        going.remove(at)
                if not going:
                    break
            for at, trial in enumerate(round_):
                pruned = len(uses[at]) < replications
                state = optuna.trial.TrialState.PRUNED if pruned else optuna.trial.TrialState.COMPLETE
                study.tell(trial, None if pruned else mean(uses[at]), state=state)
                value = {"slo_use": mean(uses[at]), "replications": len(uses[at]), "pruned": pruned}
                rows.append({"policy": specs[at], **trial.params, **value, "uses": tuple(uses[at])})
            bar.advance(len(round_))
    whole = [row for row in rows if not row["pruned"]]
    best = min(whole, key=lambda row: row["slo_use"])
    params = {key: best[key] for key in searched}
    use = interval(best["uses"])
    return TuneResult(best["policy"], params, slo, use, use.estimate <= 1.0, tuple(rows))


def mean(values: Iterable[float]) -> float:
    """The mean; large where one is infinite, since Optuna takes no infinity."""
    each = [min(value, 1e9) for value in values]
    return sum(each) / len(each)


def interval(values: tuple[float, ...]) -> Interval:
    """Student's interval of a mean."""
    found = json.loads(_native.mean_interval(list(values)))
    return Interval(found["estimate"], found["lo"], found["hi"], found["confidence"])


def spec(policy: str, params: Mapping[str, Any]) -> str:
    """The policy with these parameters."""
    return ",".join([policy, *(f"{key}={written(value)}" for key, value in params.items())])


def written(value: Any) -> str:
    """A parameter's value as a policy's text has it."""
    return text("space", value)


def canonical(policy: str) -> str:
    """The policy's text as results have it."""
    return _native.canonical(policy)


def distributions(optuna: Any, policy: str, space: Space | Iterable[str] | None) -> dict[str, Any]:
    """Optuna's distribution of each parameter."""
    name, _, given = policy.partition(",")
    fixed = {part.partition("=")[0] for part in given.split(",") if part}
    about = {param.key: param for param in policies().named(name).params}
    if space is None:
        space = [key for key, param in about.items() if param.range and key not in fixed]
    ranges: dict[str, Any] = dict(space) if isinstance(space, Mapping) else dict.fromkeys(space)
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
        return kinds.CategoricalDistribution([written(value) for value in given])
    if param.range is None:
        raise HeadwayError(f"space: '{param.key}' is {param.values}: list the values to try")
    kind = param.range["kind"]
    if kind == "word":
        return kinds.CategoricalDistribution(param.range["choices"])
    least, most = bounds(param) if given is None else (number(param, one) for one in given)
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
