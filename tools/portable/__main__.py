"""Compute portably elsewhere.

python -m tools.portable child MODEL…       in this environment; prints names and hashes
python -m tools.portable sweep FOLDER       random recipes, environments and widths
python -m tools.portable swapped [RULE…]    is torch's own form of each rule found by its hash?
python -m tools.portable emulate PROCESSOR  on an emulated one: nehalem, haswell or arm64
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "child":
        from tools.portable.child import main

        main(rest)
    elif command == "sweep":
        from tools.portable.sweep import main as sweep

        sys.exit(sweep(rest))
    elif command == "swapped":
        from tools.portable.swapped import main as swapped

        swapped(rest)
    else:
        from tools.portable.emulate import main as emulate

        sys.exit(emulate(rest))
