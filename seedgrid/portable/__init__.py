"""Portable arithmetic: the same bits on every processor, whatever pipeline runs on it.

torch's own kernels decide how a sum is rounded, so another processor, number of threads or batch
gives other last bits. docs/portable.md defines the arithmetic that is used here. Other rooms import
this module alone, which needs no torch.

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
    """Compute by portable arithmetic in the block; make schedulers inside it, too.

    Raises:
        RunError: `portable_refused`: in the block, with the name of an operation that has no rule;
            or at once, if this torch lacks the private parts that `mode.py` needs.
    """
    try:
        from seedgrid.portable.mode import portable_block
    except ImportError as error:
        import torch

        raise RunError("portable_refused", value=f"torch {torch.__version__}") from error
    return portable_block()


def native() -> AbstractContextManager[None]:
    """Let torch compute as usual in a block within `portable`; changes nothing outside one."""
    from seedgrid.portable.mode import native_block

    return native_block()


def check_portable(device: torch.device, passport: Passport) -> None:
    """Raise `portable_wrong_here` if this machine does not compute what the definition says.

    The test takes some seconds; its result is remembered by passport.
    """
    from seedgrid.portable import selftest

    wrong = recall_texts(_CACHE).get(passport.digest)
    if wrong is None:
        wrong = [*selftest.check(device)]
        remember_one(_CACHE, passport.digest, wrong)
    if wrong:
        raise RunError("portable_wrong_here", value=", ".join(wrong))
