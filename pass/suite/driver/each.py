"""What each kind of probe costs: one process of each build takes turns with the plain one, so that all meet the same machine.

`flag` has its flag down, as where another thread keeps time. `self` is the same build with its flag up always, so that every probe calls and some
read the clock, in slices of 20 µs. `tsc` is built with probes that count down to a reading.
"""
import argparse
import pathlib

from . import measure, stats
from .build import Builder
from .programs import Program

KINDS = ("flag", "self", "tsc")


def _ratios(sides: dict[str, tuple[pathlib.Path, list[str]]], rounds: int, repetitions: int) -> dict[str, list[float]]:
    """Of each kind the times of its repetitions, as parts of the plain build's beside them."""
    ratios: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(rounds):
        workers = {kind: measure.Worker(binary, options) for kind, (binary, options) in sides.items()}
        for _ in range(repetitions):
            times = {kind: worker.repetition_ns() for kind, worker in workers.items()}
            for kind in KINDS:
                ratios[kind].append(times[kind] / times["plain"])
        for worker in workers.values():
            worker.finish()
    return ratios


def measure_each(chosen: list[Program], effort: measure.Effort, arguments: argparse.Namespace) -> list[dict]:
    """Of each program the percents that it is slower with each kind of probe."""
    builds = {probe: Builder(arguments.build_dir, probe, arguments.distance, False).build(chosen, layouts=1) for probe in ("flag", "tsc")}
    core = ["--core", str(arguments.core)] if arguments.core is not None else []
    results = []
    for program in chosen:
        flag, tsc = (builds[probe][program.name] for probe in ("flag", "tsc"))
        options = [*core, "--expected", measure.digest_of(flag.plain[0], core)]
        sides = {"plain": (flag.plain[0], options), "flag": (flag.instrumented[0], options),
                 "self": (flag.instrumented[0], [*options, "--probe", "self"]), "tsc": (tsc.instrumented[0], [*options, "--probe", "tsc"])}
        ratios = _ratios(sides, effort.rounds, effort.repetitions)
        slices = measure.report_of(flag.instrumented[0], [*options, "--probe", "self", "--slices", "20us", "--seconds", str(effort.slice_seconds)])
        results.append({"name": program.name, "half": program.half, "self_p99_ns": slices["kernel"]["p99_ns"], "control_p99_ns": slices["control"]["p99_ns"],
                        **{kind: 100 * (stats.median(ratios[kind]) - 1) for kind in KINDS}})
    return results


def text(results: list[dict]) -> str:
    """As Markdown."""
    lines = ["| program | half | flag down | self-timed | `tsc` | p99 of a self-timed 20 µs | of a bare loop |", "|---|---|--:|--:|--:|--:|--:|"]
    for result in results:
        percents = " | ".join(f"{result[kind]:+.1f} %" for kind in KINDS)
        lines.append(f"| {result['name']} | {result['half']} | {percents} | {result['self_p99_ns'] / 1000:.1f} µs | {result['control_p99_ns'] / 1000:.1f} µs |")
    averages = " | ".join(f"{sum(result[kind] for result in results) / len(results):+.1f} %" for kind in KINDS)
    return "\n".join([*lines, f"| average | | {averages} | | |"])
