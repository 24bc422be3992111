"""The command line: thin commands over the studio, one file a group of commands.

Results go to standard output, everything else to standard error. Exit codes: 0 success, 1 the
answer "no" or a failure, 2 bad input, 130 Ctrl+C, 143 SIGTERM.
"""

from seedgrid.cli.program import main

__all__ = ["main"]
