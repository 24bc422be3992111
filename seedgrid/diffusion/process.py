"""What our own programs change in their process. A script that imports SeedGrid is left alone.

`app.py` and the command line call `tune_process` before anything else; a script that owns its
process may do the same.

    from seedgrid import Studio, tune_process

    tune_process()
"""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

# From malloc.h of the GNU C library.
_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_M_ARENA_MAX: Final = -8

_KEPT_BYTES: Final = 128 * 1024**2
_LARGE_BYTES: Final = 64 * 1024**2

SPIN_COUNT: Final = "100000"  # A third of libgomp's default; 10,000 paints 5 % slower

_USERS_OWN: Final = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")

_tuned = False


def tune_process() -> None:
    """Make this process quicker at painting and starting; not one bit of a picture changes.

    Freed memory is kept, waiting threads sleep, large imports pause the garbage collector. Call it
    before threads are started and torch is imported.
    """
    global _tuned
    if not _tuned:
        _tuned = True
        _keep_freed_memory()
        _spin_less()


@contextmanager
def large_import() -> Iterator[None]:
    """Pause the garbage collector for imports, and exempt what they made; only in a tuned process.

    It saves a seventh of Gradio's import, a fifth of torch's and diffusers'.
    """
    if not _tuned:
        yield
        return
    was_collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if was_collecting:
            gc.enable()


def _keep_freed_memory() -> None:
    """Keep up to 128 MB of freed memory for what comes next.

    Linux's C library gives large blocks back, and the system fills new ones with zeros: a fifth of
    the time of a small model. One arena for all threads: the others cannot hold blocks above 64 MB.
    """
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # None in another C library, musl for example.
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)


def _spin_less() -> None:
    """Limit the spinning of waiting threads before torch's import, unless the user has.

    Source: https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html
    """
    if not any(name in os.environ for name in _USERS_OWN):
        os.environ["GOMP_SPINCOUNT"] = SPIN_COUNT
