"""What the tests share: the command, and small runs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import matplotlib
import pytest

matplotlib.use("Agg")

ROOT = Path(__file__).resolve().parents[2]


class Command:
    """The command `headway`."""

    def __init__(self, path: str) -> None:
        self.path = path

    def run(self, *flags: str) -> subprocess.CompletedProcess[str]:
        """Runs it."""
        return subprocess.run([self.path, *flags], capture_output=True, text=True, check=False)

    def json(self, *flags: str) -> Any:
        """What it prints as JSON."""
        done = self.run(*flags, "--format", "json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    def refusal(self, *flags: str) -> str:
        """Its sentence for a mistake, without the flag's dashes."""
        done = self.run(*flags)
        assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
        return " ".join(done.stderr.split())


@pytest.fixture(scope="session")
def command() -> Command:
    """The command of this checkout; `make test-python` says where it is."""
    path = os.environ.get("HEADWAY", str(ROOT / "target/release/headway"))
    assert Path(path).exists(), f"{path} is not there: run `make test-python`, or set HEADWAY"
    return Command(path)
