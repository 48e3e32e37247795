"""Pictures of results, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headway._native import HeadwayError
from headway.results import STATISTICS, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headway.capacities import CapacityResult
    from headway.reproductions import ReproductionResult
    from headway.simulation import SimulationResult
    from headway.sweeps import SweepResult


def axes(ax: Axes | None) -> Axes:
    """The axes given, or new ones."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise HeadwayError("plot: needs the package matplotlib: pip install 'headway-sched[plot]'") from error
    new: Axes = plt.subplots(figsize=(7, 4), layout="constrained")[1]
    return new


def figure_of(run: Run, figure: str) -> float:
    """``overall.slowdown.p999`` or ``class.GET.latency.p99`` of a run; latencies in µs."""
    scope, _, rest = figure.rpartition(".")
    scope, _, measure = scope.rpartition(".")
    name = "overall" if scope == "overall" else scope.removeprefix("class.")
    measures = {"latency": "latency_us", "slowdown": "slowdown"}
    known = [one.name for one in run.classes]
    if measure not in measures or rest not in STATISTICS or (name != "overall" and name not in known):
        raise HeadwayError(f"figure: '{figure}' is none, such as overall.slowdown.p999 or class.{known[0]}.latency.p99")
    value: float = getattr(getattr(run[name], measures[measure]), rest)
    return value


def label(figure: str) -> str:
    """An axis's words."""
    return f"{figure} (µs)" if ".latency." in figure else figure


def sweep(result: SweepResult, figure: str, ax: Axes | None) -> Axes:
    """A figure by load, a line a policy, with its interval; overloaded points end the line."""
    for point in result.points:
        figure_of(point.runs[0], figure)
    ax = axes(ax)
    for policy in dict.fromkeys(point.policy for point in result.points):
        points = [point for point in result.points if point.policy == policy]
        points = [point for point in points if not any(run.overloaded for run in point.runs)]
        loads = [point.load for point in points]
        values = [sum(figure_of(run, figure) for run in point.runs) / len(point.runs) for point in points]
        (line,) = ax.plot(loads, values, marker=".", label=policy)
        bands = [point.intervals.get(figure) for point in points]
        if bands and all(bands):
            lows = [band.lo for band in bands if band]
            highs = [band.hi for band in bands if band]
            ax.fill_between(loads, lows, highs, alpha=0.2, color=line.get_color())
    ax.set(xlabel="load", ylabel=label(figure), yscale="log")
    ax.legend()
    return ax


def capacity(result: CapacityResult, ax: Axes | None) -> Axes:
    """The policies' loads as bars."""
    ax = axes(ax)
    ax.barh([one.policy for one in result.results], [one.load for one in result.results])
    ax.invert_yaxis()
    ax.set(xlabel=f"highest load with {result.slo}", xlim=(0, 1))
    return ax


def reproduction(result: ReproductionResult, what: str | None, ax: Axes | None) -> Axes:
    """A figure over its axis, a line a system, or as bars where it has none."""
    frame = result.frame()
    if what is None:
        curves = frame[frame["axis"] != ""]
        what = str((frame if curves.empty else curves)["what"].iloc[0])
    shown = frame[frame["what"] == what]
    if shown.empty:
        raise HeadwayError(f"what: '{what}' was not measured; there are: {', '.join(dict.fromkeys(frame['what']))}")
    ax, axis = axes(ax), str(shown["axis"].iloc[0])
    ax.set_title(f"{result.paper}, {result.number}")
    if axis == "":
        ax.barh(list(shown["system"]), list(shown["value"]))
        ax.invert_yaxis()
        ax.set(xlabel=what)
        return ax
    for system, points in shown[shown["axis"] == axis].groupby("system", sort=False):
        ax.plot(points["x"], points["value"], marker=".", label=str(system))
    ax.set(xlabel=axis, ylabel=what, yscale="log" if "slowdown" in what or "latency" in what else "linear")
    ax.legend()
    return ax


def simulation(result: SimulationResult, kind: str | None, ax: Axes | None) -> Axes:
    """Quantiles, latency over the run, or who ran where."""
    recorded = {"schedule": "slices", "timeline": "timeline"}
    if kind is None:
        kind = next((kind for kind, key in recorded.items() if result.answer.get(key)), "slowdown")
    drawn = {"slowdown": _quantiles, "latency": _quantiles, "timeline": _timeline, "schedule": _schedule}
    if kind not in drawn:
        raise HeadwayError(f"kind: '{kind}' is none of {', '.join(drawn)}")
    key = recorded.get(kind, "curves")
    if not result.answer.get(key):
        remedy = f"simulate with {kind}=" if kind in recorded else "a host's run has no curves"
        raise HeadwayError(f"kind: no {kind} was recorded: {remedy}")
    return drawn[kind](result, kind, axes(ax))


def _quantiles(result: SimulationResult, kind: str, ax: Axes) -> Axes:
    column = "slowdown" if kind == "slowdown" else "latency_us"
    for name, rows in result.curves().groupby("class", sort=False):
        ax.plot(1 - rows["quantile"], rows[column], label=str(name))
    ticks = [0.5, 0.1, 0.01, 0.001, 0.0001]
    ax.set(xscale="log", yscale="log", ylabel="slowdown" if kind == "slowdown" else "latency (µs)", xlabel="percentile")
    ax.set_xticks(ticks, [f"{100 * (1 - tick):g}" for tick in ticks])
    ax.invert_xaxis()
    ax.set_title(f"{result.run.label} at load {result.run.load:.3g}")
    ax.legend()
    return ax


def _timeline(result: SimulationResult, _kind: str, ax: Axes) -> Axes:
    for name, rows in result.timeline().groupby("class", sort=False):
        ax.plot(rows["from_ns"] / 1e6, rows["latency_us_p99"], label=str(name))
    ax.set(xlabel="time (ms)", ylabel="latency, p99 (µs)", yscale="log")
    ax.legend()
    return ax


def _schedule(result: SimulationResult, _kind: str, ax: Axes) -> Axes:
    frame = result.schedule()
    begin, end = result.window_ns or (0, 0)
    lanes = {f"{kind} {number}": None for kind, number in sorted(zip(frame["runner"], frame["number"], strict=True))}
    rows = {lane: row for row, lane in enumerate(lanes)}
    for color, (name, slices) in enumerate(frame.groupby("class", sort=False)):
        where = [rows[f"{kind} {number}"] for kind, number in zip(slices["runner"], slices["number"], strict=True)]
        starts = slices["from_ns"].clip(lower=begin) / 1e3
        lengths = slices["to_ns"].clip(upper=end) / 1e3 - starts
        ax.barh(where, lengths, left=starts, height=0.8, color=f"C{color}", label=str(name))
    ax.set_yticks(range(len(rows)), list(rows), fontsize="small")
    ax.set(xlabel="time (µs)", xlim=(begin / 1e3, end / 1e3))
    ax.invert_yaxis()
    ax.legend(loc="upper right")
    return ax
