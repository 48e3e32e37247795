"""The papers' figures, point by point anywhere: those of the command, to the bit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from conftest import ROOT, Command

import headway
from headway import HeadwayError

#: Cheap ones of each kind: a sweep of a server, a capacity, a host's, a rack's, a model of costs.
SMALL = ("synergy-fig4-1", "persephone-fig10", "shenango-fig7", "pallas-fig2a", "concord-fig2")


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of nine points of some milliseconds."""
    path = tmp_path_factory.mktemp("experiment") / "short.toml"
    path.write_text("""
        title = "Short"
        paper = "none"
        figure = "Figure 0"
        testbed = "None."
        server = { workload = "high-bimodal", workers = 4, requests = 20000, seed = 3 }
        system = [
            { name = "c-fcfs", policy = "c-fcfs" },
            { name = "darc", policy = "darc,profile=known" },
            { name = "overloaded", policy = "c-fcfs", overhead = "200us" },
        ]

        [[measure]]
        kind = "sweep"
        loads = [0.3, 0.5, 0.7]
        show = ["overall.slowdown.p999", "class.short.latency.p99"]

        [[claim]]
        says = "darc is below c-fcfs"
        of = "darc: overall.slowdown.p999"
        over = "c-fcfs: overall.slowdown.p999"
        at = 0.7
        sign = "negative"
    """)
    return path


@pytest.mark.parametrize("name", SMALL)
def test_figures_and_verdicts_are_the_commands(command: Command, name: str) -> None:
    ours = headway.reproduce(name, fast=True)
    assert json.loads(ours.json()) == command.json("reproduce", name, "--fast")
    assert ours.shortened
    assert len(ours.verdicts()) == len(ours.claims) > 0


def test_where_points_run_changes_no_bit(command: Command, short: Path) -> None:
    theirs = command.json("reproduce", str(short))
    for on in ("threads", "processes"):
        assert json.loads(headway.reproduce(short, on=on, threads=2).json()) == theirs, on
    result = headway.reproduce(short, threads=1)
    frame = result.frame()
    assert len(frame) == 3 * 3 * 2
    assert set(frame["axis"]) == {"load"}
    # The tail of an overloaded run is no number, there as here.
    assert frame[frame["system"] == "overloaded"]["value"].isna().all()
    assert [claim.verdict for claim in result.claims] == ["reproduced"]
    assert result.to_polars().height == len(frame)


def cut_after(points: int) -> Callable[[int, int], None]:
    def progress(done: int, _: int) -> None:
        if done >= points:
            raise KeyboardInterrupt

    return progress


def test_what_was_cut_off_goes_on(short: Path, tmp_path: Path) -> None:
    whole = headway.reproduce(short).json()
    with pytest.raises(KeyboardInterrupt):
        headway.reproduce(short, store=tmp_path, progress=cut_after(2), threads=1)
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.parquet")}
    assert 2 <= len(kept) < 9
    told: list[int] = []
    assert headway.reproduce(short, store=tmp_path, progress=lambda done, _: told.append(done)).json() == whole
    assert told[0] == len(kept)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    # Another length is another point.
    headway.reproduce(short, fast=True, store=tmp_path)
    assert len(list(tmp_path.iterdir())) == 18
    # Each file is a table for others, too.
    import pandas as pd

    values = pd.concat(pd.read_parquet(path) for path in kept)["value"]
    assert set(values.dropna()) <= set(headway.reproduce(short).frame()["value"])


def test_curves_are_drawn_over_their_axis_and_single_figures_as_bars(short: Path) -> None:
    ax = headway.reproduce(short).plot("class.short.latency.p99")
    assert ax.get_xlabel() == "load"
    assert [line.get_label() for line in ax.get_lines()] == ["c-fcfs", "darc", "overloaded"]
    assert all(math.isnan(value) for value in ax.get_lines()[2].get_ydata())
    bars = headway.reproduce("concord-fig12", fast=True) if "concord-fig12" in headway.experiments() else None
    assert bars is not None
    assert bars.plot().get_xlabel() != ""
    with pytest.raises(HeadwayError, match="was not measured; there are"):
        headway.reproduce(short).plot("nonesuch")
    plt.close("all")


def test_the_list_is_the_commands(command: Command) -> None:
    assert list(headway.experiments()) == command.json("reproduce", "--list")


def test_what_is_measured_live_stays_the_commands() -> None:
    for name in ("concord-fig9-live", "synergy-fig6-5-live", "pallas-fig10-live", "shenango-fig1-live"):
        with pytest.raises(HeadwayError, match=f"`headway reproduce {name}` measures it"):
            headway.reproduce(name)
    for folder, name in (("live", "concord-fig9-live"), ("racked", "pallas-fig10-live")):
        with pytest.raises(HeadwayError, match="measured live on this machine"):
            headway.reproduce(ROOT / "experiments" / folder / f"{name}.toml")


def test_a_mistake_is_named(command: Command, tmp_path: Path) -> None:
    with pytest.raises(HeadwayError, match="did you mean 'persephone-fig1'") as refused:
        headway.reproduce("persephone-fg1")
    assert str(refused.value).partition(": ")[2] in command.refusal("reproduce", "persephone-fg1")
    broken = tmp_path / "broken.toml"
    broken.write_text("title = 3")
    with pytest.raises(HeadwayError, match="experiment broken"):
        headway.reproduce(broken)
    with pytest.raises(HeadwayError, match=r"nonesuch\.toml"):
        headway.reproduce(tmp_path / "nonesuch.toml")
