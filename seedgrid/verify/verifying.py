"""Paints pictures again under their passports and compares them, on the backend's thread."""

import logging
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from seedgrid.core.errors import (
    ModelError,
    PictureError,
    RunCancelled,
    RunError,
    SeedGridError,
    as_ours,
)
from seedgrid.core.picture import Pixels
from seedgrid.core.recipe import Passport, Recipe, in_batches
from seedgrid.diffusion.backend import Backend, Placement, Unwatched, Watch, placement_of
from seedgrid.verify.claim import Claim, read_claim
from seedgrid.verify.comparison import Reason, passport_changes
from seedgrid.verify.judging import Repaint, Verdict, impossible, judge

_THREADS_A_CORE: Final = 16  # the most that are restored from a passport; an arbitrary limit

logger = logging.getLogger(__name__)


def verify(
    claims: Sequence[Claim],
    backend: Backend,
    *,
    watch: Watch | None = None,
    device: str | None = None,
) -> tuple[Verdict, ...]:
    """Verify claims by batch; an error makes only its claim `impossible`. Raise RunCancelled."""
    verdicts: dict[int, Verdict] = {}
    for indices in batches(claims):
        batch = [claims[index] for index in indices]
        judged = _verify_batch(batch, backend, watch or Unwatched(), device)
        verdicts |= zip(indices, judged, strict=True)
    return tuple(verdicts[index] for index in range(len(claims)))


def read_claims(paths: Sequence[Path]) -> tuple[list[Claim], list[Verdict]]:
    """Read PNG files; unreadable ones, and those without a recipe, become `impossible` verdicts."""
    claims: list[Claim] = []
    unreadable: list[Verdict] = []
    for path in paths:
        try:
            claims.append(read_claim(path))
        except PictureError as error:
            unreadable.append(impossible(str(path), error))
    return claims, unreadable


def batches(claims: Sequence[Claim]) -> list[list[int]]:
    """Group the claims' indices by batch: those of a batch have the same passport."""
    return in_batches(
        range(len(claims)),
        lambda index: claims[index].recipe,
        lambda index: claims[index].passport.digest,
    )


def _verify_batch(
    batch: Sequence[Claim], backend: Backend, watch: Watch, device: str | None
) -> list[Verdict]:
    try:
        if batch[0].recipe.is_portable:
            device = device or "auto"  # Its bits are those of every device.
        placement = placement_of(batch[0].passport, device=device)
        # A file can claim any number of threads; an excessive one is reported as a difference.
        if (placement.threads or 0) > _THREADS_A_CORE * (os.cpu_count() or 1):
            placement = replace(placement, threads=None)
        painted = _paint(batch, backend, placement, watch)
        if not _all_reproduce(batch, painted):
            painted = _probe_for_doubt(painted, batch[0].recipe, backend, placement, watch)
        return [judge(*pair, painted) for pair in zip(batch, painted.pictures, strict=True)]
    except RunCancelled:
        raise
    except Exception as error:  # One file must not stop the others.
        if len(batch) > 1:  # The cause may be one claim: each is verified alone.
            alone = (_verify_batch([claim], backend, watch, device) for claim in batch)
            return [verdict for verdicts in alone for verdict in verdicts]
        if not isinstance(error, SeedGridError):
            logger.exception("a picture could not be verified")
        return [impossible(batch[0].name, as_ours(error), batch[0])]


def _paint(batch: Sequence[Claim], backend: Backend, placement: Placement, watch: Watch) -> Repaint:
    """Paint a batch under the passport of its claims, as far as this process can."""
    recipes: list[Recipe] = [claim.recipe for claim in batch]
    passport = backend.prepare(recipes[0], placement)
    parents = _paint_parents(recipes, backend, placement, watch)
    pictures = backend.paint(recipes, placement, watch)
    # Portable pictures do not depend on the passport: nothing is restored.
    is_native = not recipes[0].is_portable
    restored = _restored_settings(backend, recipes[0], placement, passport) if is_native else []
    return Repaint(
        pictures=pictures,
        passport=passport,
        parents=parents,
        reasons=tuple(restored),
        is_fragile=is_native and _is_fragile(backend, recipes[0]),
    )


def _paint_parents(
    recipes: Sequence[Recipe], backend: Backend, placement: Placement, watch: Watch
) -> dict[str, Pixels]:
    """Paint the parents of pictures with a region; the backend caches them."""
    painted: dict[str, Pixels] = {}
    parents = {each.parent.id: each.parent for each in recipes if each.parent and each.mask}
    for recipe_id, parent in parents.items():
        backend.prepare(parent, placement)
        (picture,) = backend.paint([parent], placement, watch)
        if not isinstance(picture, RunError):
            painted[recipe_id] = picture
    return painted


def _all_reproduce(batch: Sequence[Claim], painted: Repaint) -> bool:
    """Tell whether each new picture equals its claim; those without a comparison count as equal."""
    pairs = zip(batch, painted.pictures, strict=True)
    return all(
        isinstance(pixels, RunError)
        or claim.is_altered  # Its pixels were changed: nothing to compare with.
        or claim.pixels is None
        or pixels.shape != claim.pixels.shape
        or np.array_equal(pixels, claim.pixels)
        for claim, pixels in pairs
    )


def _probe_for_doubt(
    painted: Repaint, recipe: Recipe, backend: Backend, placement: Placement, watch: Watch
) -> Repaint:
    """Probe the lock; if it does not hold, other pixels may not be due to the file."""
    report = None if recipe.is_portable else backend.probe(recipe, placement, watch)
    if report is None or report.holds:
        return painted
    is_repeatable = report.tested_width > 0
    return replace(painted, doubt="lock_broken" if is_repeatable else "not_repeatable")


def _restored_settings(
    backend: Backend, recipe: Recipe, placement: Placement, now: Passport
) -> list[Reason]:
    """Return a reason that lists the settings restored for this batch, if any."""
    usual = backend.prepare(recipe, replace(placement, threads=None, switches=()))
    settings = [f"{name} {value}" for name, value in passport_changes(usual, now)]
    settings += [
        f"{name.replace('_', ' ')} {getattr(placement, name)}"
        for name in ("offload", "vae_slicing", "vae_tiling", "channels_last", "attention")
        if getattr(placement, name) != getattr(Placement(), name)
    ]
    return [Reason("restored", what=", ".join(settings))] if settings else []


def _is_fragile(backend: Backend, recipe: Recipe) -> bool:
    try:
        return backend.card(recipe.model.id).fragile
    except ModelError:  # The name finds another model, which has no card.
        return False
