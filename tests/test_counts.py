"""How often the expensive parts run: what can be known is not computed again. No seconds here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from painting import PLACEMENT, paint, recipes_for
from sweeping import rest_swept

from seedgrid.diffusion.backend import Placement
from seedgrid.diffusion.deferred import DeferredBackend
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.diffusion.previews import Preview
from seedgrid.studio import Studio

ENCODERS = ("text_encoder", "text_encoder_2", "text_encoder_3")
DENOISERS = ("unet", "transformer")


@contextmanager
def counted(backend: DiffusersBackend) -> Iterator[Counter[str]]:
    """Count what the parts of the backend's only pipeline compute inside the block."""
    (loaded,) = backend._pipelines._loaded.values()
    counts: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch:
        for name in (*ENCODERS, *DENOISERS):
            part = getattr(loaded.pipeline, name, None)
            if part is not None:
                patch.setattr(part, "forward", _counting(part.forward, name, counts))
        vae = getattr(loaded.pipeline, "vae", None)
        if vae is not None:
            decode = vae.decode

            def counting(latents: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
                counts["decoded"] += len(latents)
                return decode(latents, *args, **kwargs)

            patch.setattr(vae, "decode", counting)
        yield counts


def _counting(call: Callable[..., Any], name: str, counts: Counter[str]) -> Callable[..., Any]:
    def counting(*args: Any, **kwargs: Any) -> Any:
        counts[name] += 1
        return call(*args, **kwargs)

    return counting


def known_kind(folder: Path) -> None:
    """Paint a batch: the first of its kind is decoded twice, to compare (test_decoding.py)."""
    backend = DiffusersBackend()
    paint(backend, recipes_for(backend, folder))


def encodings(counts: Counter[str]) -> int:
    return sum(counts[name] for name in ENCODERS)


@pytest.mark.parametrize(
    "name", rest_swept(["sd", "sdxl", "sd3", "flux", "pixart"], ["sd", "flux"])
)
def test_known_words_are_not_encoded_again(folder: Path, name: str) -> None:
    """The second time no text encoder runs, and the pictures are the same to the bit."""
    backend = DiffusersBackend()
    recipes = recipes_for(backend, folder, negative_prompt="fog" if name != "flux" else "")
    first = paint(backend, recipes)
    with counted(backend) as counts:
        again = paint(backend, recipes[::-1])[::-1]
    assert encodings(counts) == 0
    np.testing.assert_array_equal(again, first)
    np.testing.assert_array_equal(paint(DiffusersBackend(), recipes[::-1])[::-1], first)


@pytest.mark.parametrize("num_pictures", [1, 3, 4])
def test_a_batch_costs_the_same_whatever_is_wanted(sd: Path, num_pictures: int) -> None:
    """One call of the denoiser a step, one of the encoder a prompt list; four are decoded once."""
    backend = DiffusersBackend()
    known_kind(sd)
    recipes = recipes_for(backend, sd)[:num_pictures]
    backend.prepare(recipes[0], PLACEMENT)
    with counted(backend) as counts:
        paint(backend, recipes)
    assert counts == {"text_encoder": 2, "unet": 3, "decoded": 4}
    (loaded,) = backend._pipelines._loaded.values()
    assert "step" not in vars(loaded.pipeline.scheduler), "it would keep the model in memory"


@pytest.mark.parametrize("wanted", [False, True])
def test_previews_are_made_where_they_are_wanted(sd: Path, tmp_path: Path, wanted: bool) -> None:
    """A script without a screen pays for none: no picture of noise or step, no decode to learn."""
    placement = Placement(device="cpu", threads=1, previews=wanted)
    counts: Counter[str] = Counter()
    small = {"num_inference_steps": 3, "width": 32, "height": 32}
    with Studio(str(sd), tmp_path / "before", placement=placement) as studio:
        studio.grid("a red fox", **small)  # The first of its kind is decoded twice, to compare.
    with Studio(str(sd), tmp_path, placement=placement) as studio:
        studio.engine.warm(studio.model)
        studio.engine.submit_task(lambda _: None).result()
        assert isinstance(studio.backend, DeferredBackend)
        backend = studio.backend._painter
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Preview, "__call__", _counting(Preview.__call__, "previews", counts))
            patch.setattr(Preview, "of_noise", _counting(Preview.of_noise, "noises", counts))
            with counted(backend) as parts:
                studio.grid("a red fox", **small)
    assert counts["previews"] == (3 if wanted else 0)
    assert counts["noises"] == (1 if wanted else 0)
    assert parts["decoded"] == 4
