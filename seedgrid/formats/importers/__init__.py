"""What comes in: SeedGrid's own pictures, folders and bundles, and other tools' pictures.

from seedgrid.formats.importers.imported import read_foreign
from seedgrid.library.take_in import take_in
"""
