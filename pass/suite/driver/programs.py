"""Which programs there are: `programs.txt` and the files it names, and those that give a library its work."""
import difflib
import pathlib
from typing import NamedTuple

from . import libraries
from .errors import SuiteError

SUITE = pathlib.Path(__file__).resolve().parent.parent
HALVES = ("tuned", "reported")
# Where a set's programs are, and what their names end in.
LANGUAGES = {"c": ("programs", (".c", ".cc")), "rust": ("rust", (".rs",)), "real": ("real", (".c", ".cc"))}


class Program(NamedTuple):
    name: str
    half: str
    row: str | None  # the name in Concord's Table 1
    source: pathlib.Path
    library: libraries.Library | None = None  # whose code it runs

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


def _of_libraries() -> list[Program]:
    found = []
    for name, library in libraries.LIBRARIES.items():
        source = _source(name, "real")
        if source is None:
            raise SuiteError(f"libraries.py names {name}, but real/{name}.c (or .cc) does not exist")
        found.append(Program(name, library.half, None, source, library))
    return found


def all_programs(language: str = "c") -> list[Program]:
    """Every program there is in C or C++; those of them that are written in Rust as well, of the same half; or those of libraries."""
    if language == "real":
        return _of_libraries()
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


def available(chosen: list[Program]) -> list[Program]:
    """Those of `chosen` whose library can be had; says on standard error why others cannot."""
    there = libraries.fetch([program.name for program in chosen if program.library])
    return [program for program in chosen if not program.library or program.name in there]
