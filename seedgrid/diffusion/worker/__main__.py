"""The worker process itself: read the job in a folder, paint it, leave the result there.

python -m seedgrid.diffusion.worker FOLDER
"""

import sys
from pathlib import Path

from seedgrid.core.errors import SeedGridError
from seedgrid.diffusion.backend import Unwatched
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.diffusion.worker.job import read_job, write_result


def main(folder: Path) -> int:
    """Paint the job in a folder; the exit status says whether it succeeded."""
    recipes, placement = read_job(folder)
    backend = DeferredBackend()
    try:
        passport = backend.prepare(recipes[0], placement)
        pictures = backend.paint(recipes, placement, Unwatched())
    except SeedGridError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    write_result(folder, pictures, passport)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
