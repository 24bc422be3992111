"""`.ci/run` begins with the README's two commands, each in a bare environment."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent
SCRIPT = (ROOT / ".ci" / "run").read_text()
README = (ROOT / "README.md").read_text()


def test_the_commands_are_read_from_the_readme() -> None:
    """The script's own line finds the two commands in the code blocks, as they stand there."""
    (line,) = (line for line in SCRIPT.splitlines() if line.startswith("mapfile -t commands"))
    found = subprocess.run(
        ["bash", "-c", f"{line}; printf '%s\\n' \"${{commands[@]}}\""],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    blocks = re.findall(r"^```bash\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found == [block.strip() for block in blocks if "pip install -r" in block]
    assert [command.partition(" && ")[2] for command in found] == [
        "python app.py",
        "python -m pytest",
    ]


def test_nothing_is_installed_before_them() -> None:
    """Each runs in an environment just made; installing begins after the second."""
    code = [line.partition(" #")[0] for line in SCRIPT.splitlines() if not line.startswith("#")]
    first, second = (
        next(n for n, line in enumerate(code) if f"commands[{i}]" in line) for i in (0, 1)
    )
    installing = [
        number
        for number, line in enumerate(code)
        if re.search(r"\b(pip|uv|apt-get|conda|npm)\b.*\binstall\b", line) and "mapfile" not in line
    ]
    assert installing
    assert first < second < min(installing)
    made = [number for number, line in enumerate(code) if re.match(r"environment \w+$", line)]
    assert made[0] < first < made[1] < second < made[2] < min(installing)
