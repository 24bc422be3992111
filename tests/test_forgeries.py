"""Forgeries: the pixels and our own two texts are judged, and all else is named as not verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from forgeries import TABLE, Forge, Original
from painting import PLACEMENT, recipes_for
from pictures import make_lineage
from watches import SilentWatch

from seedgrid.core.picture import Picture
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.verify import read_claims, verify


@pytest.fixture(scope="module")
def originals(painter: DiffusersBackend, sd: Path) -> tuple[Original, Original]:
    """Two honest pictures of this machine."""
    recipes = recipes_for(painter, sd, num_inference_steps=2)[:2]
    passport = painter.prepare(recipes[0], PLACEMENT)
    painted = painter.paint(recipes, PLACEMENT, SilentWatch())
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
    painter: DiffusersBackend,
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
    (found,) = [*verify(claims, painter), *unreadable]
    said = "\n".join(str(reason) for reason in found.reasons if reason.code != "restored")
    assert found.verdict == verdict, said
    assert sentence in said
    assert bool(said) == bool(sentence)
    assert ("not verified:" in said) == ("not verified:" in sentence)
    assert not found.confirms or verdict == "identical"
