"""Progress of long work: a bar in notebooks and terminals, or a function of yours."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Progress:
    """Tells how much of the work is done."""

    def __init__(self, how: bool | Callable[[int, int], object], total: int, what: str) -> None:
        self.done, self.total = 0, total
        self._tell: Callable[[int, int], object] | None = how if callable(how) else None
        self._bar = _bar(total, what) if how is True else None

    def advance(self, steps: int) -> None:
        """So many more steps are done."""
        self.done += steps
        if self._tell:
            self._tell(self.done, self.total)
        if self._bar is not None:
            self._bar.update(steps)

    def extend(self, steps: int) -> None:
        """So many more steps came to be done."""
        self.total += steps
        if self._bar is not None:
            self._bar.total = self.total
            self._bar.refresh()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()


def _bar(total: int, what: str) -> Any:
    """tqdm's bar, of its own kind in a notebook; a plain line where tqdm is not installed."""
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _Line(total, what)
    return tqdm(total=total, desc=what)


class _Line:
    def __init__(self, total: int, what: str) -> None:
        self.total, self.what, self.done = total, what, 0

    def update(self, steps: int) -> None:
        self.done += steps
        self.refresh()

    def refresh(self) -> None:
        print(f"\r{self.what} {self.done}/{self.total}", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print(file=sys.stderr)
