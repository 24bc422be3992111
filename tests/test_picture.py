"""Picture: the digest of pixels, ids and lineage."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from pictures import make_lineage
from pydantic import ValidationError

from seedgrid.core.picture import Lineage, pixels_sha256


def test_the_digest_is_over_the_rgb_bytes_row_by_row() -> None:
    """Anyone can recompute it: SHA-256 of the bytes, whatever the memory layout."""
    pixels = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    expected = hashlib.sha256(pixels.tobytes()).hexdigest()
    assert pixels_sha256(pixels) == expected
    assert pixels_sha256(np.asfortranarray(pixels)) == expected
    assert pixels_sha256(np.pad(pixels, ((0, 0), (0, 1), (0, 0)))[:, :7]) == expected


@pytest.mark.parametrize(
    "wrong",
    [{"picture_id": "../../etc"}, {"parent_id": "A" * 32}, {"cell": -1}, {"colour": 1}],
    ids=str,
)
def test_a_lineage_cannot_hold_nonsense(wrong: dict[str, object]) -> None:
    """Ids from files become parts of paths elsewhere: only 32 hexadecimal digits get in."""
    good = make_lineage().model_dump()
    Lineage.model_validate(good)
    with pytest.raises(ValidationError):
        Lineage.model_validate(good | wrong)
