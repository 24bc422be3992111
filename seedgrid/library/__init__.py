"""The library: stores pictures with their lineage, so that no crash loses any.

The PNG files hold all but the artist's marks and the origins; the SQLite database indexes them.
"""

from seedgrid.library.library import Library

__all__ = ["Library"]
