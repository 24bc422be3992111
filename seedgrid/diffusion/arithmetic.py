"""Which arithmetic a recipe is computed by: torch's own, or the portable one.

Portable arithmetic catches every operation of torch, by parts of torch that are private to it
(portable/mode.py): nothing public does. Pictures in torch's own arithmetic need none of them.
"""

from contextlib import AbstractContextManager, nullcontext

import torch

from seedgrid.core.errors import RunError
from seedgrid.core.recipe import Recipe


def arithmetic_of(recipe: Recipe) -> AbstractContextManager[None]:
    """Compute by a recipe's arithmetic in the block."""
    if not recipe.is_portable:
        return nullcontext()
    try:
        from seedgrid.diffusion.portable import portable
    except ImportError as error:
        raise RunError("portable_refused", value=f"torch {torch.__version__}") from error
    return portable()


def arithmetic_of_torch(recipe: Recipe) -> AbstractContextManager[None]:
    """Compute as torch does, in a block within `arithmetic_of`: previews are no part of it."""
    if not recipe.is_portable:
        return nullcontext()
    from seedgrid.diffusion.portable import native

    return native()
