"""Out of memory: what else is held is given back, and the work is tried once more, as it was.

The settings stay the same, so the bits do: nothing is sliced, tiled or narrowed in secret. Knows
nothing of pipelines.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from seedgrid.core.errors import RunError, is_memory_error
from seedgrid.core.recipe import Recipe

logger = logging.getLogger(__name__)

Result = TypeVar("Result")


def within_memory(
    work: Callable[[], Result],
    free_memory: Callable[[], None],
    tell: Callable[[], None],
    recipe: Recipe,
    device: str,
) -> Result:
    """Do something, once more after giving memory back if it did not fit.

    Args:
        work: May be done twice.
        free_memory: Lets go of everything that can be made again.
        tell: Called before it is tried once more.
        recipe: What is painted, for the advice.
        device: Where, for the advice.
    """
    for is_last in (False, True):
        try:
            return work()
        except Exception as error:
            if not is_memory_error(error):
                raise
        # Only out here, where the exception and the tensors its traceback holds are gone, can the
        # memory be given back (https://github.com/pytorch/pytorch/issues/18853).
        free_memory()
        if not is_last:
            logger.warning("memory is full: all models are let go of, and it is tried once more")
            tell()
    raise RunError(
        "memory_full",
        width=recipe.width,
        height=recipe.height,
        lock_width=recipe.lock_width,
        device=device,
    )
