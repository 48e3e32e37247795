"""The LevelDB server answers as a database: a seeded mix of requests, many at once, each answer held against a model.

    server_test.py SERVER [--seed N] [--requests N] [--policy POLICY,PARAMETERS]...

A run says its seed; with the same seed the same requests are drawn, though not in the same order against the answers.
"""

import argparse
import random
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field

from client import BAD_REQUEST, DELETE, GET, KEYS, OK, PUT, SCAN, Server, Wrong, key_of

OUTSTANDING = 16
# Policies, and whether requests are interrupted under them.
POLICIES = [
    ("c-fcfs", False),
    ("concord,q=5us", True),
    ("shinjuku-ci,q=5us", True),
    ("tiny-quanta", True),
    ("synergy", True),
]
# Shares of GET, PUT, DELETE and SCAN, percent.
MIX = (50, 25, 15, 10)
# Drawn from this many keys, the mutations meet keys that others have changed.
BUSY_KEYS = 500
LONGEST_VALUE = 64
# No mutation is sent while so many overlap a SCAN: the states that it may have read are 2 to their number.
MOST_OVERLAPPING = 12


def weight(value: bytes | None) -> tuple[int, int]:
    """What a key adds to a SCAN's answer."""
    return (0, 0) if value is None else (1, sum(value))


@dataclass
class Asked:
    """A request on its way."""

    kind: int
    key: int = 0
    value: bytes | None = None
    # Of a SCAN: the count and sum when it was sent, and what the mutations that overlap it add, in order, by key.
    base: tuple[int, int] = (0, 0)
    overlapping: dict[int, list[tuple[int, int]]] = field(default_factory=dict)


class Model:
    """What the database holds, and what is on its way. Of each key at most one request is, so that its answer is certain; a SCAN
    reads one state of the database: that at some moment between its question and its answer."""

    def __init__(self) -> None:
        self.values: dict[int, bytes | None] = {number: b"%05d" % number for number in range(KEYS)}
        weights = [weight(value) for value in self.values.values()]
        self.total = (sum(count for count, _ in weights), sum(bytes_ for _, bytes_ in weights))
        self.asked: dict[int, Asked] = {}

    def is_busy(self, key: int) -> bool:
        return any(one.kind != SCAN and one.key == key for one in self.asked.values())

    def takes_mutations(self) -> bool:
        return all(sum(map(len, one.overlapping.values())) < MOST_OVERLAPPING for one in self.asked.values())

    def _delta(self, one: Asked) -> tuple[int, int]:
        before, after = weight(self.values[one.key]), weight(one.value)
        return after[0] - before[0], after[1] - before[1]

    def ask(self, index: int, one: Asked) -> None:
        if one.kind == SCAN:
            one.base = self.total
            for other in self.asked.values():
                if other.kind in (PUT, DELETE):
                    one.overlapping.setdefault(other.key, []).append(self._delta(other))
        elif one.kind in (PUT, DELETE):
            for scan in self.asked.values():
                if scan.kind == SCAN:
                    scan.overlapping.setdefault(one.key, []).append(self._delta(one))
        self.asked[index] = one

    def answer(self, index: int, status: int, payload: bytes) -> None:
        one = self.asked.pop(index, None)
        if one is None:
            raise Wrong(f"request {index} was answered twice or never sent")
        if status != OK:
            raise Wrong(f"request {index}, {one}, has status {status}")
        if one.kind == SCAN:
            self._check_scan(one, payload)
            return
        expected = b"" if one.kind != GET else self.values[one.key] or b""
        if payload != expected:
            raise Wrong(f"request {index}, {one}: {payload!r} instead of {expected!r}")
        if one.kind != GET:
            delta = self._delta(one)
            self.total = (self.total[0] + delta[0], self.total[1] + delta[1])
            self.values[one.key] = one.value

    def _check_scan(self, scan: Asked, payload: bytes) -> None:
        """The states it may have read: of each key's overlapping mutations the first few have happened."""
        states = {scan.base}
        for deltas in scan.overlapping.values():
            steps = [(0, 0)]
            for count, bytes_ in deltas:
                steps.append((steps[-1][0] + count, steps[-1][1] + bytes_))
            states = {(count + step[0], bytes_ + step[1]) for count, bytes_ in states for step in steps}
        found = struct.unpack("<QQ", payload)
        if found not in states:
            raise Wrong(f"a SCAN found {found}, which is none of {len(states)} states near {scan.base}")


