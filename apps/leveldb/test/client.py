"""The LevelDB server's process and its wire format (../README.md)."""

import socket
import struct
import subprocess
from dataclasses import dataclass

GET, PUT, DELETE, SCAN = range(4)
OK, BAD_REQUEST = 0, 5
KEYS = 15_000
PATIENCE_SECONDS = 60


class Wrong(Exception):
    """An answer that no database gives."""


def key_of(number: int) -> bytes:
    return b"key%05d" % number


@dataclass
class Server:
    """The server's process and a socket to it."""

    process: subprocess.Popen
    link: socket.socket
    sent: int = 0

    @classmethod
    def start(cls, program: str, directory: str, policy: str, workers: int) -> "Server":
        process = subprocess.Popen([program, directory, policy, str(workers), "udp://127.0.0.1:0"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        if not line.startswith("listening udp://"):
            process.kill()
            raise Wrong(f"the server said {line!r}")
        link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        link.connect(("127.0.0.1", int(line.rsplit(":", 1)[1])))
        link.settimeout(PATIENCE_SECONDS)
        return cls(process, link)

    def send(self, kind: int, payload: bytes = b"") -> int:
        """Returns the request's index, which its answer bears."""
        self.sent += 1
        self.link.send(struct.pack(">BBII", kind, 0, self.sent, 0) + payload)
        return self.sent

    def receive(self) -> tuple[int, int, bytes]:
        """Index, status and payload of the next answer."""
        datagram = self.link.recv(4096)
        _, flag, index, _ = struct.unpack_from(">BBII", datagram)
        return index, flag >> 3 & 7, datagram[10:]

    def call(self, kind: int, payload: bytes = b"") -> tuple[int, bytes]:
        index = self.send(kind, payload)
        answered, status, answer = self.receive()
        if answered != index:
            raise Wrong(f"request {index} was answered as {answered}")
        return status, answer

    def stop(self) -> tuple[int, int]:
        """Ends it; returns how often it interrupted a request, and how often at the end of a section such as a lock."""
        self.link.close()
        said, _ = self.process.communicate(timeout=PATIENCE_SECONDS)
        if self.process.returncode != 0:
            raise Wrong(f"the server ended with {self.process.returncode}: {said}")
        lock_yields, answered, preemptions = (int(word) for word in said.replace(",", " ").split() if word.isdigit())
        if answered != self.sent:
            raise Wrong(f"{self.sent} requests were sent, {answered} answered")
        return preemptions, lock_yields
