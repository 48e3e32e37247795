"""Policies in Python: the registry's figures to the bit where they do the same, and a fault is named where it is made."""

from __future__ import annotations

import os
from collections import deque
from typing import Any

import pytest

import headway
from headway import HeadwayError
from headway._native import Job, Shape


class FirstCome(headway.Ingress):
    """One queue, first come first served."""

    def __init__(self, shape: Shape) -> None:
        self.free = list(range(shape.workers))
        self.gone: set[int] = set()
        self.busy: set[int] = set()
        self.queue: deque[int] = deque()

    def arrived(self, now_ns: int, job: Job) -> None:
        self.queue.append(job.id)

    def poll(self, now_ns: int) -> tuple[int, int] | None:
        if not self.queue or not self.free:
            return None
        worker = min(self.free)
        self.free.remove(worker)
        self.busy.add(worker)
        return worker, self.queue.popleft()

    def yielded(self, now_ns: int, worker: int, job: Job) -> None:
        self.queue.append(job.id)
        self.release(worker)

    def finished(self, now_ns: int, worker: int, job_id: int, cpu_ns: int) -> None:
        self.release(worker)

    def release(self, worker: int) -> None:
        self.busy.discard(worker)
        if worker not in self.gone:
            self.free.append(worker)

    def worker_removed(self, now_ns: int, worker: int) -> None:
        self.gone.add(worker)
        if worker in self.free:
            self.free.remove(worker)

    def worker_added(self, now_ns: int, worker: int) -> None:
        self.gone.discard(worker)
        if worker not in self.busy:
            self.free.append(worker)


class Central(headway.ServerPolicy):
    name = "central"
    work_conserving = True
    fcfs_in_class = True

    def ingress(self, shape: Shape) -> headway.Ingress:
        return FirstCome(shape)


class Quantum(headway.Monitor):
    def started(self, now_ns: int, worker: int, job: Job, epoch: int) -> int:
        return 5_000

    def expired(self, now_ns: int, worker: int, wanted: bool) -> bool | int:
        return True if wanted else 5_000


class Interrupting(Central):
    name = "interrupting"
    # What was interrupted queues again.
    fcfs_in_class = False

    def monitor(self, shape: Shape) -> headway.Monitor:
        return Quantum()


class Sliced(headway.Local):
    def next(self, now_ns: int, queues: Any) -> headway.Take:
        return headway.Take(slice_ns=5_000)

    def renew(self, now_ns: int, queues: Any) -> None:
        return None


class Slices(Central):
    name = "slices"

    def local(self, shape: Shape, worker: int) -> headway.Local:
        return Sliced()


class ByFlow(headway.Ingress):
    def __init__(self, shape: Shape) -> None:
        self.workers = shape.workers
        self.queue: deque[tuple[int, int]] = deque()

    def arrived(self, now_ns: int, job: Job) -> None:
        self.queue.append((job.flow % self.workers, job.id))

    def poll(self, now_ns: int) -> tuple[int, int] | None:
        return self.queue.popleft() if self.queue else None


class Stealing(headway.Local):
    def __init__(self, worker: int) -> None:
        self.me = worker

    def next(self, now_ns: int, queues: Any) -> headway.Take | None:
        longest = max(range(len(queues.lengths)), key=lambda worker: queues.lengths[worker])
        if queues.lengths[self.me]:
            return headway.Take()
        return headway.Take("steal", victim=longest) if queues.lengths[longest] else None


class Steered(headway.ServerPolicy):
    name = "steered"
    work_conserving = True
    steers = True

    def ingress(self, shape: Shape) -> headway.Ingress:
        return ByFlow(shape)

    def local(self, shape: Shape, worker: int) -> headway.Local:
        return Stealing(worker)


class Pulled(headway.Local):
    def next(self, now_ns: int, queues: Any) -> headway.Take:
        return headway.Take("shared")


class Unplaced(headway.ServerPolicy):
    name = "unplaced"
    work_conserving = True

    def ingress(self, shape: Shape) -> None:
        return None

    def local(self, shape: Shape, worker: int) -> headway.Local:
        return Pulled()


