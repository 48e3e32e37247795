"""Points of one question, computed anywhere, kept in a store, told to a bar."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from headway.executors import Compute, On, answers
from headway.progress import Progress
from headway.store import Store

if TYPE_CHECKING:
    from headway.settings import Path

C = TypeVar("C")


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with the answer of each item that was done until then, in order."""

    def __init__(self, answers: list[str | None]) -> None:
        super().__init__()
        self.answers = answers


@dataclass(frozen=True)
class Where:
    """Where points run, where they are kept, and whom they are told."""

    on: On = "threads"
    threads: int | None = None
    store: Path | None = None
    progress: bool | Callable[[int, int], object] = False


@dataclass(frozen=True)
class Kept:
    """How a store knows a point, and what its file has for others."""

    #: All that a point's figures depend on.
    inputs: Callable[[Any], object]
    #: A point's answer as rows of a table.
    rows: Callable[[str], Iterable[dict[str, Any]]] = field(default=lambda answer: ())


def computed(compute: Compute[C], common: C, items: Sequence[Any], where: Where, kept: Kept, what: str) -> list[str]:
    """The answer of each item, in order. Those that the store has are taken, the others are computed and kept as soon as they are done.

    :raises Interrupted: on Ctrl-C.
    """
    store = None if where.store is None else Store(where.store)
    keys = [kept.inputs(item) for item in items] if store else []
    found: dict[int, str] = {}
    try:
        for index, key in enumerate(keys):
            if store and (answer := store.get(key)) is not None:
                found[index] = answer
        left = [(index, item) for index, item in enumerate(items) if index not in found]
        with Progress(where.progress, len(items), what) as bar:
            bar.advance(len(found))
            for index, answer in answers(where.on, where.threads, compute, common, left):
                found[index] = answer
                if store:
                    store.put(keys[index], answer, kept.rows(answer))
                bar.advance(1)
    except KeyboardInterrupt:
        raise Interrupted([found.get(index) for index in range(len(items))]) from None
    return [found[index] for index in range(len(items))]


def text_digest(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: str) -> str:
    """The digest of a file's content."""
    if not os.path.isfile(path):
        return ""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def settings_inputs(settings: Sequence[tuple[str, str]]) -> list[object]:
    """What the settings are, with the content of the file of costs."""
    costs = [file_digest(value) for name, value in settings if name == "costs"]
    return [sorted(settings), costs]
