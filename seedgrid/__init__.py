"""SeedGrid: a picture is a pure function of its recipe."""

from typing import Final

__version__: Final = "0.1.0"
