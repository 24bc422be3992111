"""The library: every picture made, its place in the tree of choices, and how nothing is lost.

The PNG files hold everything but the artist's marks; the SQLite database is an index of them.
"""

from seedgrid.library.library import Library

__all__ = ["Library"]
