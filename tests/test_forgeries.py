"""Forgeries: the pixels and our own two texts are judged, and all else is named as not verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from forgeries import TABLE, Original
from painting import PLACEMENT, recipes_for
from pictures import make_lineage
from watches import SilentWatch

from seedgrid.core.picture import Picture
from seedgrid.diffusion.diffusers_backend import DiffusersBackend
from seedgrid.verify.verifying import read_claims, verify


@pytest.fixture(scope="module")
def original(painter: DiffusersBackend, sd: Path) -> Original:
    """An honest picture of this machine."""
    recipes = recipes_for(painter, sd, num_inference_steps=2)[:2]
    passport = painter.prepare(recipes[0], PLACEMENT)
    pixels, neighbour = painter.paint(recipes, PLACEMENT, SilentWatch())
    lineage = make_lineage()
    picture = Picture(pixels=pixels, recipe=recipes[0], passport=passport, lineage=lineage)
    return Original(picture, neighbour)


@pytest.mark.parametrize(
    ("verdict", "name"), [(verdict, name) for verdict, rows in TABLE.items() for name in rows]
)
def test_every_file_is_judged_by_the_rule(
    painter: DiffusersBackend, original: Original, tmp_path: Path, verdict: str, name: str
) -> None:
    """Edits, texts, forms, records: the right verdict, the right sentence, and no other one."""
    sentence, forge = TABLE[verdict][name]
    path = tmp_path / "it.png"
    path.write_bytes(forge(original))
    claims, unreadable = read_claims([path])
    (found,) = [*verify(claims, painter), *unreadable]
    said = "\n".join(str(reason) for reason in found.reasons if reason.code != "restored")
    assert found.verdict == verdict, said
    assert sentence in said
    assert bool(said) == bool(sentence)
    assert ("not verified:" in said) == ("not verified:" in sentence)
    assert not found.confirms or verdict == "identical"
