"""What a simulated system is, beside its workload, policy and load: arguments become the texts that the command's flags are."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, TypedDict

from headway._native import HeadwayError, NativeWorkload

#: A number, or a number as the command writes it: ``20_000`` or ``"20k"``.
Number = int | float | str
#: A file's name.
Path = str | os.PathLike[str]


class SystemSettings(TypedDict, total=False):
    """The system, the length and the seed of a run. All have the command's defaults.

    ==================== ==========================================================================
    ``workers``          workers of a server, 1 to 256 (14)
    ``cores``            cores of a server instead: a policy's workers are those that its dispatchers leave
    ``servers``          servers of a rack, 1 to 1024 (1)
    ``racks``            racks behind a core switch; a divisor of the servers (1)
    ``requests``         number of arrivals: ``20_000`` or ``"20k"``; the first tenth is not measured
    ``duration``         length of the run instead, a text with its unit: ``"20ms"``
    ``seed``             seed of all random draws (1)
    ``costs``            a file of ``headway calibrate -o FILE``; none is the ideal system
    ``dispatch_cost``    serial work of the dispatcher per request: ``"150ns"``
    ``network``          added to every latency: ``"10us"``
    ``queue_limit``      capacity of each queue; requests beyond it are shed
    ``begun_at_most``    requests that may have begun and not ended, as in a pool; others wait before the policy
    ``resume``           where an interrupted request resumes: ``"anywhere"`` or ``"own-worker"``
    ``classifier``       ``"exact"`` or ``"random"``
    ``unknown``          fraction of requests, 0 to 1, that the classifier does not recognise
    ``core_changes``     workers that go and come: ``["20ms:-3", "50ms:+3"]``
    ==================== ==========================================================================
    """

    workers: int | str
    cores: int | str
    servers: int | str
    racks: int | str
    requests: Number
    duration: str
    seed: int | str
    costs: Path
    dispatch_cost: str
    network: str
    queue_limit: Number
    begun_at_most: Number
    resume: str
    classifier: str
    unknown: float | str
    core_changes: Iterable[str]


def text(name: str, value: object) -> str:
    """A value as a flag's text."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool):
        number = float(value)
        return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    raise HeadwayError(f"{name}: {value!r} is neither a number nor a text")


def optional_text(name: str, value: object) -> str | None:
    """The same, or none."""
    return None if value is None else text(name, value)


def texts(settings: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The flags and their texts."""
    flags = []
    for name, value in settings.items():
        if value is None:
            continue
        if name == "core_changes":
            each = [value] if isinstance(value, str) else listed(name, value)
            flags += [("core-change", text(name, one)) for one in each]
        else:
            flags.append((name.replace("_", "-"), text(name, value)))
    return flags


def listed(name: str, value: object) -> list[Any]:
    """The members of an iterable."""
    if not isinstance(value, Iterable):
        raise HeadwayError(f"{name}: {value!r} is no list")
    return list(value)


def whole(name: str, value: object, least: int, most: int | None = None) -> int:
    """A whole number of a range."""
    if not isinstance(value, Integral) or isinstance(value, bool) or int(value) < least or (most is not None and int(value) > most):
        bounds = f"{least} or more" if most is None else f"{least} to {most}"
        raise HeadwayError(f"{name}: must be {bounds}, not {value!r}")
    return int(value)


def number(name: str, value: object) -> float:
    """A number."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise HeadwayError(f"{name}: {value!r} is no number")
    return float(value)


def policy_texts(policies: object) -> list[str]:
    """One policy, or several."""
    each = [policies] if isinstance(policies, str) else listed("policy", policies)
    return [text("policy", one) for one in each]


@dataclass(frozen=True)
class LoadTexts:
    """A load or a rate, or neither."""

    load: str | None = None
    rate: str | None = None

    @classmethod
    def of(cls, load: object, rate: object) -> LoadTexts:
        """Of arguments."""
        return cls(optional_text("load", load), optional_text("rate", rate))


@dataclass(frozen=True)
class Recording:
    """What a run records beside its figures."""

    timeline: str | None = None
    schedule: bool = False
    window: str | None = None


@dataclass(frozen=True)
class HostAsked:
    """What a host is asked beside."""

    apps: list[str]
    threads_per_core: int | None = None
    costs: str | None = None


@dataclass(frozen=True)
class Replications:
    """How often a point is run."""

    replications: int | None
    until_ci: str | None
    ci_of: str


@dataclass(frozen=True)
class Asked:
    """A system under a load, for the compiled part."""

    workload: NativeWorkload
    policy: str
    at: LoadTexts
    settings: list[tuple[str, str]]
