"""Each program's work as a request of a server, which interrupts it in the middle while others wait, and resumes it at its own worker or at any: the result stays what it is.

The server is libheadway's, the request owns a thread's state, and its code and its library's are built with the pass (harness/served.c).
"""
import argparse
import json
import pathlib
import subprocess
import sys

from . import build, programs
from .errors import SuiteError
from .measure import digest_of

# By whom an interrupted request may be resumed, and by which policy: its slice ends at each probe that lies 100 ns behind the last.
WAYS = [("own", "tiny-quanta,q=100ns"), ("anywhere", "tardis,q=100ns"), ("anywhere", "concord,q=100ns")]
# Of a program in each way: until it was interrupted so often, or for so long.
INTERRUPTIONS, SECONDS = 100_000, 5
LIMIT_SECONDS = 300
SIZE = ["--size", "test"]


def _link(builder: build.Builder, program: programs.Program, code: list[pathlib.Path], library: pathlib.Path) -> pathlib.Path:
    output = builder.directory / "served" / program.name
    output.parent.mkdir(exist_ok=True)
    for name in ("libheadway.so", "libheadway.so.1"):
        link = output.with_name(name)
        link.unlink(missing_ok=True)
        link.symlink_to(library.resolve())
    main = output.with_name("served.o")
    headers = [f"-I{build.ROOT}/crates/capi/include"]
    build.run([build.wrapper("headway-cc"), "-O2", "-Wall", "-Wextra", build.STANDARD[False], *headers, "-c", build.SUITE / "harness/served.c", "-o", main], "compiling served.c")
    linker = build.wrapper("headway-c++" if program.is_cxx else "headway-cc")
    build.run([linker, main, *code, f"-L{output.parent}", "-Wl,-rpath,$ORIGIN", "-Wl,-z,now", "-lheadway", "-lm", "-lpthread", "-o", output], f"linking {program.name}")
    return output


def _go(program: pathlib.Path, resume: str, policy: str, expected: str) -> dict:
    """What a run counted."""
    command = [program, policy, resume, "test", str(INTERRUPTIONS), str(SECONDS), expected]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise SuiteError(f"{program.name}, {policy}, {resume}: no end in {LIMIT_SECONDS} s") from late
    if done.returncode != 0:
        raise SuiteError(f"{program.name}, {policy}, {resume}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return json.loads(done.stdout)


def _check(program: programs.Program, builder: build.Builder, library: pathlib.Path) -> str | None:
    """Prints what each way counted. What is wrong with the program, if anything is."""
    try:
        plain = builder.build([program], layouts=1)[program.name].plain[0]
        served = _link(builder, program, builder.compile(program, True), library)
        expected = digest_of(plain, SIZE)
        counts = [(resume, policy, _go(served, resume, policy, expected)) for resume, policy in WAYS]
    except SuiteError as error:
        return f"{program.name}: {error}"
    for resume, policy, count in counts:
        print(f"{program.name:16} {policy:22} {resume:9} {count['interruptions']:8} interruptions, {count['repetitions']:6} repetitions, {count['moved']:6} changed threads", flush=True)
        if count["interruptions"] == 0:
            return f"{program.name}, {policy}, {resume}: never interrupted"
    return None


def check(arguments: argparse.Namespace) -> int:
    """Prints what failed; the exit status."""
    if not arguments.served.exists():
        raise SuiteError(f"{arguments.served} is missing: `cargo build --release -p headway-capi` builds it")
    chosen = [program for program in programs.available(programs.select(arguments.only, arguments.half, arguments.language)) if not program.is_rust]
    builder = build.Builder(arguments.build_dir, "flag", arguments.distance, False)
    wrong = [problem for program in chosen if (problem := _check(program, builder, arguments.served))]
    for problem in wrong:
        print(problem, file=sys.stderr)
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} programs compute the same in a request that is interrupted")
    return 1 if wrong else 0
