"""Arguments are heeded, or refused: none is taken in part."""

from __future__ import annotations

from typing import Any

import pytest

import headway


def test_each_policy_of_a_sweep_has_all_loads_of_an_iterator() -> None:
    points = headway.sweep(["c-fcfs", "darc"], loads=iter([0.3, 0.6]), requests=2_000, workers=4).points
    assert [(point.policy, point.load) for point in points] == [("c-fcfs", 0.3), ("c-fcfs", 0.6), ("darc", 0.3), ("darc", 0.6)]


def test_each_run_of_a_search_has_all_core_changes_of_an_iterator() -> None:
    pytest.importorskip("optuna")

    def tuned(changes: Any) -> list[Any]:
        found = headway.tune(
            "shinjuku-sq", {"q": ["2us", "50us"]}, load=0.5, trials=2, replications=2, requests=2_000, workers=4, core_changes=changes
        )
        return [trial["uses"] for trial in found.trials]

    assert tuned(iter(["1ms:-0"])) == tuned(["1ms:-0"]) != tuned([])
