"""The test of the suite: with probes, and with every probe taken, each program still computes what it shall.

The registers that a probe may change are overwritten each time that one is taken (harness/stub.S).
"""
import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from . import build, programs
from .errors import SuiteError
from .measure import digest_of, report_of

KIND = {"c": "", "rust": " in Rust", "real": " with libraries of others"}
SIZE = ["--size", "test"]
LIMIT_SECONDS = 10  # of a run that takes milliseconds: a broken program may never end


def _check(program: programs.Program, binaries: build.Binaries, probe: str) -> str | None:
    """What is wrong with the program, if anything is."""
    try:
        expected = ["--expected", digest_of(binaries.plain[0], SIZE)]
        digest_of(binaries.instrumented[0], [*SIZE, *expected])
        taken = report_of(binaries.instrumented[0], [*SIZE, *expected, "--probe", probe, "--stretches", "2"], LIMIT_SECONDS)
    except (SuiteError, subprocess.TimeoutExpired) as error:
        return f"{program.name}: {error}"
    if taken["probes"] == 0:
        return f"{program.name}: built with the pass, but no probe was executed"
    # A library's own hashes may depend on addresses.
    if not taken["same_each_time"] and not program.library:
        return f"{program.name}: two repetitions executed different numbers of probes"
    return None


def check(arguments: argparse.Namespace) -> int:
    """Prints what failed; the exit status."""
    chosen = programs.available(programs.select(arguments.only, arguments.half, arguments.language))
    builder = build.Builder(arguments.build_dir, arguments.probe, arguments.distance, arguments.null)
    binaries = builder.build(chosen, layouts=1)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        wrong = [problem for problem in pool.map(lambda p: _check(p, binaries[p.name], arguments.probe), chosen) if problem]
    for problem in wrong:
        print(problem, file=sys.stderr)
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} programs{KIND[arguments.language]} compute the same with every {arguments.probe} probe taken")
    return 1 if wrong else 0
