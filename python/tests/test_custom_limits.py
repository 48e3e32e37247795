"""What a policy in Python may not say is refused in a sentence, and its runs end when they are told to."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import pytest
from test_custom import Central, FirstCome, Unplaced
from test_interrupt import ends_by_ctrl_c

import headway
from headway import HeadwayError
from headway._native import Shape

NEVER = 2**64 - 1


class OneLocal(Unplaced):
    """Each worker decides as the role that is given."""

    def __init__(self, role: Any, **more: Any) -> None:
        self.role = role
        for name, value in more.items():
            setattr(self, name, value)

    def local(self, shape: Shape, worker: int) -> Any:
        return self.role


class OneMonitor(Central):
    def __init__(self, role: Any) -> None:
        self.role = role

    def monitor(self, shape: Shape) -> Any:
        return self.role


class Late(headway.Monitor):
    def __init__(self, first_ns: int, then_ns: int) -> None:
        self.first_ns, self.then_ns = first_ns, then_ns

    def started(self, now_ns: int, worker: int, job: headway.Job, epoch: int) -> int:
        return self.first_ns

    def expired(self, now_ns: int, worker: int, wanted: bool) -> int:
        return self.then_ns


class Long(headway.Local):
    def __init__(self, slice_ns: int, renewed_ns: int) -> None:
        self.slice_ns, self.renewed_ns = slice_ns, renewed_ns

    def next(self, now_ns: int, queues: Any) -> headway.Take:
        return headway.Take("shared", slice_ns=self.slice_ns)

    def renew(self, now_ns: int, queues: Any) -> int:
        return self.renewed_ns


def figures(policy: Any) -> Any:
    run = headway.simulate(policy, workers=2, requests=3_000, seed=3).run
    return run.details["overall"], run.details["classes"]


@pytest.mark.parametrize("role", [Late(NEVER, 1), Late(500, NEVER), Late(2**63, 2**63)])
def test_a_monitor_that_looks_at_the_end_of_time_never_looks(role: Any) -> None:
    assert figures(OneMonitor(role)) == figures("c-fcfs")


@pytest.mark.parametrize("role", [Long(NEVER, 1), Long(500, NEVER), Long(2**63, 2**63)])
def test_a_slice_to_the_end_of_time_never_ends(role: Any) -> None:
    assert figures(OneLocal(role)) == figures("c-fcfs")


class Answers(headway.Local):
    def __init__(self, given: Any) -> None:
        self.given = given

    def next(self, now_ns: int, queues: Any) -> Any:
        return self.given


class Wordy(headway.Monitor):
    def started(self, now_ns: int, worker: int, job: headway.Job, epoch: int) -> Any:
        return "soon"


class Stale(headway.Monitor):
    """It wants an assignment interrupted that ended, again and again."""

    def poll(self, now_ns: int, waiting: int) -> tuple[int, int] | None:
        return (0, 0)


@pytest.mark.parametrize(
    ("policy", "part"),
    [
        (OneLocal(None, depth=-1), "policy: "),
        (OneLocal(None, depth=0), "policy: depth is 1 or more"),
        (OneLocal(None, name=5), "policy: "),
        (OneLocal(None, shared_queues=2**40), "policy: shared_queues is 1 to 65536"),
        (OneLocal(None, switch_ns=NEVER), "policy: notif_ns, switch_ns and next_ns are 1 s"),
        (OneLocal(None, notif_ns=NEVER), "policy: notif_ns, switch_ns and next_ns are 1 s"),
        (OneLocal(None, next_ns=10**9 + 1), "policy: notif_ns, switch_ns and next_ns are 1 s"),
        (OneLocal(Answers(headway.Take("shared", queue=5))), "next: there is no shared queue 5, only 0 to 0"),
        (OneLocal(Answers(("own", None))), "next: gives a headway.Take or None, not ('own', None)"),
        (OneLocal(Late(1, 1)), "local: gives a headway.Local or None, not <"),
        (OneMonitor(FirstCome), "monitor: gives a headway.Monitor or None, not <class"),
        (OneMonitor(Wordy()), "started: gives ns or None, not 'soon'"),
        (OneLocal(Answers(None)), "next: requests were accepted and never run to their end: workers idle beside them"),
        (OneMonitor(Stale()), "poll: epoch 0 of worker 0 was to be interrupted twice at "),
    ],
)
def test_what_no_server_can_be_or_do_is_refused(policy: Any, part: str) -> None:
    with pytest.raises(HeadwayError) as refused:
        headway.simulate(policy, workers=2, requests=1_000)
    assert part in str(refused.value)


def test_the_check_refuses_a_shared_queue_that_is_not_there() -> None:
    with pytest.raises(HeadwayError, match="there is no shared queue 5"):
        headway.check_policy(OneLocal(Answers(headway.Take("shared", queue=5))), requests=100)


class Raising(FirstCome):
    def finished(self, now_ns: int, worker: int, job_id: int, cpu_ns: int) -> None:
        raise ZeroDivisionError


def test_a_fault_in_one_run_leaves_another_with_the_same_cutoff_alone() -> None:
    class Failing(Central):
        def ingress(self, shape: Shape) -> headway.Ingress:
            return Raising(shape)

    cutoff = headway.Cutoff()
    with pytest.raises(ZeroDivisionError):
        headway.simulate(Failing(), requests=1_000, cutoff=cutoff)
    assert not cutoff.is_cut
    result = headway.simulate("darc", requests=20_000, cutoff=cutoff)
    assert (result.run.requests, result.cut_off) == (20_000, False)


def test_a_cutoff_still_ends_a_run_of_a_policy_in_python() -> None:
    cutoff = headway.Cutoff()
    timer = threading.Timer(0.2, cutoff.cut)
    timer.start()
    result = headway.simulate(Central(), requests=10**9, cutoff=cutoff)
    timer.join()
    assert result.cut_off


PRELUDE = """
import signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import headway

class Endless(headway.Local):
    def next(self, now_ns, queues):
        while True:
            pass

class Busy(headway.Monitor):
    # Each assignment is interrupted as it begins: no time passes.
    def __init__(self):
        self.epochs = {}
    def started(self, now_ns, worker, job, epoch):
        self.epochs[worker] = epoch
    def stopped(self, now_ns, worker, epoch):
        self.epochs.pop(worker, None)
    def poll(self, now_ns, waiting):
        return next(iter(self.epochs.items()), None)

class Plain(headway.ServerPolicy):
    def ingress(self, shape):
        return None

class InARole(Plain):
    def local(self, shape, worker):
        return Endless()

class AtOneTime(Plain):
    def monitor(self, shape):
        return Busy()

class Slow(headway.Local):
    def next(self, now_ns, queues):
        return headway.Take("shared")

class Long(Plain):
    def local(self, shape, worker):
        return Slow()
"""


@pytest.mark.parametrize("policy", ["InARole", "AtOneTime", "Long"])
def test_ctrl_c_ends_a_run_of_a_policy_in_python(policy: str) -> None:
    code = f"""{PRELUDE}
print("begun", flush=True)
try:
    headway.simulate({policy}(), requests=10**9)
except KeyboardInterrupt:
    print("interrupted")
"""
    ends_by_ctrl_c(code)


@pytest.mark.parametrize("policy", ["InARole()", "Long()", "'darc'"])
def test_a_process_ends_while_a_daemon_thread_simulates(policy: str) -> None:
    code = f"""{PRELUDE}
threading.Thread(target=headway.simulate, args=({policy},), kwargs={{"requests": 10**9}}, daemon=True).start()
time.sleep(1)
print("ends", flush=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.returncode) == ("ends\n", 0), done.stderr
