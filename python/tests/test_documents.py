"""The Python of the documents runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from conftest import ROOT

import headway


def blocks(document: str) -> list[str]:
    found: list[str] = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)
    return found


def run(code: str, given: dict[str, Any]) -> dict[str, Any]:
    exec(compile(code, "document", "exec"), given)
    return given


def test_the_readme_draws_its_picture(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = blocks("README.md")
    assert len(block.splitlines()) <= 8
    names = run(block, {})
    assert (tmp_path / "python.svg").stat().st_size > 10_000
    # What the picture's description says.
    at_90 = names["curves"].frame().query("`class` == 'short' and load > 0.85").groupby("policy")["slowdown_p99"].mean()
    assert at_90["c-fcfs"] > 100
    assert at_90["darc,profile=known"] < 2
    plt.close("all")


def test_the_guides_blocks_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    rows = zip(np.cumsum(rng.exponential(9.0, 2_000)), rng.choice(["a", "b"], 2_000), rng.exponential(9.0, 2_000) + 0.1, strict=True)
    (tmp_path / "mine.csv").write_text("t,op,cost_us\n" + "".join(f"{t},{op},{cost}\n" for t, op, cost in rows))
    csv, own = blocks("docs/python.md")
    names = run(csv.replace('loads="0.1..0.9:0.1"', 'loads="0.5", requests="20k"'), {})
    assert len(names["curves"].points) == 3
    names = run(own.replace("requests=50_000", 'requests=3_000, loads="0.8"'), {"headway": headway})
    plt.close("all")
