"""Run by python/versions: the wheel under this Python simulates what the command simulates."""

import json
import subprocess
import sys

import headway


def main() -> None:
    """Compares a run, a sweep and a frame."""
    command = [sys.argv[1], "sim", "--policy", "darc", "--requests", "20k", "--format", "json"]
    theirs = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    ours = headway.simulate("darc", requests=20_000)
    assert ours.run.details == theirs
    assert len(ours.frame()) == 3
    arrays = headway.workload(arrivals=[0.0, 5.0], classes=["a", "b"], service=[1.0, 2.0])
    assert headway.simulate("c-fcfs", arrays, workers=1).run.requests == 2
    points = headway.sweep(["c-fcfs"], loads=[0.3, 0.5], requests=5_000, on="threads").points
    assert [point.load for point in points] == [0.3, 0.5]
    print(f"the wheel under Python {sys.version.split()[0]}: as the command")


main()
