"""Portable arithmetic: a pipeline computes the same bits on every processor.

torch's kernels add in different orders on different processors, with different numbers of threads
and in different batches, so the last bits of their sums differ. docs/portable.md defines the
arithmetic that is used here instead. Other rooms import only this module, which needs no torch,
and `selftest.py`.

    with portable():
        pipeline(...)
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Final

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Passport
from seedgrid.storage.cache import recall_texts, remember_one

if TYPE_CHECKING:
    import torch

_CACHE: Final = "portable"


def portable() -> AbstractContextManager[None]:
    """Compute by portable arithmetic in the block; create schedulers inside it, too.

    Raises:
        RunError: `portable_refused`: in the block, for an operation that has no rule, with its
            name; or at the call, if this torch lacks private classes that `mode.py` imports.
    """
    try:
        from seedgrid.portable.mode import portable_block
    except ImportError as error:
        import torch

        raise RunError("portable_refused", value=f"torch {torch.__version__}") from error
    return portable_block()


def native() -> AbstractContextManager[None]:
    """Let torch compute as usual in the block, inside a `portable` block; no effect elsewhere."""
    from seedgrid.portable.mode import native_block

    return native_block()


def check_portable(device: torch.device, passport: Passport) -> None:
    """Raise `portable_wrong_here` if this machine's results differ from the definition's.

    The test takes some seconds; its result is stored in the cache folder, by passport.
    """
    from seedgrid.portable import selftest

    wrong = recall_texts(_CACHE).get(passport.digest)
    if wrong is None:
        wrong = [*selftest.check(device)]
        remember_one(_CACHE, passport.digest, wrong)
    if wrong:
        raise RunError("portable_wrong_here", value=", ".join(wrong))
