#!/usr/bin/env python3
"""Puts each fault of mutants.toml into a copy of the tree, one at a time, and looks for a world that shows it within a minute.

usage: crates/world/mutants/run.py [NAME-PART]…
"""
import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[2]
SECONDS = 60


def copy_of_tree(target):
    """The tracked files as they are, in a folder of their own whose builds are kept."""
    copy = target / "mutants"
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TREE, check=True, stdout=subprocess.PIPE)
    for name in filter(None, listed.stdout.decode().split("\0")):
        source, place = TREE / name, copy / name
        if not source.is_file():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        if not place.exists() or place.read_bytes() != source.read_bytes():
            shutil.copyfile(source, place)
    return copy


def mutated(text, find, replace, name):
    if text.count(find) != 1:
        sys.exit(f"{name}: its text stands {text.count(find)} times in the file, not once")
    return text.replace(find, replace)


def search(copy, cargo, engine):
    """Whether a world of this engine shows the fault, after how many seconds, and what it says."""
    env = {**os.environ, "CARGO_TARGET_DIR": str(copy / "target"), "RUSTFLAGS": "--cap-lints allow"}
    if engine == "load":
        # Its worlds are tests of its own crate.
        build = [cargo, "test", "--locked", "-q", "-p", "headway-load", "--lib", "--no-run"]
        worlds = [cargo, "test", "--locked", "-q", "-p", "headway-load", "--lib", "world"]
    else:
        build = [cargo, "build", "--locked", "-q", "-p", "headway-world"]
        worlds = [
            copy / "target/debug/headway-world", "--engine", engine, "--seeds", "1000000", "--seconds", str(SECONDS),
        ]
    built = subprocess.run(build, cwd=copy, capture_output=True, text=True, env=env)
    if built.returncode != 0:
        sys.exit(built.stderr)
    begun = time.monotonic()
    try:
        world = subprocess.run(worlds, cwd=copy, capture_output=True, text=True, env=env, timeout=3 * SECONDS)
    except subprocess.TimeoutExpired:
        return False, time.monotonic() - begun, []
    shown = (world.stdout.strip() or world.stderr.strip()).split("\n")
    return world.returncode != 0, time.monotonic() - begun, shown[:2]


def main():
    target = Path(os.environ.get("CARGO_TARGET_DIR", TREE / "target")).resolve()
    cargo = os.environ.get("CARGO", "cargo")
    copy = copy_of_tree(target)
    mutants = tomllib.loads((HERE / "mutants.toml").read_text())["mutant"]
    wanted = sys.argv[1:]
    missed = 0
    for mutant in mutants:
        name = mutant["name"]
        if wanted and not any(part in name for part in wanted):
            continue
        file = copy / mutant["file"]
        whole = file.read_text()
        text = mutated(whole, mutant["find"], mutant["replace"], name)
        if "also_find" in mutant:
            text = mutated(text, mutant["also_find"], mutant["also_replace"], name)
        file.write_text(text)
        try:
            found, seconds, shown = search(copy, cargo, mutant.get("engine", "server"))
        finally:
            file.write_text(whole)
        missed += not found
        print(f"{'found' if found else 'MISSED'} after {seconds:5.1f} s: {name}")
        for line in shown if found else []:
            print(f"    {line}")
        sys.stdout.flush()
    return int(missed > 0)


sys.exit(main())
