"""The policies and their parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway import _native
from headway._native import HeadwayError
from headway.results import as_frame

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Parameter:
    """A parameter of a policy, as a text ``key=value`` sets it."""

    key: str
    meaning: str
    default: str
    #: Its values in words: ``"1 or more"``, ``"0us to 1s"``.
    values: str
    unit: str | None
    #: ``kind`` (``number``, ``whole``, ``time`` in ns or ``word``), ``min`` and ``max`` or ``choices``; none of a text.
    range: Mapping[str, Any] | None
    #: Whether it may change while a live server serves.
    while_serving: bool


@dataclass(frozen=True)
class Policy:
    """A policy of the registry."""

    name: str
    aliases: tuple[str, ...]
    #: ``"server"``, ``"rack"`` or ``"host"``.
    level: str
    summary: str
    #: Where it is published.
    paper: str | None
    #: Whether some command runs it on real cores.
    live: bool
    #: ``"dispatcher"``, ``"timer"`` or ``"worker"``; none where requests run to their end.
    interrupted_by: str | None
    params: tuple[Parameter, ...]


class Policies(tuple[Policy, ...]):
    """All policies, by name or in order."""

    __slots__ = ()

    def named(self, name: str) -> Policy:
        """The policy of this name or alias."""
        for policy in self:
            if name == policy.name or name in policy.aliases:
                return policy
        raise HeadwayError(f"no policy is called '{name}'; there are: {', '.join(one.name for one in self)}")

    def frame(self) -> pd.DataFrame:
        """A row a policy."""
        return as_frame(
            {
                "policy": one.name,
                "level": one.level,
                "live": one.live,
                "interrupted_by": one.interrupted_by,
                "summary": one.summary,
                "paper": one.paper,
                "params": ", ".join(f"{param.key}={param.default}" for param in one.params),
            }
            for one in self
        )


def policies(level: str | None = None) -> Policies:
    """The policies of the registry, with their parameters.

    :param level: ``"server"``, ``"rack"`` or ``"host"``; all by default.
    :raises HeadwayError: for another level.

    What each does, and where it departs from its paper, is in docs/policies.md.
    """
    every = json.loads(_native.policies())
    if level not in (None, "server", "rack", "host"):
        raise HeadwayError(f"level: '{level}' is neither server, rack nor host")
    return Policies(
        Policy(
            name=one["name"],
            aliases=tuple(one["aliases"]),
            level=one["level"],
            summary=one["summary"],
            paper=one["paper"],
            live=one["live"],
            interrupted_by=one.get("interrupted_by"),
            params=tuple(Parameter(**param) for param in one["params"]),
        )
        for one in every
        if level in (None, one["level"])
    )
