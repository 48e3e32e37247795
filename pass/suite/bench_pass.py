#!/usr/bin/env python3
"""Measures what the compiler pass costs and how well it keeps a quantum.

Every program of the suite is built plain and instrumented, and measured three ways (`driver/measure.py`): the overhead of
probes that are never taken, the lengths of slices under a flag that another core raises, and the distance between probes.
`docs/preemption-overhead.md` explains the method.
"""
import argparse
import json
import pathlib
import sys

from driver import build, check, each, instructions, measure, programs, served, table
from driver.errors import SuiteError

QUICK = measure.Effort(rounds=4, repetitions=8, slice_seconds=0.4, stretch_repetitions=3)
FULL = measure.Effort(rounds=16, repetitions=24, slice_seconds=2.0, stretch_repetitions=7)
REAL = measure.Effort(rounds=8, repetitions=24, slice_seconds=0.5, stretch_repetitions=5)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="only test that every program computes the same with probes")
    parser.add_argument("--served", metavar="LIBHEADWAY", type=pathlib.Path, help="only test that every program computes the same in a request of a server of this library, which is interrupted and resumed anywhere")
    parser.add_argument("--quick", action="store_true", help="a first impression: few rounds, short runs")
    parser.add_argument("--only", metavar="NAME", action="append", help="this program only (may be repeated)")
    parser.add_argument("--half", choices=programs.HALVES, help="this half only")
    parser.add_argument("--language", choices=programs.LANGUAGES, default="c", help="C and C++ (default), the programs that are written in Rust as well, or real: libraries of others, fetched from the distribution")
    parser.add_argument("--probe", choices=("flag", "tsc"), default="flag", help="what probes look at (default: flag)")
    parser.add_argument("--each-probe", action="store_true", help="what each way to end a slice costs, beside one another: a flag that is down, one that is up always so that probes read the clock, probes that count down")
    parser.add_argument("--distance", type=int, metavar="N", help="the pass's -headway-probe-distance")
    parser.add_argument("--quantum", type=int, metavar="US", default=5, help="of the slices, in µs (default: 5)")
    parser.add_argument("--rounds", type=int, metavar="N", help="pairs of processes per program")
    parser.add_argument("--seconds", type=float, metavar="S", help="of slices per program")
    parser.add_argument("--instructions", action="store_true", help="count instructions as well, by valgrind (always with --language real)")
    parser.add_argument("--instructions-only", action="store_true", help="count instructions and measure nothing else: as good on a busy machine")
    parser.add_argument("--null", action="store_true", help="plain builds on both sides: what the method makes of nothing")
    parser.add_argument("--show", metavar="FILE", nargs="+", help="print what earlier runs wrote; measure nothing")
    parser.add_argument("-o", "--output", metavar="FILE", type=pathlib.Path, help="write the results as JSON")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--places", action="store_true", help="print where most probes are executed, and where the fewest are")
    parser.add_argument("--build-dir", metavar="DIR", type=pathlib.Path, default=build.DEFAULT_DIRECTORY,
                        help="where objects and programs go (default: target/pass-suite)")
    parser.add_argument("--core", type=int, metavar="K", help="the core to run programs on (default: the highest)")
    arguments = parser.parse_args()
    # A countdown's length depends on the clock, and under valgrind the clock runs on while the program stands almost still.
    counted = arguments.probe == "flag"
    arguments.instructions |= arguments.language == "real" and counted
    why = instructions.why_not() if counted else "instructions of programs with probes that time themselves depend on the clock, so they cannot be counted"
    if arguments.instructions_only and why:
        parser.error(f"--instructions-only: {why}")
    if arguments.instructions and why:
        print(f"SKIPPED: {why}", file=sys.stderr)
        arguments.instructions = False
    return arguments


def effort_of(arguments: argparse.Namespace) -> measure.Effort:
    effort = QUICK if arguments.quick else REAL if arguments.language == "real" else FULL
    if arguments.rounds:
        effort = effort._replace(rounds=arguments.rounds)
    if arguments.seconds:
        effort = effort._replace(slice_seconds=arguments.seconds)
    return effort


def load_results(files: list[str]) -> list[dict]:
    results = []
    for name in files:
        try:
            results += json.loads(pathlib.Path(name).read_text())["programs"]
        except (OSError, ValueError, KeyError) as error:
            raise SuiteError(f"cannot read results from {name}: {error}") from error
    return sorted(results, key=lambda result: result["name"])


def measure_all(arguments: argparse.Namespace) -> list[dict]:
    chosen = programs.available(programs.select(arguments.only, arguments.half, arguments.language))
    builder = build.Builder(arguments.build_dir, arguments.probe, arguments.distance, arguments.null)
    if arguments.instructions_only:
        return instructions.count_all(chosen, builder.build(chosen, layouts=1))
    effort = effort_of(arguments)
    binaries = builder.build(chosen, layouts=min(build.LAYOUTS, effort.rounds))
    results = []
    for program in chosen:
        result = measure.measure(binaries[program.name], effort, arguments)
        results.append({"name": program.name, "half": program.half, "row": program.row, "language": arguments.language, "probe": arguments.probe, **result})
        print(table.progress(results[-1]), file=sys.stderr, flush=True)
    return results


def main() -> int:
    arguments = parse_arguments()
    if arguments.check:
        return check.check(arguments)
    if arguments.served:
        return served.check(arguments)
    if arguments.each_probe:
        chosen = programs.available(programs.select(arguments.only, arguments.half, arguments.language))
        print(each.text(each.measure_each(chosen, effort_of(arguments), arguments)))
        return 0
    results = load_results(arguments.show) if arguments.show else measure_all(arguments)
    if arguments.instructions_only:
        print(instructions.text(results))
        return 0
    if not results:
        print("SKIPPED: nothing is left to measure")
        return 0
    if arguments.output:
        document = {"machine": measure.machine(), "compiler": build.compiler_version(arguments.language), "programs": results}
        arguments.output.write_text(json.dumps(document, indent=1) + "\n")
    print(table.places(results) if arguments.places else table.markdown(results) if arguments.markdown else table.text(results))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SuiteError as error:
        sys.exit(f"bench_pass: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
