"""The libraries that nobody of this project wrote: where each comes from, its half, and what of it is compiled.

The pass may be tuned by looking at the half "tuned"; what counts is the half "reported". The halves were fixed before anything was
measured: the names in alphabetical order, every other one. The program `real/NAME.c` (or `.cc`) gives a library its work.

Their authors' own build systems are not asked, except for one generated file: a line of ours compiles each, so that both builds differ
in the pass alone.
"""
import pathlib
import subprocess
import sys
from typing import NamedTuple

from .errors import SuiteError

SUITE = pathlib.Path(__file__).resolve().parent.parent
SOURCES = SUITE.parent.parent / "target" / "pass-suite" / "sources"


class Library(NamedTuple):
    half: str
    package: str  # the distribution's source package
    sources: list[str]  # patterns in the package's directory; one with "!" in front takes files out again
    include: list[str] = ["."]
    flags: list[str] = []
    generated: dict[str, str] = {}  # files that the build systems would write, and what is in them
    prepare: str | None = None  # a shell command that makes `prepared`, once
    prepared: str | None = None
    needs: str | None = None  # a package that `prepare` needs

    @property
    def directory(self) -> pathlib.Path:
        return SOURCES / self.package

    def files(self) -> list[pathlib.Path]:
        """The sources to compile."""
        chosen: set[pathlib.Path] = set()
        for pattern in self.sources:
            found = set(self.directory.glob(pattern.removeprefix("!")))
            if not found:
                raise SuiteError(f"{self.package}: no file is {pattern}; another version than the suite knows?")
            chosen = chosen - found if pattern.startswith("!") else chosen | found
        return sorted(chosen)

    def headers(self) -> list[str]:
        return [f"-I{self.directory / path}" for path in ["headway-generated", *self.include]]


EXPAT_CONFIG = """\
#define BYTEORDER 1234
#define HAVE_GETRANDOM 1
#define HAVE_MEMMOVE 1
#define XML_CONTEXT_BYTES 1024
#define XML_DTD 1
#define XML_NS 1
"""
PICOSAT_CONFIG = '#define PICOSAT_CC "clang"\n#define PICOSAT_CFLAGS "-O3"\n#define PICOSAT_VERSION "965"\n'
YAML_VERSION = ["-DYAML_VERSION_MAJOR=0", "-DYAML_VERSION_MINOR=2", "-DYAML_VERSION_PATCH=5", '-DYAML_VERSION_STRING="0.2.5"']

LIBRARIES = {
    "brotli": Library("tuned", "brotli", ["c/common/*.c", "c/dec/*.c", "c/enc/*.c"], ["c/include"]),
    "bzip2": Library("reported", "bzip2", ["blocksort.c", "bzlib.c", "compress.c", "crctable.c", "decompress.c", "huffman.c", "randtable.c"]),
    "duktape": Library("tuned", "duktape", ["src/duktape.c"], ["src"]),
    "expat": Library("reported", "expat", ["expat/lib/xml*.c", "!expat/lib/xmltok_*.c"], ["expat/lib"],
                     generated={"expat_config.h": EXPAT_CONFIG}),
    "libyaml": Library("tuned", "libyaml", ["src/*.c"], ["include", "src"], YAML_VERSION),
    # A seed of its own would be made of addresses and the time: the same strings shall lie in the same buckets each time.
    "lua": Library("reported", "lua5.4", ["src/*.c", "!src/lua.c", "!src/luac.c"], ["src"], ["-Dluai_makeseed(L)=17u"]),
    "lz4": Library("tuned", "lz4", ["lib/lz4.c", "lib/lz4hc.c"], ["lib"]),
    "md4c": Library("reported", "md4c", ["src/*.c"], ["src"]),
    "mujs": Library("tuned", "mujs", ["one.c"]),
    "picosat": Library("reported", "picosat", ["picosat.c", "version.c"], flags=["-DNDEBUG"], generated={"config.h": PICOSAT_CONFIG}),
    "pugixml": Library("tuned", "pugixml", ["src/pugixml.cpp"], ["src"]),
    # Its source for embedding, one file, is made of the package's by Tcl.
    "sqlite": Library("tuned", "sqlite3", ["build/sqlite3.c"], ["build"],
                      ["-DSQLITE_THREADSAFE=0", "-DSQLITE_OMIT_LOAD_EXTENSION", "-DSQLITE_DEFAULT_MEMSTATUS=0"],
                      prepare="mkdir -p build && cd build && ../configure --disable-tcl && make sqlite3.c", prepared="build/sqlite3.c", needs="tcl"),
    "tinyxml2": Library("reported", "tinyxml2", ["tinyxml2.cpp"]),
    "zlib": Library("tuned", "zlib", ["*.c"], flags=["-DHAVE_UNISTD_H"]),
    "zstd": Library("reported", "libzstd", ["lib/common/*.c", "lib/compress/*.c", "lib/decompress/*.c"], ["lib"],
                    ["-DZSTD_DISABLE_ASM", "-DXXH_NAMESPACE=ZSTD_"]),
}


def _why_not_prepared(library: Library) -> str | None:
    for name, text in library.generated.items():
        path = library.directory / "headway-generated" / name
        path.parent.mkdir(exist_ok=True)
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    if library.prepare is None or (library.directory / library.prepared).exists():
        return None
    packages = subprocess.run([SUITE.parent / "packages.sh", library.needs], capture_output=True, text=True, check=False)
    if packages.returncode != 0:
        return packages.stdout.strip()
    done = subprocess.run(["sh", "-c", library.prepare], cwd=library.directory, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"`{library.prepare}` failed: {done.stderr.strip()[-300:]}"


def fetch(names: list[str]) -> list[str]:
    """Fetches and prepares these libraries; the names of those that are there. Says on standard error why others are not."""
    if not names:
        return []
    packages = [LIBRARIES[name].package for name in names]
    done = subprocess.run([SUITE / "fetch.sh", SOURCES, *packages], capture_output=True, text=True, check=False)
    reasons = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    there = []
    for name in names:
        library = LIBRARIES[name]
        present = library.directory.is_dir()
        why = _why_not_prepared(library) if present else reasons.get(library.package, done.stderr.strip() or "its source could not be fetched")
        if why is None:
            there.append(name)
        else:
            print(f"SKIPPED {name}: {why}", file=sys.stderr)
    return there
