"""The command line: thin commands over the studio, one file a group of commands.

Results go to standard output, everything else to standard error. Exit 0 done, 1 the answer is
"no", 2 bad input with one line that says so, 130 stopped by Ctrl+C.
"""

from seedgrid.cli.program import main

__all__ = ["main"]
