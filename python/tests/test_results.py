"""Frames and pictures."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest

import headway
from headway import HeadwayError


@pytest.fixture(scope="module")
def swept() -> headway.SweepResult:
    return headway.sweep(["c-fcfs", "darc"], loads=[0.3, 0.6], requests=10_000, replications=3, slo="overall.slowdown.p99<=40")


def test_a_frame_has_a_row_a_class_and_its_units(swept: headway.SweepResult) -> None:
    frame = swept.frame()
    assert len(frame) == 2 * 2 * 3 * 3
    assert list(frame["class"][:3]) == ["short", "long", "overall"]
    one = swept.points[0].runs[0]
    assert frame["latency_us_p99"][0] == one["short"].latency_us.p99 == one.details["classes"][0]["latency_us"]["p99"]
    assert swept.to_polars().to_pandas().equals(frame)


def test_intervals_surround_their_estimates(swept: headway.SweepResult) -> None:
    intervals = swept.intervals()
    assert ((intervals["lo"] <= intervals["estimate"]) & (intervals["estimate"] <= intervals["hi"])).all()
    runs = swept.points[0].runs
    name = "overall.slowdown.mean"
    mean = sum(run.overall.slowdown.mean for run in runs) / len(runs)
    assert swept.points[0].intervals[name].estimate == pytest.approx(mean, rel=1e-12)
    assert {point.meets_slo for point in swept.points} <= {True, False}
    assert swept.points[0].meets_slo is not None


def test_a_sweep_is_drawn_by_load(swept: headway.SweepResult) -> None:
    ax = swept.plot("class.short.latency.p99")
    lines = ax.get_lines()
    assert [line.get_label() for line in lines] == ["c-fcfs", "darc"]
    values = [sum(run["short"].latency_us.p99 for run in point.runs) / 3 for point in swept.points[:2]]
    assert list(lines[0].get_ydata()) == values
    assert "µs" in ax.get_ylabel()
    with pytest.raises(HeadwayError, match=r"overall.slowdown.p999"):
        swept.plot("class.nonesuch.latency.p99")
    plt.close("all")


def test_a_run_is_drawn_as_it_was_recorded() -> None:
    result = headway.simulate("darc", workers=3, requests=5_000, schedule=True, timeline="10ms")
    assert result.plot().get_title() == ""
    assert {label.get_text() for label in result.plot("schedule").get_yticklabels()} == {f"worker {n}" for n in range(3)}
    assert result.plot("slowdown").get_ylabel() == "slowdown"
    result.plot("timeline")
    schedule = result.schedule()
    assert (schedule["from_ns"] < schedule["to_ns"]).all()
    # A worker runs one request at a time.
    for _, slices in schedule.sort_values("from_ns").groupby("number"):
        assert (slices["from_ns"].iloc[1:].to_numpy() >= slices["to_ns"].iloc[:-1].to_numpy()).all()
    assert result.timeline()["count"].sum() == 5_000
    curves = result.curves()
    assert curves[curves["class"] == "short"]["slowdown"].is_monotonic_increasing
    with pytest.raises(HeadwayError, match="simulate with timeline="):
        headway.simulate(requests=5_000).plot("timeline")
    with pytest.raises(HeadwayError, match="not those of a rack"):
        headway.simulate("racksched", servers=2, schedule=True)
    plt.close("all")


def test_progress_counts_to_the_end() -> None:
    told: list[tuple[int, int]] = []
    headway.sweep(["darc"], loads=[0.3, 0.6, 0.7], requests=5_000, progress=lambda *at: told.append(at))
    assert told[-1] == (3, 3)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    told.clear()
    headway.plan(policies=["darc"], requests=5_000, replications=2, progress=lambda *at: told.append(at))
    assert told[-1][0] == told[-1][1] > 0


def test_a_bar_counts_to_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    headway.sweep(["darc"], loads=[0.3, 0.6, 0.7], requests=5_000, progress=True)
    shown = capsys.readouterr().err
    assert "simulating" in shown
    assert "3/3" in shown
