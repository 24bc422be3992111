"""`python -m seedgrid`: the command line."""

import sys

from seedgrid.cli import main

if __name__ == "__main__":
    sys.exit(main())
