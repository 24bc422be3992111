"""The film of a picture: by Python and by command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image, ImageSequence

from seedgrid.cli import main
from seedgrid.core.errors import InputError
from seedgrid.export.film import durations_ms
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend


def _length_ms(frame: Image.Image) -> int:
    frame.load()
    return int(frame.info["duration"])


def test_a_film_shows_every_step_and_keeps_the_library(studio: Studio, tmp_path: Path) -> None:
    """The noise, each step, the end; bit for bit the picture, which is kept once."""
    (picture,) = studio.grid("a fox", seeds="7", width=64, height=64, num_inference_steps=5)
    for name, kind in (("way.webp", "WEBP"), ("way.gif", "GIF")):
        film = studio.film(picture, tmp_path / name)
        assert film.is_same
        assert len(film.steps) == 6
        with Image.open(tmp_path / name) as image:
            assert image.format == kind
            assert image.size == (64, 64)
            assert (b"trainedAlgorithmicMedia" in image.info.get("xmp", b"")) == (kind == "WEBP")
            lengths = [_length_ms(frame) for frame in ImageSequence.Iterator(image)]
        assert sum(lengths) == sum(durations_ms(6))
    assert len(studio.library.search().entries) == 1
    tiled = picture.passport.model_copy(update={"vae_tiling": True})
    studio.film(replace(picture, passport=tiled), tmp_path / "tiled.gif")
    assert studio.backend.calls[-1].placement.vae_tiling
    studio.backend.calls.clear()
    with pytest.raises(InputError, match="mp4"):
        studio.film(picture, tmp_path / "way.mp4")
    assert not studio.backend.calls, "its name alone says so, and painting may take minutes"


@pytest.mark.usefixtures("fake")
def test_by_command(library_folder: Path, tmp_path: Path) -> None:
    """`export --film`, of a picture in the library."""
    with Studio(library=library_folder, backend=FakeBackend()) as studio:
        (one,) = studio.grid("a fox", seeds="1", width=64, height=64, num_inference_steps=2)
    film = tmp_path / "film.webp"
    assert main(["export", one.id, "--film", str(film), "--library", str(library_folder)]) == 0
    assert film.stat().st_size > 100
