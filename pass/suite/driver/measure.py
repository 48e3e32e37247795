"""The measurements of a program.

Overhead: one process of each build on the same core, which repeat in turns (plain, instrumented, plain, …) on request. So each finds
what the other left in caches and predictors: one that followed itself could be slower by three times, for a whole repetition. Two
neighbours in time meet the same machine, so the ratios of all neighbours are taken, and of a round's ratios the median; new processes, with
another layout of code and memory, make the next round; the median over rounds is the overhead. That is what probes cost on the machine as
it is, neighbours on the same core included. What they cost who has a core alone, the fastest repetitions tell: of either build the fastest
in each layout, and of the layouts' ratios the median.

Slices and stretches: see the harness's slices.c and stretches.c.
"""
import argparse
import json
import os
import pathlib
import platform
import shutil
import subprocess
from typing import NamedTuple

from . import instructions, stats
from .build import Binaries
from .errors import SuiteError


class Effort(NamedTuple):
    rounds: int
    repetitions: int  # of each build per round
    slice_seconds: float
    stretch_repetitions: int


def machine() -> dict:
    """What the figures were measured on."""
    model = "unknown"
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    hypervisor = "hypervisor" in pathlib.Path("/proc/cpuinfo").read_text()
    return {"cpu": model, "cores": os.cpu_count(), "virtual": hypervisor, "kernel": platform.release()}


class Worker:
    """A process of the suite that runs a repetition whenever it is asked to."""

    def __init__(self, binary: pathlib.Path, core: list[str]):
        self.binary = binary
        self.process = subprocess.Popen([binary, *core, "--on-request"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, env={**os.environ, 'GLIBC_TUNABLES': 'glibc.malloc.hugetlb=1'})
        self._read("ready")

    def _read(self, expected: str | None = None) -> str:
        line = self.process.stdout.readline().strip()
        if not line or (expected and line != expected):
            raise SuiteError(f"{self.binary} broke off: {self.process.stderr.read().strip() or line or 'it said nothing'}")
        return line

    def repetition_ns(self) -> int:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return int(self._read())

    def finish(self) -> None:
        _, errors = self.process.communicate(timeout=60)
        if self.process.returncode != 0:
            raise SuiteError(f"{self.binary}: {errors.strip()}")


def _round(plain: pathlib.Path, instrumented: pathlib.Path, repetitions: int, core: list[str]) -> tuple[list[int], list[int]]:
    """Times in ns of either build, measured in turns, the plain one's first."""
    workers = (Worker(plain, core), Worker(instrumented, core))
    times = ([], [])
    for _ in range(repetitions):
        for side, worker in enumerate(workers):
            times[side].append(worker.repetition_ns())
    for worker in workers:
        worker.finish()
    return times


def _overhead(binaries: Binaries, effort: Effort, core: list[str]) -> dict:
    percents = []
    times = [([], []) for _ in binaries.plain]
    for number in range(effort.rounds):
        layout = number % len(binaries.plain)
        plain, instrumented = _round(binaries.plain[layout], binaries.instrumented[layout], effort.repetitions, core)
        neighbours = [*zip(plain, instrumented), *zip(plain[1:], instrumented)]
        percents.append(100 * (stats.median([ours / theirs for theirs, ours in neighbours]) - 1))
        times[layout][0].extend(plain)
        times[layout][1].extend(instrumented)
    low, high = stats.median_interval(percents)
    fastest = [(min(plain), min(instrumented)) for plain, instrumented in times if plain]
    return {"plain_ns": min(plain for plain, _ in fastest), "overhead_percent": stats.median(percents),
            "interval_percent": [low, high], "rounds_percent": percents,
            "fastest_percent": stats.median([100 * (instrumented / plain - 1) for plain, instrumented in fastest])}


def report_of(binary: pathlib.Path, arguments: list[str], limit_seconds: float = 600) -> dict:
    """What a run of the program prints as JSON."""
    done = subprocess.run([binary, *arguments], capture_output=True, text=True, check=False, timeout=limit_seconds)
    if done.returncode != 0:
        raise SuiteError(f"{binary} {' '.join(arguments)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return json.loads(done.stdout)


def _name_places(binary: pathlib.Path, offsets: list[int]) -> list[str]:
    """Function and line of return addresses, if a symbolizer is installed."""
    symbolizer = shutil.which("llvm-symbolizer-19")
    if not offsets or symbolizer is None:
        return [hex(offset) for offset in offsets]
    addresses = [hex(offset - 1) for offset in offsets]
    done = subprocess.run([symbolizer, f"--obj={binary}", "--basenames", "--output-style=JSON", *addresses],
                          capture_output=True, text=True, check=True)
    frames = [entry["Symbol"][0] for entry in json.loads(done.stdout)]
    return [f"{frame['FunctionName']} ({frame['FileName']}:{frame['Line']})" for frame in frames]


def _slices(binary: pathlib.Path, effort: Effort, options: list[str], quantum_us: int) -> dict:
    report = report_of(binary, [*options, "--slices", f"{quantum_us}us", "--seconds", str(effort.slice_seconds)])
    worst = sorted(report["kernel"]["gap_places"], key=lambda place: -place["gaps"])[:5]
    for place, name in zip(worst, _name_places(binary, [place["at"] for place in worst])):
        place["at"] = name
    report["kernel"]["gap_places"] = worst
    report["control"].pop("gap_places")
    report["gaps_beyond_control"] = stats.excess(report.pop("gaps_by_turn"))
    return report


def _stretches(binary: pathlib.Path, effort: Effort, options: list[str], plain_ns: int) -> dict:
    report = report_of(binary, [*options, "--stretches", str(effort.stretch_repetitions)])
    ends = [end for end in ("from", "to") if end in report]
    for end, name in zip(ends, _name_places(binary, [report[end] for end in ends])):
        report[end] = name
    for place, name in zip(report["hottest"], _name_places(binary, [place["at"] for place in report["hottest"]])):
        place["at"] = name
    report["probes_per_us"] = report["probes"] / plain_ns * 1000
    return report


def digest_of(binary: pathlib.Path, options: list[str]) -> str:
    """What the plain build computes, which every other run of a program that does not know its result shall compute."""
    done = subprocess.run([binary, *options, "--repeat", "1"], capture_output=True, text=True, check=False, timeout=60)
    if done.returncode != 0:
        raise SuiteError(f"{binary}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return done.stdout.split()[-1]


def measure(binaries: Binaries, effort: Effort, arguments: argparse.Namespace) -> dict:
    core = ["--core", str(arguments.core)] if arguments.core is not None else []
    core += ["--expected", digest_of(binaries.plain[0], core)]
    options = [*core, "--probe", arguments.probe]
    overhead = _overhead(binaries, effort, core)
    executed = {"instructions": instructions.compare(binaries.plain[0], binaries.instrumented[0])} if arguments.instructions else {}
    if arguments.null:
        return {"overhead": overhead, **executed}
    instrumented = binaries.instrumented[0]
    stretches = _stretches(instrumented, effort, options, overhead["plain_ns"])
    if stretches["probes"] == 0:
        raise SuiteError(f"{instrumented}: no probe was ever executed; was it built with the pass?")
    return {"overhead": overhead, **executed, "stretches": stretches, "slices": _slices(instrumented, effort, options, arguments.quantum)}
