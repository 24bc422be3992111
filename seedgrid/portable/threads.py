"""Let each thread compute whole pieces of an operation by itself.

torch's threads wait for each other after every step; a piece of a portable operation is a dozen
short steps or more. Which thread computes a piece changes no bit.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeVar

import torch

Piece = TypeVar("Piece")
Result = TypeVar("Result")

_taken = ContextVar[int]("taken", default=1)  # Over how many threads operations are spread


@contextmanager
def taken_from_torch() -> Iterator[None]:
    """Spread operations over torch's threads, and let torch use one: its threads would spin."""
    count = torch.get_num_threads()
    token = _taken.set(count)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)
        _taken.reset(token)


def spread(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """Return the work's result for each piece, in order; as many at a time as there are threads."""
    count = _taken.get()
    if count == 1 or len(pieces) == 1:
        return [work(piece) for piece in pieces]
    return list(_threads(count).map(work, pieces))


def cuts(length: int, most: int, least: int = 1) -> list[slice]:
    """Cut a length (0: no parts) into equal parts, in a number that the threads share evenly.

    A part is at most `most` long, and at least `least` where it is cut only to occupy more threads.
    """
    count, threads = max(1, -(-length // most)), _taken.get()
    even = -(-count // threads) * threads
    if length // even >= least:  # Otherwise further threads would cost more than they save.
        count = even
    size = max(1, -(-length // count))
    return [slice(start, min(start + size, length)) for start in range(0, length, size)]


@lru_cache(maxsize=1)
def _threads(count: int) -> ThreadPoolExecutor:
    """Start threads in which torch uses no further ones; kept until another number is needed."""
    return ThreadPoolExecutor(count, thread_name_prefix="portable", initializer=_begin)


def _begin() -> None:
    torch.get_num_threads()  # The first call takes over the process's number,
    torch.set_num_threads(1)  # so a number set before it would be lost.
    torch.set_grad_enabled(False)
