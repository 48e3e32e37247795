"""How many instructions a program executes, by valgrind: a figure that no neighbour of the machine disturbs.

Those of `kernel_run` and all that it calls count, the C library's among them.
"""
import pathlib
import re
import shutil
import subprocess

from .errors import SuiteError


def why_not() -> str | None:
    """Why instructions cannot be counted here, if they cannot."""
    return None if shutil.which("valgrind") else "instructions are not counted: that needs valgrind (apt-get install valgrind)"


def _count(binary: pathlib.Path) -> int:
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=kernel_run", binary, "--repeat", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    collected = re.search(r"Collected *: *(\d+)", done.stderr)
    if done.returncode != 0 or collected is None or int(collected[1]) == 0:
        raise SuiteError(f"{binary} under valgrind: {done.stderr.strip()[-500:] or f'exit status {done.returncode}'}")
    return int(collected[1])


def compare(plain: pathlib.Path, instrumented: pathlib.Path) -> dict:
    """What either build executes, and by how much the instrumented one executes more."""
    counts = _count(plain), _count(instrumented)
    return {"plain": counts[0], "instrumented": counts[1], "overhead_percent": 100 * (counts[1] / counts[0] - 1)}
