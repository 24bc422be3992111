"""Whose error it is: diffusers' and torch's become a sentence and a log line, ours stay bugs."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from painting import PLACEMENT, paint, recipes_for
from refusing import refused
from watches import SilentWatch

from seedgrid.core.errors import ModelError, RunError
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion import loading
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.models import registry


@pytest.fixture
def recipes(painter: DiffusersBackend, sd: Path) -> tuple[Recipe, ...]:
    return recipes_for(painter, sd)


def test_what_cannot_be_imported_is_no_damage_of_the_model(sd: Path) -> None:
    """As where Python leaves docstrings out, of which transformers makes others at its import."""
    family = registry.find(str(sd)).files.family
    with refused(RunError, "library_import", match="requirements"):
        loading._pipeline_class(replace(family, pipeline="ThereIsNoSuchPipeline"))


class BuggyWatch(SilentWatch):
    """A watch with a slip of the pen, called from inside diffusers' loop."""

    def step(self, number: int, total: int, previews: Callable[[], tuple[Pixels, ...]]) -> None:
        super().stepz(number, total, previews)  # type: ignore[misc]


def test_what_diffusers_refuses_is_a_sentence_and_logged_whole(
    painter: DiffusersBackend, recipes: Sequence[Recipe], caplog: pytest.LogCaptureFixture
) -> None:
    """A size that no latent fits: its words reach the user, its traceback the log."""
    with refused(RunError, "pipeline_refused", match="divisible by 8"):
        paint(painter, [recipes[0].replace(width=60)])
    (record,) = [each for each in caplog.records if each.levelno >= logging.WARNING]
    assert record.exc_info is not None
    assert "check_inputs" in caplog.text


def test_our_slip_inside_the_loop_stays_ours(
    painter: DiffusersBackend, recipes: Sequence[Recipe]
) -> None:
    """Diffusers' frames lie around it; the innermost of them and ours is ours."""
    with pytest.raises(AttributeError, match="stepz"):
        painter.paint(recipes[:1], PLACEMENT, BuggyWatch())


def test_loading_translates_only_what_diffusers_raises(
    painter: DiffusersBackend,
    sd: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A contradictory model is a sentence and a log line; a slip of ours is neither."""
    copy = Path(shutil.copytree(sd, tmp_path / "misfit"))
    config = json.loads((copy / "unet" / "config.json").read_text())
    (copy / "unet" / "config.json").write_text(
        json.dumps(config | {"block_out_channels": [24, 48]})
    )
    recipe = recipes_for(painter, copy)[0]
    with refused(ModelError, "model_damaged", match="damaged"):
        painter.prepare(recipe, PLACEMENT)
    assert any(record.exc_info for record in caplog.records)

    def slip(name: str) -> None:
        raise KeyError(name)

    monkeypatch.setattr(loading, "torch_dtype", slip)
    with pytest.raises(KeyError):
        painter.prepare(recipe, PLACEMENT)
