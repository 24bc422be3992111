"""The fuzzers as a command; see the package."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from tools.fuzz.fuzzing import MAX_LENGTH, Finding, fuzz, observe
from tools.fuzz.targets import CONTROL, TARGETS, Target


def main() -> int:
    """Fuzz one reader or all; 1 when anything is found."""
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz")
    parser.add_argument("target", choices=["all", "control", *TARGETS])
    parser.add_argument("--seed", type=int, default=time.time_ns() % 2**32)
    parser.add_argument("--count", type=int, help="how many inputs, each reader")
    parser.add_argument("--minutes", type=float, help="how long, all readers together")
    parser.add_argument("--out", type=Path, default=Path(), help="where found inputs are kept")
    parser.add_argument("--replay", type=Path, help="read this file instead")
    parser.add_argument("--atheris", action="store_true", help="let coverage lead")
    options = parser.parse_args()
    faulthandler.enable()
    if options.target == "all":
        return _all(options)
    target = {**TARGETS, "control": CONTROL}[options.target]
    if options.replay is not None:
        outcome, finding = observe(target, options.replay.read_bytes())
        say(finding.what if finding else outcome)
        return 1 if finding else 0
    if options.atheris:
        return _with_atheris(options, target)
    return _one(options, target)


def _all(options: argparse.Namespace) -> int:
    """Each in a process of its own: one that crashes is told and the rest goes on."""
    failed = []
    for name in TARGETS:
        command = [sys.executable, "-m", "tools.fuzz", name, "--seed", str(options.seed)]
        command += ["--out", str(options.out)]
        if options.count is not None:
            command += ["--count", str(options.count)]
        if options.minutes is not None:
            command += ["--minutes", str(options.minutes / len(TARGETS))]
        command += ["--atheris"] * options.atheris
        code = subprocess.run(command, check=False).returncode
        if code:
            failed.append(name)
        if code not in (0, 1):
            say(f"{name}: the process ended with {code}")
    say(f"found in: {', '.join(failed)}" if failed else "nothing found")
    return 1 if failed else 0


def _one(options: argparse.Namespace, target: Target) -> int:
    minutes = 0.1 if options.count is None and options.minutes is None else options.minutes
    start_s, num_found = time.monotonic(), 0
    for news in fuzz(target, seed=options.seed, count=options.count, minutes=minutes):
        if isinstance(news, Finding):
            num_found += 1
            path = news.keep(options.out, options.target)
            say(f"{options.target}: {news.what}\n  kept as {path}")
        else:
            took = time.monotonic() - start_s
            said = f"{news:,} inputs in {took:.0f} s with seed {options.seed}, {num_found} found"
            say(f"{options.target}: {said}")
    return 1 if num_found else 0


def _with_atheris(options: argparse.Namespace, target: Target) -> int:
    """Let libFuzzer choose the changes by the lines of ours that they reach; it ends the process.

    It says itself how many inputs it tried. Where time or number end it, that is no finding.
    """
    import atheris  # only where it installs

    def read(data: bytes) -> None:
        whole = data
        with contextlib.suppress(ValueError, IndexError):
            whole = target.mend(data)
        finding = observe(target, whole)[1]
        if finding is not None:
            say(f"kept as {finding.keep(options.out, options.target)}")
            raise AssertionError(finding.what)

    for name, module in sorted(sys.modules.items()):
        if name.split(".")[0] == "seedgrid":
            _instrument(module, atheris.instrument_func)
    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(target.seeds):
            (Path(corpus) / str(number)).write_bytes(seed)
        minutes = 0.1 if options.count is None and options.minutes is None else options.minutes
        bounds = [f"-max_total_time={round(60 * minutes)}"] if minutes is not None else []
        bounds += [f"-runs={options.count}"] if options.count is not None else []
        limits = [f"-max_len={MAX_LENGTH}", f"-seed={options.seed % 2**31}", "-rss_limit_mb=0"]
        limits.append(f"-artifact_prefix={options.out}/")
        atheris.Setup([sys.argv[0], *bounds, *limits, "-verbosity=1", corpus], read)
        atheris.Fuzz()
    return 0


def _instrument(module: ModuleType, instrument: Callable[[Any], Any]) -> None:
    """Have the functions of a module of ours, and its classes' methods, tell where they are."""
    for holder in (module, *(each for each in vars(module).values() if isinstance(each, type))):
        if getattr(holder, "__module__", module.__name__) != module.__name__:
            continue
        for each in vars(holder).values():
            if isinstance(each, FunctionType) and each.__module__ == module.__name__:
                instrument(each)


def say(line: str) -> None:
    """Tell the person at the terminal."""
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
