"""Ctrl-C and cutoffs end runs; other threads go on meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

import headway


def ends_by_ctrl_c(code: str) -> None:
    """Runs a program that says that it has begun, and then that it was interrupted."""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout
    assert child.stdout.readline() == "begun\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    try:
        out, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert (out, child.returncode) == ("interrupted\n", 0)


ENDLESS = 10**10

HEARS = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


@pytest.fixture(autouse=True)
def hears_ctrl_c() -> None:
    """A shell starts what runs in its background with Ctrl-C ignored, and Python leaves it so."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    "call",
    [
        f"headway.simulate('darc', requests={ENDLESS})",
        f"headway.simulate('pallas', servers=8, requests={ENDLESS})",
        f"headway.simulate('shenango', workers=8, load=0.5, requests={ENDLESS})",
        f"headway.sweep(['darc'], loads=[0.5, 0.6], requests={ENDLESS}, threads=2)",
        f"headway.capacity(['darc'], requests={ENDLESS})",
        "headway.plan(policies=['darc'], requests='3M', replications=1000)",
    ],
)
def test_ctrl_c_ends_a_run(call: str) -> None:
    code = f"{HEARS}\nimport headway\nprint('begun', flush=True)\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')"
    ends_by_ctrl_c(code)


def test_ctrl_c_ends_a_role_that_never_returns_on_threads() -> None:
    # Nothing is said beside that: no thread ends in a traceback.
    code = f"""{HEARS}
import logging, sys, headway
sys.stderr = sys.stdout
logging.basicConfig(stream=sys.stdout)
class Endless(headway.ServerPolicy):
    name = "endless"

    def ingress(self, shape):
        while True:
            pass

print("begun", flush=True)
try:
    headway.sweep([Endless()], loads=[0.3, 0.4, 0.5, 0.6, 0.7], threads=2)
except KeyboardInterrupt:
    print("interrupted")
"""
    ends_by_ctrl_c(code)


@pytest.mark.parametrize("call", [{"policy": "darc"}, {"policy": "pallas", "servers": 4}, {"policy": "shenango", "workers": 6}], ids=str)
def test_a_signal_that_a_thread_raises_meanwhile_ends_a_run(call: dict[str, Any]) -> None:
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))

    def run() -> None:
        timer.start()
        headway.simulate(**call, requests=ENDLESS)

    with pytest.raises(KeyboardInterrupt):
        run()
    timer.join()


@pytest.mark.parametrize("call", [{"policy": "pallas", "servers": 4}, {"policy": "shenango", "workers": 6}], ids=str)
def test_a_cutoff_ends_a_racks_and_a_hosts_run_with_the_figures_until_then(call: dict[str, Any]) -> None:
    cutoff = headway.Cutoff()
    timer = threading.Timer(0.3, cutoff.cut)
    timer.start()
    result = headway.simulate(**call, requests=ENDLESS, cutoff=cutoff)
    timer.join()
    assert result.cut_off
    assert result.run.requests < ENDLESS


def test_a_cutoff_ends_a_run_from_another_thread_which_needs_the_lock() -> None:
    cutoff = headway.Cutoff()
    turns = 0

    def cut() -> None:
        nonlocal turns
        # Not reached if the run kept the interpreter's lock.
        while turns < 1_000:
            turns += 1
            time.sleep(0)
        cutoff.cut()

    other = threading.Thread(target=cut)
    other.start()
    result = headway.simulate("darc", requests=ENDLESS, cutoff=cutoff)
    other.join()
    assert result.cut_off
    assert cutoff.is_cut
    assert 0 < result.run.requests < ENDLESS


def test_an_exception_of_the_progress_ends_the_work() -> None:
    def fail(done: int, _: int) -> None:
        if done:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        headway.sweep(["darc"], loads="0.1..0.9:0.01", requests=5_000, progress=fail)
    with pytest.raises(ZeroDivisionError):
        headway.plan(policies=["darc"], requests=5_000, replications=2, progress=fail)


def test_a_signal_without_meaning_disturbs_nothing() -> None:
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    timer = threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    timer.start()
    run = headway.simulate("darc", requests=400_000).run
    timer.join()
    signal.signal(signal.SIGUSR1, before)
    assert run.requests == 400_000
    assert seen == [1]
