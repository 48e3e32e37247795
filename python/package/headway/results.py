"""Results as dataclasses and frames. Latencies are in µs, slowdowns are ratios, rates are in requests per second."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

STATISTICS = ("mean", "p50", "p90", "p99", "p999", "max")


class Framed:
    """A result that is shown as a frame."""

    def frame(self) -> pd.DataFrame:
        """The result as a pandas frame."""
        raise NotImplementedError

    def to_polars(self) -> pl.DataFrame:
        """The same as a polars frame."""
        return as_polars({str(key): value for key, value in row.items()} for row in self.frame().to_dict("records"))


@dataclass(frozen=True)
class Summary:
    """Mean and nearest-rank percentiles of one measure; not a number where nothing was measured."""

    mean: float
    p50: float
    p90: float
    p99: float
    p999: float
    max: float

    @classmethod
    def of(cls, given: Mapping[str, float | None]) -> Summary:
        """Of the command's JSON."""
        return cls(**{key: math.nan if given[key] is None else float(given[key] or 0.0) for key in STATISTICS})


@dataclass(frozen=True)
class ClassResult:
    """One class of requests, or all together (``"overall"``)."""

    name: str
    #: Requests measured.
    count: int
    #: Measured requests shed or lost.
    dropped: int
    #: Mean service time, µs; not a number of all classes together.
    service_us: float
    #: Sojourn times, µs.
    latency_us: Summary
    #: Sojourn time over service time.
    slowdown: Summary


@dataclass(frozen=True)
class Interval:
    """A mean over replications with its Student-t interval."""

    estimate: float
    lo: float
    hi: float
    #: 0.95.
    confidence: float


@dataclass(frozen=True)
class Run(Framed):
    """One run: a policy under a workload. ``details`` is the command's whole JSON (docs/json.md)."""

    #: The policy's name, and its parameters as used.
    policy: str
    #: As it was asked for, where runs are compared.
    label: str
    workload: str
    workers: int
    seed: int
    #: Arrivals, the warm-up's included.
    requests: int
    #: Offered rate × mean service time ÷ workers.
    load: float
    offered_rps: float
    achieved_rps: float
    #: Fraction of the workers' time that was busy.
    utilization: float
    preemptions: int
    #: Whether a class's backlog grew without bound: its tail only measures the run's length.
    overloaded: bool
    overall: ClassResult
    classes: tuple[ClassResult, ...]
    details: Mapping[str, Any] = field(repr=False)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Run:
        """Of the command's JSON."""
        classes = tuple(
            ClassResult(
                name=one["name"],
                count=one["count"],
                dropped=one["dropped"],
                service_us=math.nan if one["service_us"] is None else one["service_us"],
                latency_us=Summary.of(one["latency_us"]),
                slowdown=Summary.of(one["slowdown"]),
            )
            for one in given["classes"]
        )
        overall = ClassResult(
            name="overall",
            count=sum(one.count for one in classes),
            dropped=sum(one.dropped for one in classes),
            service_us=math.nan,
            latency_us=Summary.of(given["overall"]["latency_us"]),
            slowdown=Summary.of(given["overall"]["slowdown"]),
        )
        same = ("policy", "workload", "workers", "seed", "requests", "load", "offered_rps", "achieved_rps")
        more = ("utilization", "preemptions", "overloaded")
        return cls(
            **{key: given[key] for key in (*same, *more)},
            label=given.get("label") or given["policy"],
            overall=overall,
            classes=classes,
            details=given,
        )

    def __getitem__(self, name: str) -> ClassResult:
        """The class of this name, or ``"overall"``."""
        for one in (*self.classes, self.overall):
            if one.name == name:
                return one
        raise KeyError(name)

    def json(self) -> str:
        """The command's JSON."""
        return json.dumps(self.details)

    def rows(self) -> list[dict[str, Any]]:
        """A row a class, and one of all together, as :meth:`frame` has them."""
        return [
            {
                "policy": self.label,
                "workload": self.workload,
                "load": self.load,
                "seed": self.seed,
                "class": one.name,
                "count": one.count,
                "dropped": one.dropped,
                "service_us": one.service_us,
                **{f"latency_us_{key}": getattr(one.latency_us, key) for key in STATISTICS},
                **{f"slowdown_{key}": getattr(one.slowdown, key) for key in STATISTICS},
                "offered_rps": self.offered_rps,
                "achieved_rps": self.achieved_rps,
                "utilization": self.utilization,
                "preemptions": self.preemptions,
                "overloaded": self.overloaded,
            }
            for one in (*self.classes, self.overall)
        ]

    def frame(self) -> pd.DataFrame:
        """A row a class, and one of all together: latencies in µs, slowdowns, rates in requests per second."""
        return as_frame(self.rows())


def as_frame(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A pandas frame of rows."""
    import pandas as pd

    return pd.DataFrame.from_records([dict(row) for row in rows])


def as_polars(rows: Iterable[Mapping[str, Any]]) -> pl.DataFrame:
    """A polars frame of rows; needs the package polars."""
    import polars as pl

    return pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
