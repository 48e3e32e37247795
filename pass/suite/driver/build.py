"""Builds each program plain and instrumented, in several layouts.

Where code lies moves its speed by percents, probes or not. So each program is linked several times, its code shifted by another
multiple of 16 bytes each time, plain and instrumented alike, and rounds go through the layouts in turn.
"""
import os
import pathlib
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from . import libraries
from .errors import SuiteError
from .programs import SUITE, Program

ROOT = SUITE.parent.parent
DEFAULT_DIRECTORY = ROOT / "target" / "pass-suite"
WRAPPERS = pathlib.Path(os.environ.get("HEADWAY_BIN_DIR", SUITE.parent / "bin"))
CC, CXX, RUSTC = "clang-19", "clang++-19", "rustc"
LAYOUTS = 4
FLAGS = ["-O3", "-gline-tables-only"]
# As cargo's release profile has a program's own crate (its code is for executables), but for one unit of code, as in C, and the lines of the symbols.
RUST_FLAGS = ["--edition", "2024", "--crate-type", "staticlib", "-Crelocation-model=pie", "-Copt-level=3", "-Ccodegen-units=1", "-Cdebuginfo=line-tables-only", "-Dwarnings"]
STANDARD = {False: "-std=gnu17", True: "-std=c++17"}
HARNESS = {  # source: flags of its own
    "main.c": [], "slices.c": [], "stretches.c": [],
    "recorder.c": ["-mgeneral-regs-only"],  # see there
    "stub.S": [],
}


class Binaries(NamedTuple):
    plain: list[pathlib.Path]  # one per layout
    instrumented: list[pathlib.Path]


def compiler_version(language: str = "c") -> str:
    for compiler, how in ((CC, "`apt-get install clang-19` installs it, `make pass` too"), (RUSTC, "see https://rustup.rs")):
        if (compiler == CC or language == "rust") and shutil.which(compiler) is None:
            raise SuiteError(f"{compiler} is missing: {how}")
    compiler = RUSTC if language == "rust" else CC
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True, cwd=ROOT).stdout.splitlines()[0]


def wrapper(name: str) -> pathlib.Path:
    path = WRAPPERS / name
    if not path.exists():
        raise SuiteError(f"{path} is missing: `make pass` builds the compiler pass; --null measures without it")
    return path


def _plugins_changed() -> float:
    """When the pass was last built, as seconds since the epoch."""
    directory = pathlib.Path(os.environ.get("HEADWAY_PASS_DIR", ROOT / "target" / "pass" / "lib"))
    return max((path.stat().st_mtime for path in directory.glob("*.so")), default=0.0)


