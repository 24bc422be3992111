"""What diffusers and torch raise becomes a sentence for the user and a traceback in the log."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Sequence
from pathlib import Path

import diffusers
import pytest
from painting import PLACEMENT, paint, recipes_for
from refusing import refused

from seedgrid.core.errors import ModelError, RunError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.diffusers_backend import DiffusersBackend


@pytest.fixture
def recipes(painter: DiffusersBackend, sd: Path) -> tuple[Recipe, ...]:
    return recipes_for(painter, sd)


def test_what_cannot_be_imported_is_no_damage_of_the_model(
    recipes: Sequence[Recipe], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where Python leaves docstrings out, of which transformers makes others at its import."""
    monkeypatch.delattr(diffusers, "StableDiffusionPipeline")
    monkeypatch.delitem(diffusers._class_to_module, "StableDiffusionPipeline")
    with refused(RunError, "library_import", match="requirements"):
        DiffusersBackend().prepare(recipes[0], PLACEMENT)


def test_what_diffusers_refuses_is_a_sentence_and_logged_whole(
    painter: DiffusersBackend, recipes: Sequence[Recipe], caplog: pytest.LogCaptureFixture
) -> None:
    """A size that no latent fits: its words reach the user, its traceback the log."""
    with refused(RunError, "pipeline_refused", match="divisible by 8"):
        paint(painter, [recipes[0].replace(width=60)])
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert record.exc_info is not None
    assert "check_inputs" in caplog.text


def test_a_contradictory_model_is_a_sentence_and_logged_whole(
    painter: DiffusersBackend, sd: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What diffusers raises while it is loaded: the model is damaged, and the log has it all."""
    copy = Path(shutil.copytree(sd, tmp_path / "misfit"))
    config = json.loads((copy / "unet" / "config.json").read_text())
    (copy / "unet" / "config.json").write_text(
        json.dumps(config | {"block_out_channels": [24, 48]})
    )
    recipe = recipes_for(painter, copy)[0]
    with refused(ModelError, "model_damaged", match="damaged"):
        painter.prepare(recipe, PLACEMENT)
    assert any(record.exc_info for record in caplog.records)
