"""Import Gradio in half the time, by leaving out what a running page has no use for.

At every import Gradio 6 takes the source of each of its components apart and writes a type stub
(`.pyi`) for editors beside it: a good second until the page is there. Where the `mcp` package is,
it imports that as well, half a second; our own tools (`mcp_tools.py`) do so when an agent comes.
And the garbage collector looks again and again through what is only growing. Does nothing where
the process is not ours (`diffusion/process.py`). Knows no component.

    with quickly():
        import gradio as gr
"""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from seedgrid.diffusion.process import is_tuned, large_import


@contextmanager
def quickly() -> Iterator[None]:
    """Import without Gradio's type stubs and agents, and without collecting garbage on the way."""
    if not is_tuned():
        with large_import():
            yield
        return
    with large_import(), _without_stubs(), _without_agents():
        yield


@contextmanager
def _without_stubs() -> Iterator[None]:
    """Answer in the block that Gradio's classes come from no file: then it makes no stub for them.

    Source: `gradio.component_meta.create_or_modify_pyi`, which catches this documented error of
    `inspect`. A Gradio that asks no longer is imported as ever.
    """
    original = inspect.getfile

    def getfile(object: Any) -> str:  # noqa: A002, ANN401 (as inspect has it)
        if inspect.isclass(object) and object.__module__.partition(".")[0] == "gradio":
            raise OSError("no stub is wanted")
        return original(object)

    inspect.getfile = getfile
    try:
        yield
    finally:
        inspect.getfile = original


@contextmanager
def _without_agents() -> Iterator[None]:
    """Answer in the block that there is no `mcp` package, unless somebody has imported it."""
    if "mcp" in sys.modules:
        yield
        return
    sys.modules["mcp"] = None  # type: ignore[assignment] # how Python notes that there is none
    try:
        yield
    finally:
        del sys.modules["mcp"]
