"""Give freed memory back to the system, where the C library would keep it. Needs nothing else."""

import ctypes
import sys


def trim_heap() -> None:
    """Give back what was freed, from between what is in use too; only with the GNU C library.

    A picture is decoded into blocks that are smaller than what is given back by itself, and one
    small thing behind them keeps hundreds of megabytes.
    """
    if sys.platform.startswith("linux"):
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(0)
