"""How many instructions a program executes, by valgrind: a figure that no neighbour of the machine disturbs.

Those of `kernel_run` and all that it calls count, the C library's among them.
"""
import os
import pathlib
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from .build import Binaries
from .errors import SuiteError
from .programs import HALVES, Program


def why_not() -> str | None:
    """Why instructions cannot be counted here, if they cannot."""
    return None if shutil.which("valgrind") else "instructions are not counted: that needs valgrind (apt-get install valgrind)"


def _count(binary: pathlib.Path) -> int:
    # Valgrind gives up on what newer compilers write about lines, so it runs a copy without that.
    copy = binary.with_name(binary.name + ".bare")
    subprocess.run(["strip", "--strip-debug", "-o", copy, binary], check=True)
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=kernel_run", copy, "--repeat", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    collected = re.search(r"Collected *: *(\d+)", done.stderr)
    if done.returncode != 0 or collected is None or int(collected[1]) == 0:
        raise SuiteError(f"{binary} under valgrind: {done.stderr.strip()[-500:] or f'exit status {done.returncode}'}")
    return int(collected[1])


def compare(plain: pathlib.Path, instrumented: pathlib.Path) -> dict:
    """What either build executes, and by how much the instrumented one executes more."""
    counts = _count(plain), _count(instrumented)
    return {"plain": counts[0], "instrumented": counts[1], "overhead_percent": 100 * (counts[1] / counts[0] - 1)}


def count_all(chosen: list[Program], binaries: dict[str, Binaries]) -> list[dict]:
    """The same of many programs, several at a time: a busy machine changes nothing."""
    def count(program: Program) -> dict:
        sides = binaries[program.name]
        return {"name": program.name, "half": program.half, **compare(sides.plain[0], sides.instrumented[0])}

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(count, chosen))


def text(results: list[dict]) -> str:
    """A line a program, and one a half."""
    lines = []
    for half in HALVES:
        part = [result for result in results if result["half"] == half]
        lines += [f"{result['name']:12} {half:8} {result['plain'] / 1e6:8.1f} M {result['overhead_percent']:+6.2f} %" for result in part]
        if part:
            percents = [result["overhead_percent"] for result in part]
            lines.append(f"{half}: {sum(percents) / len(percents):+.2f} % on average, {max(percents):+.2f} % at worst")
    return "\n".join(lines)
