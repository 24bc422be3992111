"""Do the same with a few files at once: most of the time each waits for the disk."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Final, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_NUM_THREADS: Final = 8


def in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> tuple[Result, ...]:
    """Do something with each item, a thread for each; the results are in order."""
    if len(items) == 1:
        return (function(items[0]),)
    return tuple(_threads().map(function, items))


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    """The threads of all libraries: to start four takes as long as to write a file."""
    return ThreadPoolExecutor(_NUM_THREADS, thread_name_prefix="seedgrid-files")