def figures(policy: Any, **more: Any) -> Any:
    run = headway.simulate(policy, "high-bimodal", workers=4, requests=10_000, seed=3, **more).run
    return run.details["overall"], run.details["classes"], run.preemptions


def test_first_come_first_served_is_the_registrys_to_the_bit() -> None:
    for more in ({}, {"dispatch_cost": "300ns"}, {"network": "5us", "load": 0.95}):
        assert figures(Central(), **more) == figures("c-fcfs", **more)
    assert figures(Unplaced()) == figures("c-fcfs")


def test_interruptions_are_those_of_processor_sharing() -> None:
    ours, slices = figures(Interrupting()), figures(Slices())
    assert ours[2] > 500
    assert slices[2] > 500
    central = figures("c-fcfs")
    short = [classes[0]["slowdown"]["p99"] for _, classes, _ in (ours, slices, central)]
    # High-bimodal's shorts wait behind longs unless these are interrupted.
    assert max(short[:2]) < short[2]


def test_stealing_from_the_longest_queue_beats_none() -> None:
    stolen = figures(Steered(), load=0.7)[0]["slowdown"]["p99"]
    assert stolen < figures("d-fcfs", load=0.7)[0]["slowdown"]["p99"]


@pytest.mark.parametrize("policy", [Central(), Interrupting(), Slices(), Steered(), Unplaced()], ids=lambda it: it.name)
def test_sound_policies_pass_the_check(policy: headway.ServerPolicy) -> None:
    headway.check_policy(policy, requests=400)


class Twice(FirstCome):
    def poll(self, now_ns: int) -> tuple[int, int] | None:
        return (self.free[0], 10**6) if self.queue and self.free else None


class Nowhere(FirstCome):
    def poll(self, now_ns: int) -> tuple[int, int] | None:
        return (99, self.queue[0]) if self.queue else None


class Crowding(FirstCome):
    def poll(self, now_ns: int) -> tuple[int, int] | None:
        return (0, self.queue.popleft()) if self.queue else None


class Forgetting(FirstCome):
    def arrived(self, now_ns: int, job: Job) -> None:
        if job.id != 3:
            self.queue.append(job.id)


class Shedding(FirstCome):
    def arrived(self, now_ns: int, job: Job) -> bool:
        super().arrived(now_ns, job)
        if job.id == 1:
            self.queue.pop()
        return job.id != 1


class Raising(FirstCome):
    def finished(self, now_ns: int, worker: int, job_id: int, cpu_ns: int) -> None:
        raise ZeroDivisionError("mine")


class Wordy(FirstCome):
    def poll(self, now_ns: int) -> Any:
        return "worker 1"


class Deaf(FirstCome):
    """It does not hear that workers go."""

    def worker_removed(self, now_ns: int, worker: int) -> None:
        pass

    def worker_added(self, now_ns: int, worker: int) -> None:
        pass


class LastCome(FirstCome):
    def poll(self, now_ns: int) -> tuple[int, int] | None:
        return (self.free.pop(), self.queue.pop()) if self.queue and self.free else None


class Idle(FirstCome):
    """One worker is kept for nobody."""

    def poll(self, now_ns: int) -> tuple[int, int] | None:
        return super().poll(now_ns) if len(self.free) > 1 else None


class Moody(FirstCome):
    """It draws by what the machine gives, not by the shape's seed."""

    def poll(self, now_ns: int) -> tuple[int, int] | None:
        if not self.queue or not self.free:
            return None
        if len(self.queue) > 1 and os.urandom(1)[0] < 128:
            self.queue.rotate(1)
        return super().poll(now_ns)


class Overfull(FirstCome):
    """It sheds where a few wait already."""

    def arrived(self, now_ns: int, job: Job) -> bool:
        if len(self.queue) >= 4:
            return False
        super().arrived(now_ns, job)
        return True


