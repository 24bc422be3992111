"""Shapes to click: what a model takes, with about as many pixels as it was made for."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seedgrid.core.card import shapes
from seedgrid.core.request import Request, resolve
from seedgrid.testing.fake import FAKE_CARD


@pytest.mark.parametrize(
    ("width", "height", "multiple"),
    [(256, 256, 8), (1024, 1024, 64), (512, 768, 8), (832, 480, 16), (64, 64, 32), (2048, 2048, 8)],
)
def test_every_shape_can_be_painted(width: int, height: int, multiple: int) -> None:
    """And the model's own comes first; each is another size, near its ratio."""
    card = replace(FAKE_CARD, width=width, height=height, size_multiple=multiple)
    found = shapes(card)
    assert (found[0].width, found[0].height, found[0].is_own) == (width, height, True)
    assert len({shape.text for shape in found}) == len(found)
    for shape in found:
        asked = Request(prompt="x", seeds=(0,), width=shape.width, height=shape.height)
        assert resolve(asked, card)[0].width == shape.width
        assert 0.35 < shape.width * shape.height / (width * height) < 2
        if shape.ratio and min(width, height) > 200:
            across, down = map(int, shape.ratio.split(":"))
            assert shape.width / shape.height == pytest.approx(across / down, rel=0.1)


def test_a_model_of_one_size_has_one_shape() -> None:
    """Nothing is offered that it refuses."""
    assert [shape.text for shape in shapes(replace(FAKE_CARD, fixed_size=True))] == ["256x256"]
