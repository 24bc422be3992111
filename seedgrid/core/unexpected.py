"""What whoever waits is told of an error that nobody expected: full memory, or its name.

Needs no torch: the errors of its allocators are known by what they say.

    told_of(MemoryError()).code  # memory_spent
"""

from typing import Final

from seedgrid.core.errors import RunError

_SAID: Final = (
    "can't allocate memory",
    "cannot allocate memory",
    "not enough memory",
    "out of memory",
    "can't start new thread",
)
"""By torch's allocators, on Linux and macOS, Windows, and some devices; by the readers of files,
which map them; and by Python of a thread, whose stack found no room."""

_ONEDNN: Final = frozenset({"could not create a primitive", "could not execute a primitive"})
"""All that oneDNN says when memory for its code or its work is refused, seen under a real limit.

What it does not support it says otherwise: no primitive *descriptor*.
"""


def is_memory_error(error: BaseException) -> bool:
    """Tell whether an error means that memory was full, whoever raised it.

    A library that could not read a file says so, and of why only in the error that it met.
    """
    met: BaseException | None = error
    while met is not None:
        said = str(met).strip()
        if isinstance(met, MemoryError) or type(met).__name__ == "OutOfMemoryError":
            return True
        if said in _ONEDNN or any(words in said.lower() for words in _SAID):
            return True
        met = met.__cause__ or met.__context__
    return False


def told_of(error: BaseException) -> RunError:
    """Return what to tell of an error: `memory_spent`, or `run_unexpected` with its first line."""
    if is_memory_error(error):
        return RunError("memory_spent")
    lines = str(error).strip().splitlines()
    name = type(error).__name__
    return RunError("run_unexpected", reason=f"{name}: {lines[0][:200]}" if lines else name)
