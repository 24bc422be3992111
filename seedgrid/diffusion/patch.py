"""Put something in the place of an object's attribute for a while. Knows nothing of pipelines."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Have an object's attribute be something else in the block.

    What the object had of its own (offloading hooks sit there) comes back; what it had from its
    class is uncovered again.
    """
    is_own = name in vars(owner)
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if is_own:
            setattr(owner, name, before)
        else:
            delattr(owner, name)
