"""What may be asked of a page at once, as the environment says (core/variables.py)."""

import sys
from typing import Final

from seedgrid.core.variables import count, megabytes, number
from seedgrid.engine import Bounds
from seedgrid.web.server.file_work import FileWorkBounds
from seedgrid.web.server.limits import UploadBounds

_TOGETHER: Final = 64
"""How many pieces of work with files strangers may have waiting or going on together."""


def of_engine() -> Bounds:
    """Return what strangers may have painted."""
    return Bounds(
        queue_s=number("SEEDGRID_MAX_QUEUE_S"),
        run_s=number("SEEDGRID_MAX_RUN_S"),
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
        window_s=number("SEEDGRID_MAX_FILES_S_PER_ADDRESS"),
        download_bytes=megabytes("SEEDGRID_MAX_DOWNLOAD_MB"),
        dropped=count("SEEDGRID_MAX_DROPPED"),
    )
