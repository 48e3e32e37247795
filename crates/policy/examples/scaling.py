#!/usr/bin/env python3
"""Counts the instructions of one request as workers grow: of a policy's decisions, and of the simulator's engine around them.

usage: scaling.py DECISIONS HEADWAY

DECISIONS is the example `scaling` of headway-policy, HEADWAY the command; `make bench-scaling` builds both. Valgrind counts, so the
figures do not depend on how busy the machine is. Each count is the difference of two runs of different length, so what happens once
falls out of it.
"""

import re
import subprocess
import sys

WORKERS = [2, 4, 8, 16, 32, 64, 128, 256]
POLICIES = ["c-fcfs", "darc", "shinjuku-ci", "concord", "work-stealing", "synergy"]
# Requests of the shorter run and of the longer one.
DECISIONS = (20_000, 60_000)
SIMULATED = (8_000, 24_000)


def instructions(command):
    """What a command executes, by valgrind."""
    valgrind = ["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"]
    done = subprocess.run(valgrind + command, capture_output=True, text=True)
    found = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"{' '.join(command)} failed under valgrind:\n{done.stderr}")
    return int(found.group(1).replace(",", ""))


def each(command, lengths):
    """Instructions of one request more."""
    short, long = (instructions(command(requests)) for requests in lengths)
    return (long - short) / (lengths[1] - lengths[0])


def table(title, command, lengths):
    print(f"{title}\n\n| policy | " + " | ".join(map(str, WORKERS)) + " |")
    print("|---|" + "---|" * len(WORKERS))
    for policy in POLICIES:
        row = (each(lambda requests: command(policy, workers, requests), lengths) for workers in WORKERS)
        print(f"| `{policy}` | " + " | ".join(f"{count:.0f}" for count in row) + " |", flush=True)
    print()


def main():
    decisions, headway = sys.argv[1:]
    table(
        "Instructions of one request's decisions, by workers",
        lambda policy, workers, requests: [decisions, policy, str(workers), str(requests)],
        DECISIONS,
    )
    table(
        "Instructions of one request in the simulator, zippydb at load 0.7, by workers",
        lambda policy, workers, requests: [
            headway, "sim", "--workload", "zippydb", "--policy", policy, "--workers", str(workers),
            "--load", "0.7", "--requests", str(requests), "--format", "json", "-o", "/dev/null",
        ],
        SIMULATED,
    )


main()
