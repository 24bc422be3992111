"""The crash tests as a command; see the package."""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from pathlib import Path

from tools.crash import kills, sweep


def main() -> int:
    """Run one of the tests; 1 when a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tools.crash")
    parser.add_argument("test", choices=["kills", "sweep"])
    parser.add_argument("--count", type=int, default=300, help="how many kills")
    parser.add_argument("--seed", type=int, default=0, help="of their moments")
    parser.add_argument("--writers", type=int, default=1, help="processes on one library")
    parser.add_argument("--every", type=int, default=1, help="take every n-th fault of the sweep")
    parser.add_argument("--start", type=int, default=0, help="the first fault of the sweep")
    parser.add_argument("--only", default="", help="one system call of the sweep, as in: write")
    parser.add_argument("--careless", action="store_true", help="the control of the sweep")
    options = parser.parse_args()
    # After each crash the library says that it was mended; here that is no news.
    logging.getLogger("seedgrid").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.test == "kills":
            broken = kills.run(
                folder, count=options.count, seed=options.seed, writers=options.writers
            )
        else:
            broken = sweep.run(
                folder,
                every=options.every,
                start=options.start,
                only=options.only,
                careless=options.careless,
            )
    for line in broken:
        print(line)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
