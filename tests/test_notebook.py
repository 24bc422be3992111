"""The notebook runs as it stands, in a kernel of its own, and shows pictures."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

ROOT = Path(__file__).parent.parent
SLOW_S = 240


@pytest.mark.sweep
@pytest.mark.parametrize(("model", "width"), [("sd", 64), ("bundled", 256)])
def test_the_notebook_shows_grids_and_pictures(
    tmp_path: Path,
    model_folder: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    width: int,
) -> None:
    """Two rounds are shown side by side; a picture is its own file."""
    monkeypatch.setenv("SEEDGRID_LIBRARY", str(tmp_path / "library"))
    named = model if model == "bundled" else str(model_folder(model))
    monkeypatch.setenv("SEEDGRID_MODEL", named)
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(ROOT / "notebooks" / "seedgrid.ipynb", as_version=4)
    NotebookClient(notebook, timeout=SLOW_S, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [
        each.data for cell in notebook.cells for each in cell.get("outputs", ()) if "data" in each
    ]
    shown = [
        Image.open(io.BytesIO(base64.b64decode(data["image/png"])))
        for data in outputs
        if "image/png" in data
    ]
    widths = [picture.width for picture in shown]
    assert len(shown) == 3
    assert widths == [2 * width, 2 * width, width]
    assert shown[2].text.keys() >= {"seedgrid", "parameters"}
    assert outputs[-1]["text/plain"] == "True"


def test_the_notebook_is_kept_without_what_it_printed() -> None:
    """Pictures in the file would be of another machine and another day."""
    notebook = nbformat.read(ROOT / "notebooks" / "seedgrid.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)
