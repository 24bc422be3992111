"""What may be asked of a page at once, as the environment says (core/variables.py)."""

import sys
from typing import Final

from seedgrid.core.variables import is_public, number, whole_number
from seedgrid.engine import Bounds
from seedgrid.web.server.file_work import FileWorkBounds
from seedgrid.web.server.limits import UploadBounds

_TOGETHER: Final = 64
"""How many pieces of work with files strangers may have waiting or going on together."""


def of_engine() -> Bounds:
    """Return what strangers may have painted."""
    return Bounds(
        queue_s=_amount("SEEDGRID_MAX_QUEUE_S"),
        run_s=_amount("SEEDGRID_MAX_RUN_S"),
        run_megapixel_steps=_amount("SEEDGRID_MAX_MEGAPIXEL_STEPS"),
        runs_per_address=count("SEEDGRID_MAX_RUNS_PER_ADDRESS"),
    )


def runs_per_owner() -> int:
    """Return how many runs one visitor may have waiting or running."""
    return count("SEEDGRID_MAX_RUNS_PER_VISITOR") or sys.maxsize


def of_uploads() -> UploadBounds:
    """Return what may be uploaded."""
    return UploadBounds(
        request=megabytes("SEEDGRID_MAX_UPLOAD_MB"),
        together=megabytes("SEEDGRID_MAX_UPLOADS_MB"),
    )


def of_file_work() -> FileWorkBounds:
    """Return what strangers may have in work with files at once."""
    return FileWorkBounds(
        address=count("SEEDGRID_MAX_FILES_PER_ADDRESS"),
        together=_TOGETHER,
        window_s=_amount("SEEDGRID_MAX_FILES_S_PER_ADDRESS"),
        download_bytes=megabytes("SEEDGRID_MAX_DOWNLOAD_MB"),
        dropped=count("SEEDGRID_MAX_DROPPED"),
    )


def count(name: str) -> int | None:
    """Return a bound that counts things; None is no bound."""
    return whole_number(name, is_public=is_public())


def megabytes(name: str) -> float | None:
    """Return a bound that is set in megabytes, in bytes; None is no bound."""
    found = _amount(name)
    return None if found is None else found * 1e6


def _amount(name: str) -> float | None:
    return number(name, is_public=is_public())
