"""A policy in Python: the three roles of a server as classes, run in virtual time by the engine that runs the registry's.

    class Shortest(headway.ServerPolicy):
        name = "shortest"

        def ingress(self, shape):
            return ShortestFirst(shape)

    headway.simulate(Shortest(), "high-bimodal", requests=100_000)

It is slow: each decision is a call, some 10 to 50 thousand requests a second, where a policy of the registry simulates millions. What a role
decides is checked as it decides it; :func:`check_policy` tries a policy in many situations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from headway import _native
from headway._native import HeadwayError
from headway._native import Job as Job
from headway._native import QueuesNow as QueuesNow
from headway._native import Shape as Shape


class _Role:
    """What a role's class overrides, it hears; the engine calls nothing else."""

    def overridden(self) -> set[str]:
        """The names of the methods that the class overrides."""
        base = next(cls for cls in type(self).__mro__ if cls.__module__ == __name__)
        return {name for name in vars(base) if getattr(type(self), name) is not getattr(base, name)}


class Ingress(_Role):
    """Which waiting request goes to which worker, and what is shed. Override ``arrived`` and ``poll``."""

    def arrived(self, now_ns: int, job: Job) -> bool | None:
        """A request came in. ``False`` sheds it."""

    def poll(self, now_ns: int) -> tuple[int, int] | None:
        """The next decision: a worker and a request that waits; ``None`` when nothing can be dispatched. Asked again until then."""

    def yielded(self, now_ns: int, worker: int, job: Job) -> None:
        """A worker gave the request back unfinished: it waits again."""

    def finished(self, now_ns: int, worker: int, job_id: int, cpu_ns: int) -> None:
        """A worker finished the request, which took it ``cpu_ns`` of its time."""

    def worker_added(self, now_ns: int, worker: int) -> None:
        """The server gained this worker, or got it back: it may still run what it ran when it was removed."""

    def worker_removed(self, now_ns: int, worker: int) -> None:
        """The server loses this worker: nothing more may be sent to it; what it runs, it finishes."""

    def wants(self, worker: int) -> bool:
        """Whether something waits that could run on this worker instead of what runs there; by default whether anything waits."""
        return True


@dataclass(frozen=True)
class Take:
    """Where a worker takes its next request from: ``"own"``, ``"steal"`` or ``"shared"``."""

    source: str = "own"
    #: Self-preemption after this much service; none runs on.
    slice_ns: int | None = None
    #: Whose queue to steal from, and at most how many.
    victim: int = 0
    at_most: int = 1
    #: Which of the shared queues.
    queue: int = 0


class Local(_Role):
    """What one worker runs next. Without one, it takes the head of its queue and runs it to its end."""

    def next(self, now_ns: int, queues: QueuesNow) -> Take | None:
        """What to take now that nothing runs here; ``None`` idles. Asked again where there was nothing to steal."""
        return Take()

    def renew(self, now_ns: int, queues: QueuesNow) -> int | None:
        """The request's slice is over: for how much longer it goes on, ns; ``None`` interrupts it."""

    def yielded(self, now_ns: int, job: Job, queues: QueuesNow) -> bool:
        """The request was interrupted: ``True`` queues it here again, ``False`` gives it back to the ingress."""
        return False

    def finished(self, now_ns: int, job: Job, cpu_ns: int, queues: QueuesNow) -> None:
        """The request finished."""


class Monitor(_Role):
    """Which running request is interrupted."""

    def started(self, now_ns: int, worker: int, job: Job, epoch: int) -> int | None:
        """The worker began its ``epoch``-th assignment: when to look at it, in ns of service from now on."""

    def expired(self, now_ns: int, worker: int, wanted: bool) -> bool | int | None:
        """The time came. ``True`` interrupts the request, a number of ns looks again so much later, ``None`` leaves it.

        ``wanted`` says whether something waits that could run there.
        """

    def poll(self, now_ns: int, waiting: int) -> tuple[int, int] | None:
        """An interruption that is due because of what happened: a worker and the epoch that is meant."""

    def stopped(self, now_ns: int, worker: int, epoch: int) -> None:
        """The worker's assignment ended, whether the request finished or not."""


class ServerPolicy:
    """A policy of a server. Override ``ingress``, and ``local`` and ``monitor`` where workers decide or requests are interrupted."""

    #: Its name in reports.
    name = "mine"
    #: Whether the network carries the ingress out: it decides at once, costs nothing, and workers queue what they get.
    steers = False
    #: Requests a worker may hold, the running one included, under a dispatcher.
    depth = 1
    #: Queues that all workers share.
    shared_queues = 1
    #: Promises that the check holds the policy to: no worker idles while a request waits, and first come, first served within a class.
    work_conserving = False
    fcfs_in_class = False
    #: What an interruption costs: from the order until the worker notices it, each switch, an idle worker's wait for the next.
    notif_ns = 0
    switch_ns = 0
    next_ns = 0

    def ingress(self, shape: Shape) -> Ingress | None:
        """A new ingress. ``None``: nobody places requests, they lie in the first shared queue."""
        raise NotImplementedError(f"{type(self).__name__} has no ingress")

    def local(self, shape: Shape, worker: int) -> Local | None:
        """A new worker's decisions; ``None`` for the head of its queue."""

    def monitor(self, shape: Shape) -> Monitor | None:
        """A new monitor; ``None`` for no interruptions."""


