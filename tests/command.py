"""What the tests of the command line share."""

from __future__ import annotations

import json
from typing import Any

SMALL = ["--size", "64", "--steps", "2"]


def rows(text: str) -> list[dict[str, Any]]:
    """Read JSON lines."""
    return [json.loads(line) for line in text.splitlines()]
