"""Runs the own tests of programs of others, each process's `main` on a fiber that is suspended at every probe, and goes on in another thread every so many times.

Each suite runs twice, from one build: as it is, and roaming. Both must succeed.
"""
import argparse
import mmap
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import time
from typing import NamedTuple

from . import build, libraries
from .errors import SuiteError
from .suites import SUITES, Suite

HERE = build.ROOT / "target" / "pass-suites"
# Of a suite's build, and of a run of its tests.
LIMIT_SECONDS = 1200
COUNTS = struct.Struct("QQQ")


class Counts(NamedTuple):
    processes: int
    suspensions: int
    moves: int


def _shell(command: str, suite: str, where: pathlib.Path, environment: dict[str, str], what: str) -> float:
    """Seconds that the command took. What it prints goes to a file."""
    log = HERE / f"{suite}.{what}.log"
    begun = time.monotonic()
    with log.open("w") as output:
        try:
            done = subprocess.run(["bash", "-c", command], cwd=where, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                  check=False, timeout=LIMIT_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise SuiteError(f"{suite}: {what}: no end in {LIMIT_SECONDS} s; see {log}") from late
    if done.returncode != 0:
        raise SuiteError(f"{suite}: {what} failed (exit status {done.returncode}); see {log}")
    return time.monotonic() - begun


def _check(name: str, suite: Suite, library: pathlib.Path, stay: int, rebuild: bool) -> str:
    where = HERE / name
    compilers = {"CC": str(build.SUITE / "harness/roaming-cc"), "CXX": str(build.SUITE / "harness/roaming-c++"), "HEADWAY_BIN_DIR": str(build.WRAPPERS),
                 "HEADWAY_ROAMING_DIR": str(library.parent), "LC_ALL": "C"}
    if rebuild or not (where / "headway-built").exists():
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(libraries.SOURCES / name, where, symlinks=True)
        _shell(suite.build, name, where, compilers, "build")
        (where / "headway-built").touch()
    plain = _shell(suite.test, name, where, compilers, "plain")
    counts = HERE / f"{name}.counts"
    counts.write_bytes(bytes(mmap.PAGESIZE))
    roaming = _shell(suite.test, name, where, {**compilers, "HEADWAY_ROAMING": str(stay), "HEADWAY_ROAMING_COUNTS": str(counts)}, "roaming")
    met = Counts(*COUNTS.unpack_from(counts.read_bytes()))
    if met.moves == 0:
        raise SuiteError(f"{name}: its tests never changed threads")
    return f"| {name} | {met.processes} | {met.suspensions} | {met.moves} | {plain:.1f} | {roaming:.1f} |"


def check(arguments: argparse.Namespace) -> int:
    """Prints what each met, and what failed; the exit status."""
    HERE.mkdir(parents=True, exist_ok=True)
    chosen = {name: suite for name, suite in SUITES.items() if not arguments.only or name in arguments.only}
    if not chosen:
        raise SuiteError(f"--only: no such suite; there are {', '.join(SUITES)}")
    fetched = subprocess.run([build.SUITE / "fetch.sh", libraries.SOURCES, *chosen], capture_output=True, text=True, check=False)
    print(fetched.stdout, end="")
    chosen = {name: suite for name, suite in chosen.items() if (libraries.SOURCES / name).is_dir()}
    print("| suite | processes | suspensions | changes of thread | s as it is | s roaming |", flush=True)
    done = 0
    wrong = []
    for name, suite in chosen.items():
        try:
            print(_check(name, suite, arguments.library.resolve(), arguments.stay, arguments.rebuild), flush=True)
            done += 1
        except SuiteError as error:
            wrong.append(str(error))
            print(error, file=sys.stderr, flush=True)
    print(f"{done} of {len(chosen)} suites pass on a fiber that changes threads")
    return 1 if wrong else 0
