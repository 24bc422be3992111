"""What our own programs change in their process. Who imports SeedGrid as a library is left alone.

`app.py` and the command line call `tune_process` before anything else; a script that owns its
process may do the same. Needs no torch.

    from seedgrid import Studio, tune_process

    tune_process()
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from seedgrid.diffusion import accel

_tuned = False


def tune_process() -> None:
    """Make this process quicker at painting and starting; not one bit of a picture changes.

    Freed memory is kept, threads wait asleep, large libraries are imported with the garbage
    collector paused. Call it first: before threads are started and torch is imported.
    """
    global _tuned
    if not _tuned:
        _tuned = True
        accel.tune()


def is_tuned() -> bool:
    """Tell whether this process is one of our own programs, or a script's that opted in."""
    return _tuned


@contextmanager
def large_import() -> Iterator[None]:
    """Pause the garbage collector in the block, and exempt for good what was made there.

    For imports: they make a million objects and hardly any garbage, and what is imported stays; a
    seventh of the time of importing Gradio, a fifth of torch and diffusers. Not where models are
    loaded already: those must go. Does nothing in a process that is not ours.
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
