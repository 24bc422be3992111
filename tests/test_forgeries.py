"""Forgeries: the pixels and our own two texts are judged, and all else is named as not verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from forgeries import TABLE, Forge, Original
from painting import PLACEMENT, SilentWatch, recipes_for
from pictures import make_lineage

from seedgrid.core.picture import Picture
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.verify import read_claims, verify


@pytest.fixture(scope="module")
def backend() -> DiffusersBackend:
    return DiffusersBackend()


@pytest.fixture(scope="module")
def originals(
    backend: DiffusersBackend, model_folder: Callable[[str], Path]
) -> tuple[Original, Original]:
    """Two honest pictures of this machine."""
    recipes = recipes_for(backend, model_folder("sd"), num_inference_steps=2)[:2]
    passport = backend.prepare(recipes[0], PLACEMENT)
    painted = backend.paint(recipes, PLACEMENT, SilentWatch())
    one, other = (
        Original(Picture(pixels=pixels, recipe=recipe, passport=passport, lineage=make_lineage()))
        for pixels, recipe in zip(painted, recipes, strict=True)
    )
    return one, other


@pytest.mark.parametrize(
    ("verdict", "sentence", "forge"),
    [row[1:] for row in TABLE],
    ids=[row[0] for row in TABLE],
)
def test_every_file_is_judged_by_the_rule(
    backend: DiffusersBackend,
    originals: tuple[Original, Original],
    tmp_path: Path,
    verdict: str,
    sentence: str,
    forge: Forge,
) -> None:
    """Edits, texts, forms, records: the right verdict, the right sentence, and no other one."""
    path = tmp_path / "it.png"
    path.write_bytes(forge(*originals))
    claims, unreadable = read_claims([path])
    (found,) = [*verify(claims, backend), *unreadable]
    said = "\n".join(str(reason) for reason in found.reasons if reason.code != "restored")
    assert found.verdict == verdict, said
    assert sentence in said
    assert bool(said) == bool(sentence)
    assert ("not verified:" in said) == ("not verified:" in sentence)
    assert not found.confirms or verdict == "identical"


def test_it_is_said_where(
    backend: DiffusersBackend, originals: tuple[Original, Original], tmp_path: Path
) -> None:
    """The smallest rectangle around all that differs."""
    pixels = originals[0].picture.pixels.copy()
    pixels[4:10, 9:15] ^= 255
    (tmp_path / "it.png").write_bytes(originals[0].with_pixels(pixels))
    claims, _ = read_claims([tmp_path / "it.png"])
    (verdict,) = verify(claims, backend)
    assert verdict.as_json()["where"] == {"left": 9, "top": 4, "width": 6, "height": 6}
