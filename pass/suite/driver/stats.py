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


def excess(count: int, control: int) -> int:
    """By how much `count` exceeds what a control saw in as much time; 0 where chance explains it.

    Both are taken for Poisson; three standard deviations of their difference count as chance.
    """
    return count - control if count - control > 3 * math.sqrt(count + control) else 0
