"""Tell what diffusers, transformers or torch raised from what our own code did wrong.

The types are the same, so the traceback decides: from its innermost frame outwards, the first that
belongs to one of those libraries or to SeedGrid says whose error it is. Frames of others (numpy,
safetensors, …) belong to the caller.

Out of memory is not translated: what else is held is given back, and the work is tried once more
with the same settings, so the bits are the same.
"""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from seedgrid.core.errors import RunError, SeedGridError, is_memory_error
from seedgrid.core.recipe import Recipe

logger = logging.getLogger(__name__)

_LIBRARIES: Final = frozenset({"diffusers", "transformers", "torch"})
_OURS: Final = "seedgrid"
REFUSALS: Final = (
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
)
"""What the libraries raise for what they cannot do is not documented."""


@contextmanager
def foreign_errors(translate: Callable[[Exception, str], SeedGridError]) -> Iterator[None]:
    """Make errors of ours of what a library raises in the block, and log its traceback.

    Full memory, and what our own code raises, come out as they are.

    Args:
        translate: Is given the error and its first line, 300 characters at most.
    """
    try:
        yield
    except REFUSALS as error:
        if is_memory_error(error) or not _is_foreign(error):
            raise
        logger.warning("a library refused", exc_info=error)
        raise translate(error, str(error).strip().split("\n")[0][:300]) from error


def _is_foreign(error: Exception) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _LIBRARIES or package == _OURS:
            return package != _OURS
    return False


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
