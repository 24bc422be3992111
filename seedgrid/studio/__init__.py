"""Studio: the one door to the workflow, for Python, the command line, the page and its API.

    with Studio() as studio:
        grid = studio.grid("Labrador in the style of Vermeer", seeds="0-3")
        finals = studio.refine(grid[2])
        finals[3].save("labrador.png")

A studio is put together in six files, each on top of the next: `studio.py` waits for pictures,
`looking.py` draws trees and films, `starting.py` starts runs, `resolving.py` makes recipes of what
is asked for, `checking.py` verifies and probes, and `parts.py` holds model, engine and library.
`options.py` says what may be asked.
"""

from seedgrid.engine import PainterState
from seedgrid.studio.options import AnyPicture, RunOptions, Seeds, Settings
from seedgrid.studio.parts import default_library, default_model
from seedgrid.studio.studio import Studio

__all__ = [
    "AnyPicture",
    "PainterState",
    "RunOptions",
    "Seeds",
    "Settings",
    "Studio",
    "default_library",
    "default_model",
]
