"""The program's log: on standard error, with nothing in it that a terminal would obey.

Messages and tracebacks hold what strangers wrote: words, names, file names. A line of the log is
one message; only a traceback, which is ours, has several.
"""

import logging

from seedgrid.core.plain import many_lines, one_line


class PlainFormatter(logging.Formatter):
    """Writes a message on one line, and makes visible what is unseen in it and its traceback."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (as logging has it)
        """Return the line of a record."""
        return one_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record and, below it, its traceback."""
        return many_lines(super().format(record))


def set_up() -> None:
    """Let warnings and errors go to standard error; a second call in a process changes nothing."""
    handler = logging.StreamHandler()
    handler.setFormatter(PlainFormatter("%(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
