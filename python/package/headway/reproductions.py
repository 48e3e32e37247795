"""The figures and tables of the papers, simulated again and judged against what was printed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headway import _native
from headway._native import Cutoff
from headway.executors import On
from headway.points import Kept, Where, computed, text_digest
from headway.results import Framed, as_frame
from headway.settings import text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from headway.settings import Path


@dataclass(frozen=True)
class ClaimResult:
    """A claim of the paper beside the measured figure."""

    #: In words.
    says: str
    #: The figures compared: ``darc: rps ÷ c-fcfs: rps``.
    figure: str
    #: The paper's figure or bound, as shown.
    paper: str
    #: The measured figure; not a number where there is none.
    ours: float
    #: ``"reproduced"``, ``"expected-deviation"``, ``"deviates"`` or ``"not-reproduced"``.
    verdict: str
    #: The rule that gave the verdict.
    rule: str
    #: Why it differs, where it differs and the cause is known.
    reason: str | None


@dataclass(frozen=True)
class ReproductionResult(Framed):
    """A figure or table of a paper: the measured figures, and the claims judged. ``details`` is the command's whole JSON."""

    name: str
    title: str
    paper: str
    #: Its number in the paper.
    number: str
    #: What the paper's testbed had that the model has not.
    testbed: str
    #: Whether the runs were shortened: tails of shortened runs are rough.
    shortened: bool
    claims: tuple[ClaimResult, ...]
    details: Mapping[str, Any] = field(repr=False)

    def frame(self) -> pd.DataFrame:
        """A row a measured figure: ``system``, ``what``, the ``axis`` with its unit, the place ``x`` on it (none of a single figure), ``value``,
        and of a percentile the requests at or beyond it, ``rests_on``."""
        return as_frame(
            {
                "system": one["system"],
                "what": one["what"],
                "axis": one.get("axis", ""),
                "x": number_of(one.get("x")),
                "value": number_of(one["value"]),
                "rests_on": number_of(one.get("rests_on")),
            }
            for one in self.details["figures"]
        )

    def verdicts(self) -> pd.DataFrame:
        """A row a claim: ``says``, ``paper``, ``ours``, ``verdict``, ``rule``, ``reason``."""
        keys = ("says", "figure", "paper", "ours", "verdict", "rule", "reason")
        return as_frame({key: getattr(claim, key) for key in keys} for claim in self.claims)

    def json(self) -> str:
        """What ``headway reproduce NAME --format json`` prints."""
        return json.dumps({"results": [self.details]})

    def plot(self, what: str | None = None, ax: Axes | None = None) -> Axes:
        """Draws a figure over its axis, a line a system; one without an axis as bars.

        :param what: one of the frame's ``what``; by default the first that has an axis, or the first.
        """
        from headway import plots

        return plots.reproduction(self, what, ax)


@dataclass(frozen=True)
class ExperimentTask:
    """What all tasks of an experiment share; goes to other processes and nodes."""

    name: str
    text: str
    fast: bool


def compute_task(common: ExperimentTask, index: int, cutoff: Cutoff | None) -> str:
    """Runs one task."""
    answer = _native.experiment_task(common, index, cutoff)
    if cutoff is not None and cutoff.is_cut:
        raise KeyboardInterrupt
    return answer


def reproduce(
    name: str | Path,
    *,
    fast: bool = False,
    on: On = "threads",
    threads: int | None = None,
    store: Path | None = None,
    progress: bool | Callable[[int, int], object] = False,
) -> ReproductionResult:
    """Simulates a figure or table of a paper again, point by point, and judges the paper's claims; Ctrl-C ends it.

    :param name: one of :func:`headway.experiments`, or an experiment's file: ``"persephone-fig1"``, ``"mine.toml"``.
    :param fast: a tenth of the requests, for a first impression with rough tails and verdicts.
    :param on: where the points run, as in :func:`headway.sweep`.
    :param threads: how many points run at once; the cores by default.
    :param store: a folder where each point is kept as a Parquet file as soon as it is done. What is there is not run again.
    :param progress: ``True`` for a bar, or a function of the points done and of all.
    :raises HeadwayError: for an unknown name, a mistake in the file, and for an experiment that is measured live: the command measures these.

    The figures are those of ``headway reproduce`` to the bit, wherever the points run.
    """
    common = ExperimentTask(*_native.experiment(text("name", name)), bool(fast))
    tasks = list(range(_native.experiment_tasks(common)))
    kept = Kept(lambda index: ["reproduce", common.name, text_digest(common.text), common.fast, index], rows_of)
    given = computed(compute_task, common, tasks, Where(on, threads, store, progress), kept, "simulating")
    details = json.loads(_native.reproduction(common, given))
    claims = (claim_of(claim) for claim in details["claims"])
    same = {key: details[key] for key in ("name", "title", "paper", "testbed", "shortened")}
    return ReproductionResult(**same, number=details["figure"], claims=tuple(claims), details=details)


def experiments() -> tuple[str, ...]:
    """The figures and tables that :func:`reproduce` simulates, in the order of the papers."""
    return tuple(_native.experiments())


def claim_of(given: Mapping[str, Any]) -> ClaimResult:
    """A claim of its JSON."""
    same = {key: given[key] for key in ("says", "figure", "paper", "verdict", "rule")}
    return ClaimResult(**same, ours=number_of(given["ours"]), reason=given.get("reason") or given.get("because"))


def rows_of(answer: str) -> list[dict[str, Any]]:
    """A task's figures, a row each."""
    numbers = ("x", "value", "rests_on")
    return [{**one, **{key: None if one[key] is None else float(one[key]) for key in numbers}} for one in json.loads(answer)]


def number_of(value: float | None) -> float:
    """A figure; not a number where there is none."""
    return math.nan if value is None else value
