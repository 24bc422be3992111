"""Tell what diffusers, transformers or torch raised from what our own code did wrong.

The types are the same, so the traceback decides: from its innermost frame outwards, the first that
belongs to one of those libraries or to SeedGrid says whose error it is. Frames of others (numpy,
safetensors, …) belong to whoever called them.
"""

from __future__ import annotations

import logging
import traceback
from typing import Final

logger = logging.getLogger(__name__)

_LIBRARIES: Final = frozenset({"diffusers", "transformers", "torch"})
_OURS: Final = "seedgrid"


def foreign_reason(error: Exception) -> str | None:
    """Return the first line of an error that a library raised, and log its traceback.

    Returns:
        At most 300 characters for a message of ours; None when the error is our own: raise it on.
    """
    if not _is_foreign(error):
        return None
    logger.warning("a library refused", exc_info=error)
    return str(error).strip().split("\n")[0][:300]


def _is_foreign(error: Exception) -> bool:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package in _LIBRARIES or package == _OURS:
            return package != _OURS
    return False