def run(command: list, what: str, **options) -> None:
    """Runs a tool that is to succeed at `what`."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        raise SuiteError(f"{what} failed (exit status {done.returncode}): {' '.join(map(str, command))}\n{done.stderr.strip()}")


class Builder:
    """Compiles into `directory`; what is newer than its sources and tools is kept."""

    def __init__(self, directory: pathlib.Path, probe: str, distance: int | None, null: bool):
        compiler_version()
        self.directory = directory.resolve()
        self.null = null
        self.pass_flags = [] if probe == "flag" else ["-mllvm", f"-headway-probe={probe}"]
        self.pass_variables = {"HEADWAY_PROBE": probe}
        if distance is not None:
            self.pass_flags += ["-mllvm", f"-headway-probe-distance={distance}"]
            self.pass_variables["HEADWAY_PROBE_DISTANCE"] = str(distance)
        self.kind = "null" if null else probe + (f"-{distance}" if distance is not None else "")
        (self.directory / "harness").mkdir(parents=True, exist_ok=True)
        self.tools_changed = 0.0 if null else _plugins_changed()

    def _is_current(self, output: pathlib.Path, sources: list[pathlib.Path], tools_changed: float = 0.0) -> bool:
        if not output.exists():
            return False
        return output.stat().st_mtime > max([tools_changed] + [source.stat().st_mtime for source in sources])

    def _harness(self) -> list[pathlib.Path]:
        headers = [*(SUITE / "harness").glob("*.h"), SUITE.parent / "runtime" / "headway_probes.h"]
        objects = []
        for name, flags in HARNESS.items():
            source, output = SUITE / "harness" / name, self.directory / "harness" / (name + ".o")
            if not self._is_current(output, [source, *headers]):
                run([CC, "-O2", "-Wall", "-Wextra", STANDARD[False], *flags, "-c", source, "-o", output], f"compiling {name}")
            objects.append(output)
        for layout in range(LAYOUTS):
            shift = self.directory / "harness" / f"shift{layout}.S"
            text = f'.text\n.p2align 6\n.skip {64 + 16 * layout}, 0xcc\n.section .note.GNU-stack, "", @progbits\n'
            if not shift.exists() or shift.read_text() != text:
                shift.write_text(text)
                run([CC, "-c", shift, "-o", shift.with_suffix(".o")], f"assembling {shift.name}")
        return objects

    def compile(self, program: Program, instrumented: bool) -> list[pathlib.Path]:
        """The program's objects, its library's among them."""
        kind = self.kind if instrumented else "plain"
        output = self.directory / kind / (program.name + (".a" if program.is_rust else ".o"))
        output.parent.mkdir(exist_ok=True)
        if program.is_rust:
            return [self._compile_rust(program, output, instrumented)]
        flags = program.library.headers() if program.library else []
        shared = [SUITE / "harness/suite.h", *(SUITE / "real").glob("*.h")]
        objects = [self._compile_c(program.source, output, [STANDARD[program.is_cxx], *flags], shared, instrumented)]
        if program.library:
            directory = output.with_suffix("")
            directory.mkdir(exist_ok=True)
            for source in program.library.files():
                name = "_".join(source.relative_to(program.library.directory).parts) + ".o"
                objects.append(self._compile_c(source, directory / name, ["-w", *program.library.flags, *flags], [pathlib.Path(libraries.__file__)], instrumented))
        return objects

    def _compile_rust(self, program: Program, output: pathlib.Path, instrumented: bool) -> pathlib.Path:
        if not self._is_current(output, [program.source, SUITE / "rust/suite.rs"], self.tools_changed if instrumented else 0.0):
            compiler = [wrapper("headway-rustc"), RUSTC] if instrumented and not self.null else [RUSTC]
            # In the source tree: its rust-toolchain.toml says which rustc.
            run([*compiler, "--crate-name", program.name, *RUST_FLAGS, program.source, "-o", output], f"compiling {program.name}",
                 cwd=ROOT, env={**os.environ, **self.pass_variables})
        return output

    def _compile_c(self, source: pathlib.Path, output: pathlib.Path, flags: list[str], shared: list[pathlib.Path], instrumented: bool) -> pathlib.Path:
        if not self._is_current(output, [source, *shared], self.tools_changed if instrumented else 0.0):
            is_cxx = source.suffix != ".c"
            compiler = CXX if is_cxx else CC
            if instrumented and not self.null:
                compiler, flags = wrapper("headway-c++" if is_cxx else "headway-cc"), [*flags, *self.pass_flags]
            run([compiler, *FLAGS, *flags, "-c", source, "-o", output], f"compiling {source.name} {'instrumented' if instrumented else 'plain'}")
        return output

    def link(self, program: Program, code: list[pathlib.Path], layout: int, harness: list[pathlib.Path]) -> pathlib.Path:
        output = code[0].with_name(f"{code[0].name}.{layout}" if program.is_rust else f"{program.name}.{layout}")
        if not self._is_current(output, [*code, *harness]):
            shift = self.directory / "harness" / f"shift{layout}.o"
            # From Rust comes a library, of which the linker takes what is asked for: the kernel at its place, as an object would be.
            asked, further = (["-Wl,-u,kernel_run"], ["-lgcc_s", "-ldl"]) if program.is_rust else ([], [])
            run([CXX if program.is_cxx else CC, *asked, shift, *code, *harness, "-lm", "-lpthread", *further, "-o", output],
                 f"linking {program.name}")
        return output

    def build(self, chosen: list[Program], layouts: int = LAYOUTS) -> dict[str, Binaries]:
        harness = self._harness()

        def build_one(program: Program) -> tuple[str, Binaries]:
            sides = []
            for instrumented in (False, True):
                code = self.compile(program, instrumented)
                sides.append([self.link(program, code, layout, harness) for layout in range(layouts)])
            return program.name, Binaries(*sides)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return dict(pool.map(build_one, chosen))
