"""What the project set out for, judged on the half that the pass was not tuned on."""
from typing import NamedTuple

GAP_NS = 15000


class Goals(NamedTuple):
    average_percent: float  # time
    worst_percent: float | None = None
    instructions_average_percent: float | None = None
    instructions_worst_percent: float | None = None
    sigma_us: float | None = None
    no_gaps: bool = False
    fastest_too: bool = False  # the goals for time hold for the fastest repetitions as well


SUITE = Goals(0.6, 5.0, sigma_us=0.3, no_gaps=True, fastest_too=True)
LIBRARIES = {"flag": Goals(1.0, instructions_average_percent=2.0, instructions_worst_percent=8.0), "tsc": Goals(3.0)}


def has_own_gap(result: dict) -> bool:
    """Whether a slice above the limit is the program's doing, by either way to tell."""
    return result["slices"]["gaps_beyond_control"] > 0 or result["stretches"]["longest_ns"] > GAP_NS


def _average(values: list[float]) -> float:
    return sum(values) / len(values)


def _of(results: list[dict]) -> Goals:
    first = results[0]
    return LIBRARIES[first["probe"]] if first.get("language") == "real" else SUITE


def _judged(results: list[dict], goals: Goals) -> list[tuple[str, float, float | None, str]]:
    """Name, value, goal and unit of each."""
    overheads = [result["overhead"]["overhead_percent"] for result in results]
    judged = [("average overhead", _average(overheads), goals.average_percent, "%"), ("worst overhead", max(overheads), goals.worst_percent, "%")]
    if goals.fastest_too:
        fastest = [result["overhead"]["fastest_percent"] for result in results]
        judged += [("average overhead of the fastest repetitions", _average(fastest), goals.average_percent, "%"),
                   ("worst overhead of the fastest repetitions", max(fastest), goals.worst_percent, "%")]
    executed = [result["instructions"]["overhead_percent"] for result in results if "instructions" in result]
    if len(executed) == len(results):
        judged += [("average of instructions", _average(executed), goals.instructions_average_percent, "%"),
                   ("worst of instructions", max(executed), goals.instructions_worst_percent, "%")]
    measured = [result for result in results if "slices" in result]
    if len(measured) == len(results):
        sigmas = [result["slices"]["kernel"]["sigma_ns"] / 1000 for result in measured]
        judged += [("average σ", _average(sigmas), goals.sigma_us, "µs"), ("worst σ", max(sigmas), goals.sigma_us, "µs"),
                   ("programs with gaps of their own", sum(map(has_own_gap, measured)), 0 if goals.no_gaps else None, "")]
    return judged


def verdicts(results: list[dict]) -> list[str]:
    """A line for each goal, computed from the results of the reported half."""
    return [f"  {name}: {value:.3g} {unit}, goal {goal:g} {unit}: {'met' if value <= goal else 'missed'}"
            for name, value, goal, unit in _judged(results, _of(results)) if goal is not None]
