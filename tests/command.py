"""What the tests of the command line and of other processes share."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SMALL = ["--size", "64", "--steps", "2"]


def run_python(
    *words: str | Path, code: int = 0, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python in a process of its own, which must end with this exit code.

    Args:
        words: What follows `python`.
        code: The exit code.
        cwd: Where it runs.
        env: All of its environment variables; this process's by default.
    """
    done = subprocess.run(
        [sys.executable, *words], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done


def start_python(*words: str | Path, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start Python in a process of its own, which is followed while it goes on."""
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, *words], cwd=ROOT, env=env, stdout=pipe, stderr=pipe, text=True
    )


def rows(text: str) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in text.splitlines()]
