"""Studio: the workflow, for Python, the command line, the page and its API.

`studio.py` is the Studio, `verifier.py` verifies pictures, `model_manager.py` manages models, and
`resolving.py` turns requests into recipes and has the types of arguments and results.
"""

from seedgrid.core.variables import default_library, default_model
from seedgrid.studio.resolving import RunOptions, check_starts
from seedgrid.studio.studio import Studio

__all__ = ["RunOptions", "Studio", "check_starts", "default_library", "default_model"]