def draw(rng: random.Random, model: Model) -> Asked:
    kind = rng.choices((GET, PUT, DELETE, SCAN), MIX)[0]
    if kind == SCAN:
        return Asked(SCAN)
    if kind != GET and not model.takes_mutations():
        kind = GET
    while True:
        key = rng.randrange(BUSY_KEYS) if kind != GET or rng.random() < 0.5 else rng.randrange(KEYS)
        if not model.is_busy(key):
            break
    value = rng.randbytes(rng.randrange(1, LONGEST_VALUE)) if kind == PUT else None
    return Asked(kind, key, value)


def payload_of(one: Asked) -> bytes:
    return b"" if one.kind == SCAN else key_of(one.key) + (one.value or b"")


def check_edges(server: Server) -> None:
    """One at a time, what the mix does not draw; leaves the database as it was."""
    for kind, payload, expected in [
        (GET, b"short", (BAD_REQUEST, b"")),
        (PUT, b"", (BAD_REQUEST, b"")),
        (DELETE, b"key0004", (BAD_REQUEST, b"")),
        (9, key_of(42), (BAD_REQUEST, b"")),
        (GET, b"nosuchke", (OK, b"")),
        (DELETE, b"nosuchke", (OK, b"")),
        (PUT, key_of(42) + b"x" * 1900, (OK, b"")),
        (GET, key_of(42), (OK, b"x" * 1900)),
        (PUT, key_of(42) + b"00042", (OK, b"")),
    ]:
        answer = server.call(kind, payload)
        if answer != expected:
            raise Wrong(f"request {kind} {payload[:20]!r}: {answer} instead of {expected}")


def run(program: str, policy: str, requests: int, seed: int) -> tuple[int, int]:
    """Returns how often requests were interrupted, and how often at the end of a lock or another section."""
    rng, model = random.Random(f"{seed} {policy}"), Model()
    directory = tempfile.mkdtemp(prefix="headway-leveldb-")
    try:
        server = Server.start(program, directory, policy, workers=2)
        try:
            check_edges(server)
            left = requests
            while left or model.asked:
                while left and len(model.asked) < OUTSTANDING:
                    one = draw(rng, model)
                    model.ask(server.send(one.kind, payload_of(one)), one)
                    left -= 1
                model.answer(*server.receive())
            # At rest a SCAN has one answer.
            model.ask(server.send(SCAN), Asked(SCAN))
            model.answer(*server.receive())
            return server.stop()
        finally:
            if server.process.poll() is None:
                server.process.kill()
                server.process.wait()
    finally:
        shutil.rmtree(directory)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("server")
    parser.add_argument("--seed", type=int, default=20211026)
    parser.add_argument("--requests", type=int, default=3000, help="under each policy")
    parser.add_argument("--policy", action="append", help="only these; default: %s" % ", ".join(p for p, _ in POLICIES))
    arguments = parser.parse_args()
    known = dict(POLICIES)
    for policy in arguments.policy or known:
        where = f"{policy}, --seed {arguments.seed} --requests {arguments.requests}"
        try:
            preemptions, lock_yields = run(arguments.server, policy, arguments.requests, arguments.seed)
        except (Wrong, TimeoutError, subprocess.TimeoutExpired) as problem:
            print(f"FAILED {where}: {problem!r}")
            return 1
        expected = known.get(policy)
        if expected is not None and (preemptions > 0) != expected:
            print(f"FAILED {where}: {preemptions} preemptions, {lock_yields} of them at the end of a lock")
            return 1
        print(f"{policy}: every answer right, {preemptions} preemptions")
    return 0


if __name__ == "__main__":
    sys.exit(main())
