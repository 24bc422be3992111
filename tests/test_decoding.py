"""Decoding two by two: only where every bit was proven equal, and then without a trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from painting import paint, plain_call, recipes_for
from sweeping import rest_swept

from seedgrid.diffusion.caches import PairDecoder
from seedgrid.diffusion.diffusers_backend import DiffusersBackend

pytestmark = pytest.mark.usefixtures("forgetful")


class Vae:
    """Decodes by doubling; remembers how many rows each call had.

    Args:
        mixes: Whether the number of rows can be seen in the bits.
    """

    def __init__(self, *, mixes: bool = False) -> None:
        self.calls: list[int] = []
        self._mixes = mixes

    def decode(self, latents: torch.Tensor, *, return_dict: bool = True) -> Any:
        self.calls.append(len(latents))
        pictures = 2 * latents + (1e-7 * len(latents) if self._mixes else 0)
        return SimpleNamespace(sample=pictures) if return_dict else (pictures,)


def decode(decoder: PairDecoder, vae: Vae, latents: torch.Tensor, context: str = "here") -> Any:
    with decoder.applied_to(SimpleNamespace(vae=vae), context):
        (pictures,) = vae.decode(latents, return_dict=False)
    return pictures


def latents_of(num_rows: int) -> torch.Tensor:
    return torch.arange(num_rows * 48.0).reshape(num_rows, 3, 4, 4)


def test_what_was_proven_is_decoded_two_by_two() -> None:
    """The first batch of a kind both ways, all later ones in pairs; in other processes, too."""
    decoder, vae = PairDecoder(), Vae()
    for _ in range(2):
        assert torch.equal(decode(decoder, vae, latents_of(4)), 2 * latents_of(4))
    assert vae.calls == [4, 2, 2, 2, 2]
    vae = Vae()
    assert torch.equal(decode(PairDecoder(), vae, latents_of(4)), 2 * latents_of(4))
    assert vae.calls == [2, 2]


def test_where_a_bit_differs_all_are_decoded_at_once() -> None:
    """A number of rows that can be seen in the bits, however faintly, is never changed."""
    decoder, vae = PairDecoder(), Vae(mixes=True)
    whole = Vae(mixes=True).decode(latents_of(4), return_dict=False)[0]
    for _ in range(3):
        assert torch.equal(decode(decoder, vae, latents_of(4)), whole)
    assert vae.calls == [4, 2, 2, 4, 4]
    vae = Vae(mixes=True)
    decode(PairDecoder(), vae, latents_of(4))
    assert vae.calls == [4]


@pytest.mark.parametrize(
    "family",
    rest_swept(["sd", "sdxl", "sd3", "flux", "pixart-sigma", "sana"], ["sd", "flux", "sana"]),
)
def test_pictures_are_those_of_plain_diffusers(
    family: str, model_folder: Callable[[str], Path]
) -> None:
    """Of the batch that proves and of the one that trusts."""
    folder = model_folder(family)
    extra = {"use_resolution_binning": False} if family in ("pixart-sigma", "sana") else {}
    backend = DiffusersBackend()
    recipes = recipes_for(backend, folder)
    plain = plain_call(folder, recipes, **extra)
    for _ in range(2):
        for ours, theirs in zip(paint(backend, recipes), plain, strict=True):
            assert np.array_equal(ours, theirs)
