"""Let freed memory stay with the process. Needs no torch.

The C library of Linux gives every large block back to the system when it is freed, and the system
fills the next one with zeros, page by page: a fifth of the time of a small model. Only when memory
is asked of the system changes, not a bit of any picture. Measured in docs/performance.md.
"""

import ctypes
import sys
from typing import Final

# From malloc.h of the GNU C library.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_KEPT_BYTES: Final = 128 * 1024**2
_LARGE_BYTES: Final = 64 * 1024**2


def tune() -> bool:
    """Keep up to 128 MB of freed memory for what comes next; do it before threads are started.

    One arena for all threads: the others cannot hold blocks above 64 MB and return each at once.
    """
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # Another C library, musl for example.
        return False
    options = {
        _M_ARENA_MAX: 1,
        _M_MMAP_THRESHOLD: _LARGE_BYTES,
        _M_TRIM_THRESHOLD: _KEPT_BYTES,
    }
    return all(mallopt(option, value) == 1 for option, value in options.items())
