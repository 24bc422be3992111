"""Tell what diffusers, transformers or torch raised from what our own code did wrong.

The types are the same, so the traceback decides: from its innermost frame outwards, the first that
belongs to one of those libraries or to SeedGrid says whose error it is. Frames of others (numpy,
safetensors, …) belong to whoever called them.
"""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from seedgrid.core.errors import SeedGridError, is_memory_error

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
