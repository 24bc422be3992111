"""Helpers around other libraries' code: translate errors, replace attributes, turn off messages."""

import logging
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from seedgrid.core.errors import SeedGridError, is_memory_error

logger = logging.getLogger(__name__)

_LIBRARIES: Final = frozenset({"diffusers", "transformers", "torch"})
_TRANSLATED: Final = (  # Error classes; the libraries do not document which ones they raise
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
)


@contextmanager
def foreign_errors(translate: Callable[[Exception, str], SeedGridError]) -> Iterator[None]:
    """Translate errors that `_LIBRARIES` raise in the block, and log their tracebacks.

    `translate` is given the error and the first line of its message, at most 300 characters, and
    returns the error to raise. Memory errors and errors of our own code are not translated.
    """
    try:
        yield
    except _TRANSLATED as error:
        if is_memory_error(error) or not _is_foreign(error):
            raise
        logger.warning("a library raised an error", exc_info=error)
        raise translate(error, str(error).strip().split("\n")[0][:300]) from error


def _is_foreign(error: Exception) -> bool:
    """Tell whether an error's innermost frame of `_LIBRARIES` or SeedGrid is of `_LIBRARIES`."""
    for frame, _ in reversed([*traceback.walk_tb(error.__traceback__)]):
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if package == "seedgrid" or package in _LIBRARIES:
            return package != "seedgrid"
    return False


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Replace an object's attribute in the block; afterwards the object is as before."""
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


@contextmanager
def quiet_diffusers() -> Iterator[None]:
    """Turn off the progress bars and warnings of diffusers and transformers in the block."""
    import diffusers.utils.logging as diffusers_logging
    import transformers.utils.logging as transformers_logging

    with ExitStack() as stack:
        for library in (diffusers_logging, transformers_logging):
            stack.callback(library.set_verbosity, library.get_verbosity())
            library.set_verbosity(logging.ERROR)
            if library.is_progress_bar_enabled():
                stack.callback(library.enable_progress_bar)
                library.disable_progress_bar()
        yield
