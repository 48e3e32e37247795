"""The package's requests per second beside the command's, of runs of a million, and what ten million rows of numpy take.

    target/python/venv/bin/python python/measure/speed.py target/release/headway

Rounds are interleaved. Each time is less that of a run of a thousand requests, so the command's start does not count. Processor seconds are
beside those of the clock, since others use the machine too.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable

import numpy as np

import headway

POLICIES = ("c-fcfs", "darc", "concord", "work-stealing")


def timed(work: Callable[[], object]) -> tuple[float, float]:
    """Seconds of the clock, and of the processors: of this process and of those that it ran."""

    def cpu_s() -> float:
        both = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in both)

    clock, cpu = time.perf_counter(), cpu_s()
    work()
    return time.perf_counter() - clock, cpu_s() - cpu


def by_command(path: str, policy: str, requests: int) -> tuple[float, float]:
    """A run by the command."""
    flags = ["sim", "--policy", policy, "--requests", str(requests), "--format", "json"]
    return timed(lambda: subprocess.run([path, *flags], stdout=subprocess.DEVNULL, check=True))


def by_package(policy: str, requests: int) -> tuple[float, float]:
    """A run by the package."""
    return timed(lambda: headway.simulate(policy, requests=requests))


def ratios(path: str, policy: str, requests: int, rounds: int) -> tuple[list[float], list[float]]:
    """The command's time ÷ the package's, of the clock and of the processors: the ratio of their rates."""
    clock, cpu = [], []
    for _ in range(rounds):
        theirs, short = by_command(path, policy, requests), by_command(path, policy, 1_000)
        ours, own_short = by_package(policy, requests), by_package(policy, 1_000)
        for kind, found in ((0, clock), (1, cpu)):
            found.append((theirs[kind] - short[kind]) / (ours[kind] - own_short[kind]))
    return clock, cpu


def rows() -> None:
    """Ten million rows of numpy."""
    count = 10_000_000
    at_ns = np.arange(count, dtype=np.uint64) * np.uint64(1_000)
    service_ns, classes = np.full(count, 500, dtype=np.uint64), (np.arange(count) % 2).astype(np.uint16)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    clock, cpu = timed(lambda: headway.workload(arrivals=at_ns, classes=classes, class_names=["a", "b"], service=service_ns, unit="ns"))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"\n10^7 rows of numpy become a workload in {clock:.2f} s ({cpu:.2f} s of processors), in {grown:.0f} MiB more")


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", help="the command headway, a release build")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print("| policy | package ÷ command, clock | least to most | processors | least to most |\n|---|---|---|---|---|")
    for policy in POLICIES:
        both = ratios(arguments.command, policy, arguments.requests, arguments.rounds)
        cells = [f"{statistics.median(one):.3f} | {min(one):.3f} to {max(one):.3f}" for one in both]
        print(f"| `{policy}` | {' | '.join(cells)} |")
    rows()
    print(f"load average {os.getloadavg()[1]:.1f}")


if __name__ == "__main__":
    main()
