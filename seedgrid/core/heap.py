"""Give freed memory back to the system, where the C library would keep it. Needs nothing else."""

import ctypes
import sys


def trim_heap() -> None:
    """Give all free pages of the heap back to the system; does nothing without the GNU C library.

    That library gives free memory back by itself only at the end of the heap. One small block that
    is still in use behind a decoded picture would keep hundreds of megabytes.
    """
    if sys.platform.startswith("linux"):
        malloc_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if malloc_trim is not None:
            malloc_trim(0)