@pytest.mark.parametrize(
    ("ingress", "part"),
    [
        (Deaf, "the contract, seed 1: after .* events: it used worker . which is gone"),
        (LastCome, "overtook one of its class, and it promised first come, first served"),
        (Idle, "idles while 1 requests wait, and it promised to be work-conserving"),
        (Overfull, "was shed although no queue is full"),
    ],
)
def test_the_contract_finds_what_whole_runs_hide(ingress: type[FirstCome], part: str) -> None:
    class Broken(Central):
        def ingress(self, shape: Shape) -> headway.Ingress:
            return ingress(shape)

    with pytest.raises(HeadwayError, match=part.replace(" . which", " ., which")):
        headway.check_policy(Broken(), requests=400)


def test_a_policy_that_draws_by_itself_is_found() -> None:
    class Broken(Central):
        fcfs_in_class = False

        def ingress(self, shape: Shape) -> headway.Ingress:
            return Moody(shape)

    with pytest.raises(HeadwayError, match="two runs of one seed differ"):
        headway.check_policy(Broken(), requests=400, seeds=1)


class Lazy(headway.Local):
    """It runs nothing but what it steals."""

    def __init__(self, worker: int) -> None:
        self.me = worker

    def next(self, now_ns: int, queues: Any) -> headway.Take | None:
        others = [worker for worker, length in enumerate(queues.lengths) if length and worker != self.me]
        return headway.Take("steal", victim=others[0]) if others else None


def test_workers_that_help_themselves_are_held_to_their_contract() -> None:
    class Thieves(Steered):
        def local(self, shape: Shape, worker: int) -> headway.Local:
            return Lazy(worker)

    class Late(Steered):
        def ingress(self, shape: Shape) -> headway.Ingress:
            ingress = ByFlow(shape)
            ingress.poll = lambda now_ns: None  # type: ignore[method-assign]
            return ingress

    class Empty(Unplaced):
        def local(self, shape: Shape, worker: int) -> None:
            return None

    class Nobody(Empty):
        work_conserving = False

    for policy, part in (
        (Thieves(), "idles beside its own"),
        (Late(), "was not placed at once"),
        (Empty(), "idles while 1 requests wait"),
        (Nobody(), "never ran"),
    ):
        with pytest.raises(HeadwayError, match=part):
            headway.check_policy(policy, requests=400)


@pytest.mark.parametrize(
    ("ingress", "part"),
    [
        (Twice, "poll: request 1000000 does not wait"),
        (Nowhere, "poll: there is no worker 99"),
        (Crowding, "poll: worker 0 holds 1 requests, which is its depth"),
        (Forgetting, "were accepted and never dispatched"),
        (Shedding, "was shed although no queue is full"),
    ],
)
def test_a_broken_promise_is_found(ingress: type[FirstCome], part: str) -> None:
    class Broken(Central):
        work_conserving = False
        fcfs_in_class = False

        def ingress(self, shape: Shape) -> headway.Ingress:
            return ingress(shape)

    with pytest.raises(HeadwayError) as refused:
        headway.check_policy(Broken(), requests=400)
    assert part in str(refused.value)


def test_exceptions_of_a_role_come_out_as_they_are() -> None:
    class Failing(Central):
        def __init__(self, ingress: type[FirstCome]) -> None:
            self.of = ingress

        def ingress(self, shape: Shape) -> headway.Ingress:
            return self.of(shape)

    with pytest.raises(ZeroDivisionError, match="mine"):
        headway.simulate(Failing(Raising), requests=1_000)
    with pytest.raises(HeadwayError, match="poll: gives a worker and a request's id, or None, not 'worker 1'"):
        headway.simulate(Failing(Wordy), requests=1_000)
    with pytest.raises(NotImplementedError):
        headway.simulate(headway.ServerPolicy(), requests=1_000)


def test_an_own_policy_stands_beside_the_registrys_in_a_sweep() -> None:
    result = headway.sweep([Central(), "c-fcfs"], loads=[0.4, 0.8], requests=5_000, replications=2, workers=4)
    frame = result.frame()
    ours, theirs = (frame[frame["policy"] == name].drop(columns="policy") for name in ("central", "c-fcfs"))
    assert ours.reset_index(drop=True).equals(theirs.reset_index(drop=True))
    with pytest.raises(HeadwayError, match="give replications"):
        headway.sweep(Central(), until_ci="2%")
