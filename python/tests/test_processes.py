"""Processes: they end with the one that began them, and where they cannot work, an error says what to do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SWEEP = 'headway.sweep({policy}, loads=[0.3, 0.5], requests={requests}, on="processes", threads=2, progress={progress})'

POLICY = """class Mine(headway.ServerPolicy):
    name = "mine"

    def ingress(self, shape):
        {body}"""


def said(program: str, folder: Path) -> str:
    """The last line that a program says as it fails."""
    path = folder / "program.py"
    path.write_text(program)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, (done.stdout, done.stderr)
    # Once: a process that reads the program again is silent.
    assert done.stderr.count("bootstrapping phase") == 0, done.stderr
    return done.stderr.splitlines()[-1]


def sweep(policy: str = "'darc'", requests: int = 10_000, progress: str = "False") -> str:
    return SWEEP.format(policy=policy, requests=requests, progress=progress)


def under_guard(*lines: str) -> str:
    body = "\n".join(lines).replace("\n", "\n    ")
    return f'import headway\nif __name__ == "__main__":\n    {body}\n'


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_the_one_that_began_them(tmp_path: Path, by: signal.Signals) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        under_guard(
            sweep(requests=3_000_000, progress="lambda done, _: done and print('begun', flush=True)").replace("[0.3, 0.5]", "'0.1..0.9:0.001'")
        )
    )
    child = subprocess.Popen([sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
    assert child.stdout
    try:
        assert child.stdout.readline() == "begun\n"
        child.send_signal(by)
        # The output ends when nobody has it any more: neither a process of the pool nor the tracker of their semaphores.
        child.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        raise
    assert child.returncode == -by


def test_a_program_without_a_guard_is_told_of_it(tmp_path: Path) -> None:
    assert 'sweep under `if __name__ == "__main__":`' in said(f"import headway\n{sweep()}\n", tmp_path)


def test_a_class_under_the_guard_is_named(tmp_path: Path) -> None:
    line = said(under_guard(POLICY.format(body="pass"), sweep("Mine()")), tmp_path)
    assert line.startswith("headway.HeadwayError: on: 'processes'")
    assert "Can't get attribute 'Mine'" in line


def test_a_class_that_cannot_be_sent_is_named(tmp_path: Path) -> None:
    made = "def made():\n    " + POLICY.format(body="pass").replace("\n", "\n    ") + "\n    return Mine()"
    line = said(under_guard(made, sweep("made()")), tmp_path)
    assert line.startswith("headway.HeadwayError: on: 'processes'")
    assert "Mine" in line


def test_an_exception_that_cannot_be_sent_is_named(tmp_path: Path) -> None:
    body = "error = KeyError('of mine')\n        error.more = lambda: None\n        raise error"
    line = said(f"import headway\n{POLICY.format(body=body)}\n{under_guard(sweep('Mine()'))}", tmp_path)
    assert line == "headway.HeadwayError: KeyError: 'of mine'"


def test_a_daemon_is_told_that_it_has_no_processes(tmp_path: Path) -> None:
    begin = "one = multiprocessing.get_context('spawn').Process(target=f, daemon=True)\none.start()\none.join()\nexit(one.exitcode)"
    line = said(f"import headway, multiprocessing\ndef f():\n    {sweep()}\n{under_guard(begin)}", tmp_path)
    assert line.startswith("headway.HeadwayError: on: 'processes': this process is a daemon")
