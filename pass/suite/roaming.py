#!/usr/bin/env python3
"""Runs the own tests of programs of others on a fiber that changes threads."""
import argparse
import pathlib
import sys

from driver import roaming
from driver.errors import SuiteError


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", metavar="LIBROAMING", type=pathlib.Path, help="libroaming.so, as `cargo build --release -p headway-fiber --example roaming` makes it")
    parser.add_argument("--only", metavar="NAME", action="append", help="this suite only (may be repeated)")
    parser.add_argument("--stay", metavar="N", type=int, default=101, help="suspensions until the fiber changes threads (default: 101)")
    parser.add_argument("--rebuild", action="store_true", help="build anew what is built already")
    return roaming.check(parser.parse_args())


if __name__ == "__main__":
    try:
        sys.exit(main())
    except SuiteError as error:
        sys.exit(f"roaming: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