#: Situations that a policy is tried in.
SITUATIONS: tuple[dict[str, Any], ...] = (
    {"workload": "high-bimodal", "load": 0.5, "workers": 1},
    {"workload": "high-bimodal", "load": 0.9, "workers": 4},
    {"workload": "tpcc", "load": 0.7, "workers": 14},
    {"workload": "extreme-bimodal", "load": 0.95, "workers": 2},
    {"workload": "exponential-1us", "load": 1.4, "workers": 3, "queue_limit": 7},
    {"workload": "tpcc", "load": 0.6, "workers": 5, "core_changes": ["1ms:-0", "2ms:-3", "4ms:+0", "6ms:+3"]},
    {"workload": "high-bimodal", "load": 0.8, "workers": 3, "dispatch_cost": "200ns"},
    {"workload": "rocksdb", "load": 0.7, "workers": 6, "unknown": 0.3},
)


#: Events that the contract plays to a policy, for each seed.
CONTRACT_EVENTS = 600


def check_policy(policy: ServerPolicy, *, requests: int = 2_000, seeds: int = 2) -> None:
    """Holds a policy to what every policy promises.

    First the contract that the registry's policies are tested by (``crates/contract``): random arrivals, ends, and workers that leave and come,
    each step checked. The policy hands out only what waits, each request once, to workers that are there and have room; what it accepts it hands
    out; it sheds only what a full queue cannot hold; and it keeps its own promises, ``work_conserving`` and ``fcfs_in_class``.

    Then whole runs, in overload, with full queues, with workers that come and go, with unknown classes, under a costly dispatcher: each request that
    was accepted is answered, a request runs at one place at a time and for its service time, a worker runs one. At last a run is repeated: the same
    seed gives the same run, since a policy knows no clock and draws by ``shape.seed`` alone.

    :param policy: the policy.
    :param requests: arrivals of each run.
    :param seeds: how often all of it is tried.
    :raises HeadwayError: for the first promise that it breaks, with the situation.
    """
    from headway.simulation import simulate

    for seed in range(1, 10 * seeds + 1):
        with _situation(policy, f"the contract, seed {seed}"):
            _native.play_contract(policy, seed, CONTRACT_EVENTS)
    for situation in SITUATIONS:
        for seed in range(1, seeds + 1):
            with _situation(policy, f"{situation}, seed {seed}"):
                result = simulate(policy, requests=requests, seed=seed, schedule=True, window="0us..100s", **situation)
                _check_schedule(result.answer["slices"])
                if "queue_limit" not in situation and result.run.overall.dropped:
                    raise HeadwayError(f"arrived: {result.run.overall.dropped} requests were shed although no queue is full")
    with _situation(policy, f"{SITUATIONS[1]}, seed 1, twice"):
        first, again = (simulate(policy, requests=requests, seed=1, **SITUATIONS[1]).run.details for _ in range(2))
        if first != again:
            raise HeadwayError("two runs of one seed differ: draw by shape.seed alone, and keep nothing from run to run")


@contextmanager
def _situation(policy: ServerPolicy, what: str) -> Iterator[None]:
    """Says where a promise was broken."""
    try:
        yield
    except HeadwayError as error:
        raise HeadwayError(f"{policy.name}, {what}: {error}") from error


def _check_schedule(slices: list[list[Any]]) -> None:
    """No worker runs two requests at once, no request runs at two workers at once, and each has its service time."""
    by_worker: dict[Any, int] = {}
    by_request: dict[int, int] = {}
    served: dict[int, int] = {}
    for request, _, service_ns, kind, number, _, from_ns, to_ns, _, done in sorted(slices, key=lambda one: (one[6], one[7])):
        if from_ns < by_worker.get((kind, number), 0):
            raise HeadwayError(f"{kind} {number} runs two requests at {from_ns} ns")
        if from_ns < by_request.get(request, 0):
            raise HeadwayError(f"request {request} runs twice at {from_ns} ns")
        by_worker[kind, number] = by_request[request] = to_ns
        served[request] = served.get(request, 0) + to_ns - from_ns
        if done and served[request] < service_ns:
            raise HeadwayError(f"request {request} is done after {served[request]} of {service_ns} ns")


def stand_in(policy: ServerPolicy) -> str:
    """The policy of the registry that has the same cores beside its workers."""
    return "d-fcfs" if policy.steers else "c-fcfs"
