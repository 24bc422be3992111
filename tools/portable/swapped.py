"""Which golden hashes find torch's own form of a rule here?

    python -m tools.portable swapped [NAME…]

Torch's own form differs on some processors and not on others, so this is a command and no test:
docs/portable.md keeps what it said on which. (A test spoils one bit of each rule instead.)
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from unittest import mock

from seedgrid.portable import mode
from seedgrid.portable.rules import RULES
from seedgrid.portable.selftest import CASES, GOLDEN, run


def is_found(name: str) -> bool:
    """Tell whether the hash of a case differs when torch computes that operation itself."""
    others = {key: value for key, value in RULES.items() if key != name}
    above = {key: value for key, value in mode._FUNCTION_RULES.items() if key.__name__ != name}
    with ExitStack() as stack:
        if len(above) < len(mode._FUNCTION_RULES):
            (own,) = set(mode._FUNCTION_RULES) - set(above)
            stack.enter_context(mock.patch.dict(mode._FUNCTION_RULES, {own: own}))
        else:
            stack.enter_context(mock.patch.dict(RULES, others, clear=True))
            stack.enter_context(mock.patch.object(mode, "EXACT", mode.EXACT | {name}))
        return run(name) != GOLDEN[name]


def main(given: list[str]) -> None:
    """Print a line for each rule, or for those that are named."""
    for name in given or CASES:
        sys.stdout.write(f"{'found' if is_found(name) else 'SAME '}  {name}\n")
        sys.stdout.flush()
