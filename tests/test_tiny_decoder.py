"""Tiny decoders: live pictures are decoded by one that was fetched; what is kept never is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import diffusers
import numpy as np
import pytest
from hub import Hub
from painting import PLACEMENT, plain_call, recipes_for
from pipeline_parts import seeded
from watches import SilentWatch

from seedgrid.core.errors import ModelError
from seedgrid.core.request import Request
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.formats import png
from seedgrid.models import registry
from seedgrid.studio import Studio
from seedgrid.studio.model_manager import ModelManager

NAME = "madebyollin/taesd"
HALVES: dict[str, Any] = {
    "encoder_block_out_channels": (8, 8),
    "decoder_block_out_channels": (8, 8),
    "num_encoder_blocks": (1, 1),
    "num_decoder_blocks": (1, 1),
}
"""As the small model's own decoder does."""
ASKED = Request(prompt="a red fox", seeds=(0, 1, 2, 3), width=64, height=64, num_inference_steps=3)


def write_decoder(folder: Path) -> Path:
    """Write a small one of the kind that Stable Diffusion's latents need."""
    seeded(diffusers.AutoencoderTiny(**HALVES), 9).save_pretrained(folder)
    return folder


def equal(some: Sequence[Any], others: Sequence[Any]) -> bool:
    return np.array_equal(np.stack(some), np.stack(others))


@pytest.fixture
def decoder(hub_home: Path) -> Path:
    """One that was fetched to this machine."""
    return write_decoder(hub_home / "hub" / "models--madebyollin--taesd" / "snapshots" / ("0" * 40))


def test_its_pictures_are_those_of_the_plain_pipeline_with_it(sd: Path, decoder: Path) -> None:
    """Bit for bit; and not those of the model's own decoder, which has its place back then."""
    backend = DiffusersBackend()
    recipes = recipes_for(backend, sd)
    own = backend.paint(recipes, PLACEMENT, SilentWatch())
    quick = backend.paint(recipes, replace(PLACEMENT, decoder=NAME), SilentWatch())
    vae = diffusers.AutoencoderTiny.from_pretrained(decoder)
    assert equal(quick, plain_call(sd, recipes, loading={"vae": vae}))
    assert not equal(quick, own)
    assert equal(backend.paint(recipes, PLACEMENT, SilentWatch()), own)


def test_live_pictures_show_it_and_kept_ones_never(
    sd: Path, decoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where decoding is most of a batch; what is asked for in earnest is the model's own."""
    assert decoder.is_dir()
    with Studio(str(sd), tmp_path / "library", placement=PLACEMENT) as studio:
        first, *_ = studio.start_grid(ASKED).result()
        assert 0 < studio.engine.speeds.decoding_share(first.recipe) < 1
        monkeypatch.setattr(studio.engine.speeds, "decoding_share", lambda _: 0.9)
        live = studio.start_grid(replace(ASKED, prompt="a blue fox"), live=True)
        live.result()
        shown = [studio.engine.painted_live(live.owner, job.recipe.id) for job in live.jobs]
        kept = studio.start_grid(replace(ASKED, prompt="a blue fox")).result()
        plain = plain_call(sd, [picture.recipe for picture in kept])
        assert equal([png.read_pixels(picture.path) for picture in kept], plain)
        assert not equal(shown, plain)


def test_it_is_offered_for_the_models_here_and_fetched_once(
    manager: ModelManager, hub: Hub, tmp_path: Path
) -> None:
    """Only that of their kind, by the same download as models."""
    hub.add(NAME, write_decoder(tmp_path / "published"))
    manager.download("someone/foxes")
    manager.downloads.wait("someone/foxes")
    assert [each.id for each in manager.recommended() if each.use == "live"] == [NAME]
    manager.download(NAME)
    done = manager.downloads.wait(NAME)
    assert (done.state, done.error) == ("done", None)
    assert [each.id for each in manager.recommended() if each.use == "live"] == []
    assert manager.tiny_decoder("someone/foxes") == NAME
    with pytest.raises(ModelError):
        registry.find(NAME)
