"""Portable arithmetic: the same bits on every processor, whatever pipeline runs on it.

Everywhere else the kernels decide how a sum is rounded, so another processor, another number of
threads or another batch gives other last bits. Here the arithmetic is defined, not the kernel:
docs/portable.md is the definition. Knows nothing of models. This is the room's one door, and
importing it needs no torch.

    with portable():
        pipeline(...)
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Final

from seedgrid.core.errors import RunError
from seedgrid.portable.trial import PortableTrial, check_portable, try_portable

VERSION: Final = "portable-1"

__all__ = ["VERSION", "PortableTrial", "check_portable", "native", "portable", "try_portable"]


def portable(seen: Callable[[str, Any], None] | None = None) -> AbstractContextManager[None]:
    """Compute by portable arithmetic in the block; make schedulers inside it, too.

    It catches every operation of torch by parts of torch that are private to it (`mode.py`).

    Args:
        seen: Is told each operation's name and result.

    Raises:
        RunError: `portable_refused`, out of the block, by the name of an operation that has no
            rule; or at once, where this torch lacks those private parts.
    """
    try:
        from seedgrid.portable.mode import portable_block
    except ImportError as error:
        import torch

        raise RunError("portable_refused", value=f"torch {torch.__version__}") from error
    return portable_block(seen)


def native() -> AbstractContextManager[None]:
    """Let torch compute as it does in a block within `portable`; changes nothing outside one."""
    from seedgrid.portable.mode import native_block

    return native_block()
