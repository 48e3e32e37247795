#!/usr/bin/env python3
"""Builds the torture room and runs it: C, C++ and Rust programs whose requests use what a thread has, and are interrupted in the middle of it.

Each way runs until so many interruptions are over, or its time, under each policy, resumed by its own worker and by any, with the shim and without, and behind each
allocator. A failure prints the command that does it again.
"""
import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WAYS = ROOT / "torture" / "ways"
FLAGS = ["-O2", "-g", "-Wall", "-Wextra", "-Werror", "-fstack-protector-all", f"-I{ROOT}/crates/capi/include", f"-I{WAYS}"]
C, CPP = ["-std=gnu11"], ["-std=c++20"]

# By these all requests may be interrupted; a slice that is shorter than the way between two probes ends at each. By whom an interrupted request may be resumed: under
# the first two that is any worker.
POLICIES = {
    "synergy,q=100ns,parts=ws+wq+cp": ["anywhere"],
    "tardis,q=100ns": ["anywhere"],
    "concord,q=100ns": ["own", "anywhere"],
    "concord,q=1us,dispatcher=dedicated": ["anywhere"],
    "srpt": ["own", "anywhere"],
    "tiny-quanta,q=100ns": ["own", "anywhere"],
}
WORKERS = "2"

# The programs of the room: sources, libraries, and what Debian calls these.
PROGRAMS = {
    "torture": ["main.c", "library.c", "thread_locals.cc", "locks.cc", "exceptions.cc"],
    "torture-c": ["main.c", "library.c", "late.c"],
}
# Real code that joins the first of them where its library is there: the source, a header to look for, how it is linked, the package.
REAL = [
    ("sqlite.c", "sqlite3.h", [], ["-lsqlite3"], "libsqlite3-dev"),
    ("openssl.c", "openssl/ssl.h", [], ["-lssl", "-lcrypto"], "libssl-dev"),
    ("luajit.c", "lua.h", ["-I/usr/include/luajit-2.1"], ["-lluajit-5.1"], "libluajit-5.1-dev"),
    ("protobuf.cc", "google/protobuf/arena.h", [], ["-lprotobuf"], "libprotobuf-dev"),
]
ALLOCATORS = {
    "jemalloc": ("libjemalloc.so.2", "libjemalloc2"),
    "mimalloc": ("libmimalloc.so.2", "libmimalloc2.0"),
    "tcmalloc": ("libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
}
# What a sanitizer's runtime cannot follow, though the program is right.
BEYOND_SANITIZER = {
    "address": {"late_plugin": "its runtime wants the C++ library from the start"},
    "thread": {
        "late_plugin": "its runtime wants the C++ library from the start",
        "once_that_throws": "its pthread_once never ends after an exception",
        "error_checking_mutex": "it reports an unlock that is to be refused",
    },
}
# It sees neither the C library's own locks nor the C++ library's counts of who has an exception.
SUPPRESSIONS = "race:tzset_internal\nrace:exception_of_another_request\n"
# A run that does not end is a failure: a way waits for an answer for a minute itself.
LIMIT_S = 3600


def call(command, **options):
    """Runs a command that is to succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout}{done.stderr}")
    return done.stdout


@dataclass
class Room:
    """Where all is built, and what is there."""

    out: Path
    release: Path  # of the cargo that built libheadway
    sanitizer: str | None = None
    programs: list = field(default_factory=list)
    skipped: list = field(default_factory=list)

    def compiler(self, source):
        name, standard = ("headway-c++", CPP) if source.suffix == ".cc" else ("headway-cc", C)
        return [ROOT / "pass" / "bin" / name, *self.sanitized(), *standard, *FLAGS]

    def sanitized(self):
        return [f"-fsanitize={self.sanitizer}"] if self.sanitizer else []

    def object(self, source, more=()):
        made = self.out / f"{source}.o"
        call([*self.compiler(WAYS / source), *more, "-c", WAYS / source, "-o", made])
        return made

    def library(self, source, name, more=(), probes=True):
        compiler = self.compiler(WAYS / source) if probes else ["cc", "-O2"]
        linked = self.linked() if probes else []
        call([*compiler, *more, "-fPIC", "-shared", WAYS / source, "-o", self.out / f"libtorture_{name}.so", *linked])

    def linked(self):
        return [f"-L{self.out}", "-Wl,-rpath,$ORIGIN", "-lheadway", "-Wl,-z,now", "-lpthread", "-lm"]

    def build(self):
        self.out.mkdir(parents=True, exist_ok=True)
        for name in ["libheadway.so", "libheadway.so.1"]:
            (self.out / name).unlink(missing_ok=True)
            (self.out / name).symlink_to(self.release / "deps" / "libheadway_capi.so")
        shim = sorted((ROOT / "crates/capi/shim").glob("*.c"))
        call(["cc", "-std=gnu11", "-O2", "-fPIC", "-fexceptions", "-shared", *shim, "-o", self.out / "libheadway_shim.so", *self.linked()])
        self.library("library_cell.c", "dynamic", probes=False)
        self.library("library_cell.c", "initial", ["-ftls-model=initial-exec"], probes=False)
        self.library("library_probed.c", "probed")
        self.library("plugin.cc", "plugin")
        real, links = [], []
        for source, header, include, link, package in REAL:
            looked = subprocess.run(["c++", *include, "-x", "c++", "-E", "-"], input=f"#include <{header}>", text=True, capture_output=True)
            if looked.returncode != 0:
                self.skipped.append(f"SKIPPED {source} of the torture room: {header} is not there (apt-get install {package})")
                continue
            real.append(self.object(source, include))
            links += link
        objects = {source: self.object(source) for sources in PROGRAMS.values() for source in sources}
        for name, sources in PROGRAMS.items():
            compiler = "headway-c++" if name == "torture" else "headway-cc"
            more = (real, links) if name == "torture" else ([], [])
            made = [ROOT / "pass" / "bin" / compiler, *self.sanitized(), *[objects[source] for source in sources], *more[0]]
            call([*made, "-o", self.out / name, *self.linked(), *more[1]])
            if self.sanitizer:
                shim = ["-Wl,--no-as-needed", f"-L{self.out}", "-lheadway_shim"]
                call([*made, "-o", self.out / f"{name}-shim", *shim, *self.linked(), *more[1]])
        for way, why in BEYOND_SANITIZER.get(self.sanitizer, {}).items():
            self.skipped.append(f"SKIPPED {way} of the torture room under the {self.sanitizer} sanitizer: {why}")
        self.programs = [self.out / "torture", self.out / "torture-c", self.release / "headway-torture"]

    def started(self, program, variant):
        """The executable of a variant (names joined by `+`), and what stands before the C library in it."""
        parts = [part for part in variant.split("+") if part != "plain"]
        if self.sanitizer and "shim" in parts:
            # Linked: children of a request have no sanitizer's runtime, without which a preloaded shim does not load.
            return program.with_name(f"{program.name}-shim"), ""
        return program, ":".join(str(self.out / "libheadway_shim.so") if part == "shim" else ALLOCATORS[part][0] for part in parts)

    def options(self):
        """What a sanitizer is to do, and which ways are left out for it."""
        if not self.sanitizer:
            return {}
        suppressions = self.out / "suppressions"
        suppressions.write_text(SUPPRESSIONS)
        return {
            "TORTURE_WITHOUT": " ".join(BEYOND_SANITIZER[self.sanitizer]),
            # Frames that it keeps elsewhere would not be searched for what they own (docs/fibers.md).
            "ASAN_OPTIONS": "detect_stack_use_after_return=0",
            "TSAN_OPTIONS": f"suppressions={suppressions}",
            # The thread sanitizer's frames are larger than a fiber's stack has room for in a backtrace.
            "RUST_BACKTRACE": "0",
        }

    def has(self, allocator):
        library, package = ALLOCATORS[allocator]
        tried = subprocess.run(["true"], env={"LD_PRELOAD": library, "PATH": os.environ["PATH"]}, capture_output=True, text=True)
        if tried.stderr:
            self.skipped.append(f"SKIPPED {allocator} in the torture room: {library} is not there (apt-get install {package})")
        return not tried.stderr


def replay(sanitizer, program, variant, policy, resume, way):
    target = f"test-torture-sanitized SANITIZERS={sanitizer}" if sanitizer else "test-torture"
    return f"make {target} SWITCHES=100000 TORTURE=\"--replay '{program.name} {variant} {policy} {resume} {way}'\""


def run(room, program, variant, policy, resume, switches, ms, only=None):
    """One program under one policy. Its interruptions by way, and what failed."""
    environment = {**os.environ, "TORTURE_MS": str(ms), "LD_LIBRARY_PATH": str(room.out), **room.options()}
    executable, preload = room.started(program, variant)
    if preload:
        environment["LD_PRELOAD"] = preload
    command = [str(executable), policy, WORKERS, resume, str(switches), *([only] if only else [])]
    begun = time.monotonic()
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace", timeout=LIMIT_S)
        status, said, out = done.returncode, done.stderr, done.stdout
    except subprocess.TimeoutExpired as late:
        status, said, out = "none within an hour", "", (late.stdout or b"").decode(errors="replace")
    taken, failed = Counter(), []
    last = None
    for line in out.splitlines():
        words = line.split()
        if len(words) == 3 and words[1].isdigit() and words[2].isdigit():
            last = words[0]
            taken[last] += int(words[1])
            if words[2] != "0":
                failed.append(last)
    if only and out.startswith("ways 0 "):
        return taken, failed  # This program has no such way.
    if status != 0 and not failed:
        failed.append(f"(after {last})" if last else "(at the start)")
    label = f"{program.name:16} {variant:14} {policy:32} {resume:9}"
    print(f"{label} {len(taken):4} ways {sum(taken.values()):9} switches {len(failed):3} failed {time.monotonic() - begun:6.1f} s", flush=True)
    if failed or status != 0:
        print("\n".join(said.splitlines()[-40:]))
        print(f"status {status}")
        for way in failed:
            print(f"FAILED {way}: repeat it by {replay(room.sanitizer, program, variant, policy, resume, way)}")
    return taken, failed


def runs(room, thorough):
    """All that is to run: program, variant, policy, resume."""
    chosen = []
    # A sanitizer's allocator takes the place of any other.
    allocators = [name for name in ALLOCATORS if not room.sanitizer and room.has(name)]
    for program in room.programs:
        for policy in POLICIES:
            for resume in POLICIES[policy]:
                variants = ["plain"] if program.name == "headway-torture" else ["plain", "shim"]
                chosen += [(program, variant, policy, resume) for variant in variants]
        for number, allocator in enumerate(allocators):
            for policy in POLICIES if thorough else [list(POLICIES)[number % len(POLICIES)]]:
                chosen.append((program, allocator, policy, "anywhere"))
    if "jemalloc" in allocators:
        chosen.append((room.programs[0], "shim+jemalloc", "tiny-quanta,q=100ns", "anywhere"))
    return chosen


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--switches", type=int, default=300, help="interruptions of each way in each run; from 10000 on all allocators meet all policies")
    options.add_argument("--ms", type=int, help="a way's time in each run: 20 ms, and a minute from 10000 switches on")
    options.add_argument("--replay", help="'PROGRAM VARIANT POLICY RESUME WAY' alone")
    options.add_argument("--only", help="one way alone")
    options.add_argument("--without", metavar="POLICY", action="append", default=[], choices=POLICIES, help="leave this policy out (may be repeated)")
    options.add_argument("--sanitizer", choices=["address", "thread"], help="the one that all is built with, what cargo built too")
    options.add_argument("--release", type=Path, required=True, help="where cargo has put libheadway_capi.so and headway-torture")
    options.add_argument("--out", type=Path, required=True, help="where to build")
    options = options.parse_args()
    room = Room(options.out.resolve(), options.release.resolve(), options.sanitizer)
    room.build()
    thorough = options.switches >= 10000
    ms = options.ms or (60000 if thorough else 20)
    if options.replay:
        name, variant, policy, resume, way = options.replay.split()
        program = next(program for program in room.programs if program.name == name)
        _, failed = run(room, program, variant, policy, resume, options.switches, 60000, way)
        return int(bool(failed))
    sums, wrong, passed = {resume: Counter() for resume in ["own", "anywhere"]}, 0, 0
    for program, variant, policy, resume in [a_run for a_run in runs(room, thorough) if a_run[2] not in options.without]:
        taken, failed = run(room, program, variant, policy, resume, options.switches, ms, options.only)
        # The C programs share their ways; those in Rust are others.
        language = "in Rust" if program.name == "headway-torture" else "in C or C++"
        sums[resume].update({f"{way}, {language}": switches for way, switches in taken.items()})
        wrong += len(failed)
        passed += len(taken) - len(failed)
    if options.only and passed + wrong == 0:
        sys.exit(f"no program of the room has a way called {options.only}")
    for resume, ways in sums.items():
        for way in [way for way, switches in ways.items() if switches == 0]:
            wrong += 1
            print(f"FAILED {way}: never interrupted, resumed by {resume}")
    for skip in room.skipped:
        print(skip)
    for resume, ways in [(resume, ways) for resume, ways in sums.items() if ways]:
        often, rarest = sum(switches >= options.switches for switches in ways.values()), min(ways, key=ways.get)
        print(f"resumed by {resume}: {often} of {len(ways)} ways interrupted {options.switches} times or more in all runs, the rarest {ways[rarest]} times ({rarest})")
    print(f"{len(set().union(*sums.values()))} ways, {sum(sum(ways.values()) for ways in sums.values())} switches")
    print(f"{passed} passed, {wrong} failed, {len(room.skipped)} skipped")
    return int(wrong > 0)


sys.exit(main())
