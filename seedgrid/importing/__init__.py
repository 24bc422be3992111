"""What comes in: SeedGrid's own pictures, folders and bundles, and other tools' pictures.

from seedgrid.importing.foreign import read_foreign
from seedgrid.importing.take_in import take_in
"""
