"""The little statistics that is needed, without assumptions about how disturbances are distributed."""
import math
import statistics


def median_interval(values: list[float], confidence: float = 0.95) -> tuple[float, float]:
    """An interval that holds the median with at least this confidence: order statistics of the sign test.

    With too few values for that (five or fewer at 95 %) it is their whole range.
    """
    ordered = sorted(values)
    n, below, cut = len(ordered), 0.0, 0
    for k in range(n // 2):
        below += math.comb(n, k) / 2.0**n
        if 2 * below > 1 - confidence:
            break
        cut = k
    return ordered[cut], ordered[n - 1 - cut]


def median(values: list[float]) -> float:
    return statistics.median(values)


def excess(turns: list[list[int]]) -> int:
    """By how much the first counts of `turns` exceed the second in all; 0 where chance explains it.

    Disturbances come in bursts, so chance is judged by how much the turns' differences scatter: three standard errors.
    """
    differences = [count - control for count, control in turns]
    error = statistics.stdev(differences) * math.sqrt(len(differences))
    return sum(differences) if sum(differences) > 3 * error else 0
