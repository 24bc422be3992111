"""The start of the page: what is not needed for the first answer is neither imported nor made."""

from __future__ import annotations

import gc
import inspect
import json
import subprocess
import sys
from pathlib import Path

import gradio as gr
import pytest
from gradio.component_meta import create_or_modify_pyi

from seedgrid.web.server.gradio_import import quickly

ROOT = Path(__file__).parent.parent
LATE = ("torch", "diffusers", "transformers", "sqlalchemy", "alembic")


def test_gradio_makes_no_stubs_in_the_block() -> None:
    """The very function that costs the time returns at once; without us it reads the sources."""
    with pytest.raises(ValueError, match="class source"):
        create_or_modify_pyi(gr.HTML, "NoSuchClass", [])
    with quickly():
        create_or_modify_pyi(gr.HTML, "NoSuchClass", [])


def test_others_are_told_their_files() -> None:
    """Only Gradio's classes have none, and only in the block."""
    with quickly():
        assert inspect.getfile(Path).endswith("pathlib.py")
        with pytest.raises(OSError, match="no stub"):
            inspect.getfile(gr.HTML)
    assert inspect.getfile(gr.HTML).endswith("html.py")


def test_garbage_is_collected_again_afterwards() -> None:
    """The collector rests in the block only."""
    with quickly():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_page_is_imported_without_model_and_database() -> None:
    """What opens the page imports none of the large libraries behind it."""
    code = f"import app, json, sys; print(json.dumps([n for n in {LATE} if n in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []
