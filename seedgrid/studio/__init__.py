"""Studio: the one door to the workflow, for Python, the command line, the page and its API.

    with Studio() as studio:
        grid = studio.grid("Labrador in the style of Vermeer", seeds="0-3")
        finals = studio.refine(grid[2])
        finals[3].save("labrador.png")

`studio.py` starts what is asked for, `parts.py` holds what that needs, and `options.py` says what
may be asked.
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
