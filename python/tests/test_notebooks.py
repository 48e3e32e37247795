"""The notebooks run from top to bottom; their last cells assert what their text says."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 4


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "a notebook is committed without outputs"
    NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(output.get("data", {}).get("image/png") for cell in notebook.cells for output in cell.get("outputs", ())), "it draws a picture"


def test_the_new_policy_has_forty_lines() -> None:
    notebook = nbformat.read(next(path for path in NOTEBOOKS if path.stem == "a-new-policy"), as_version=4)
    policy = next(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert "headway.ServerPolicy" in policy
    assert len([line for line in policy.splitlines() if line.strip()]) <= 40
