"""Which programs there are: `programs.txt` and the files it names."""
import difflib
import pathlib
from typing import NamedTuple

from .errors import SuiteError

SUITE = pathlib.Path(__file__).resolve().parent.parent
HALVES = ("tuned", "reported")
LANGUAGES = {"c": ("programs", (".c", ".cc")), "rust": ("rust", (".rs",))}  # where, and what their names end in


class Program(NamedTuple):
    name: str
    half: str
    row: str | None  # the name in Concord's Table 1
    source: pathlib.Path

    @property
    def is_cxx(self) -> bool:
        return self.source.suffix == ".cc"

    @property
    def is_rust(self) -> bool:
        return self.source.suffix == ".rs"


def _source(name: str, language: str) -> pathlib.Path | None:
    directory, suffixes = LANGUAGES[language]
    for suffix in suffixes:
        source = SUITE / directory / (name + suffix)
        if source.exists():
            return source
    return None


def all_programs(language: str = "c") -> list[Program]:
    """Every program there is in C or C++; or those of them that are written in Rust as well, of the same half."""
    found = []
    for line in (SUITE / "programs.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        name, half, row = line.split()
        if half not in HALVES:
            raise SuiteError(f"programs.txt: {name} is of half {half!r}; expected one of {', '.join(HALVES)}")
        source = _source(name, language)
        if source is not None:
            found.append(Program(name, half, None if row == "-" else row, source))
        elif language == "c":
            raise SuiteError(f"programs.txt names {name}, but programs/{name}.c (or .cc) does not exist")
    return found


def select(names: list[str] | None, half: str | None, language: str = "c") -> list[Program]:
    known = all_programs(language)
    for name in names or []:
        if name not in (program.name for program in known):
            near = difflib.get_close_matches(name, [program.name for program in known], 1)
            raise SuiteError(f"--only {name}: no such program" + (f"; did you mean {near[0]}?" if near else ""))
    return [program for program in known if (not names or program.name in names) and half in (None, program.half)]
