"""The library: every picture made, its place in the tree of choices, and how nothing is lost.

The PNG files are the truth; the SQLite database is an index of them, with the artist's marks.

    from seedgrid.library import Library
"""

from seedgrid.library.library import Library

__all__ = ["Library"]
