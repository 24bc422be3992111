"""Run recipes again under their old passports and compare. Pictures of one grid share a batch.

It touches the backend, so it belongs on the thread that owns it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np

from seedgrid.core.errors import ModelError, PictureError, RunCancelled, RunError, SeedGridError
from seedgrid.core.recipe import ModelRef, Passport, Recipe
from seedgrid.diffusion.backend import Backend, Placement, Unwatched, Watch
from seedgrid.diffusion.placement import placement_of
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.diffusion.worker.spawn import paint_in_child
from seedgrid.verify.claim import Claim, read_claim
from seedgrid.verify.judging import Painted, Verdict, impossible, judge
from seedgrid.verify.reasons import Reason, passport_changes, reason
from seedgrid.verify.restoring import limits_of

logger = logging.getLogger(__name__)


@runtime_checkable
class Prober(Protocol):
    """A backend that can tell whether the lock holds."""

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        """Probe recipes like this one."""
        ...


@runtime_checkable
class Rehasher(Protocol):
    """A backend that can read a model's weights anew."""

    def rehash(self, ref: ModelRef) -> None:
        """Compare every byte of the weights with what a recipe names.

        Raises:
            ModelError: `model_changed`.
        """
        ...


def verify(
    claims: Sequence[Claim],
    backend: Backend,
    *,
    watch: Watch | None = None,
    device: str | None = None,
) -> tuple[Verdict, ...]:
    """Verify claims and return their verdicts in order. See `verify_each`."""
    verdicts = dict(verify_each(claims, backend, watch=watch, device=device))
    return tuple(verdicts[place] for place in range(len(claims)))


def verify_each(
    claims: Sequence[Claim],
    backend: Backend,
    *,
    watch: Watch | None = None,
    device: str | None = None,
) -> Iterator[tuple[int, Verdict]]:
    """Verify claims, batch by batch.

    Args:
        claims: In any number and mixture.
        backend: Paints them; used on the calling thread.
        watch: Follows the steps and may stop the work.
        device: Where to compute, whatever the passports say.

    Yields:
        The place of a claim among the claims, and its verdict, as soon as there is one.

    Whatever hinders one batch, a setting that the model refuses or the memory, is `impossible` for
    its claims, and the next batch is verified.

    Raises:
        RunCancelled: `watch.cancelled` became true.
    """
    watch = watch or Unwatched()
    for places in _batches(claims):
        batch = [claims[place] for place in places]
        placement = placement_of(batch[0].passport, device=device)
        try:
            painted = _paint(batch, backend, placement, watch)
            if not _all_reproduce(batch, painted):
                painted = _doubted(painted, batch[0].recipe, backend, placement, watch)
        except RunCancelled:
            raise
        except Exception as error:  # One file must not stop the others, whatever is in it.
            if not isinstance(error, SeedGridError):
                logger.exception("a picture could not be verified")
            for place in places:
                yield place, impossible(claims[place].name, _as_ours(error))
        else:
            for place, pixels in zip(places, painted.pictures, strict=True):
                yield place, judge(claims[place], pixels, painted)


def _as_ours(error: Exception) -> SeedGridError:
    if isinstance(error, SeedGridError):
        return error
    return RunError("run_unexpected", reason=f"{type(error).__name__}: {error}"[:200])


def verify_files(
    paths: Sequence[Path],
    backend: Backend,
    *,
    watch: Watch | None = None,
    device: str | None = None,
) -> Iterator[Verdict]:
    """Verify PNG files; one that cannot be read or holds no recipe is `impossible`."""
    claims: list[Claim] = []
    for path in paths:
        try:
            claims.append(read_claim(path))
        except PictureError as error:
            yield impossible(str(path), error)
    for _, verdict in verify_each(claims, backend, watch=watch, device=device):
        yield verdict


def _batches(claims: Sequence[Claim]) -> list[list[int]]:
    """Group claims that may share a batch: one batch key, one passport, at most W of them."""
    groups: dict[tuple[str, str], list[int]] = {}
    for place, claim in enumerate(claims):
        groups.setdefault((claim.recipe.batch_key, claim.passport.digest), []).append(place)
    batches = []
    for places in groups.values():
        width = claims[places[0]].recipe.lock_width
        batches += [places[start : start + width] for start in range(0, len(places), width)]
    return batches


def _paint(batch: Sequence[Claim], backend: Backend, placement: Placement, watch: Watch) -> Painted:
    """Compute a batch under the passport of its claims, in a child process if need be."""
    recipes: list[Recipe] = [claim.recipe for claim in batch]
    then = batch[0].passport
    passport = backend.prepare(recipes[0], placement)
    if recipes[0].is_portable:  # One answer everywhere: there is nothing to restore.
        pictures = backend.paint(recipes, placement, watch)
        return Painted(pictures=pictures, passport=passport, reasons=(), is_fragile=False)
    limits = limits_of(then, passport)
    else_than_usual = _restored(backend, recipes[0], placement, passport)
    if limits.environment is None:
        pictures = backend.paint(recipes, placement, watch)
    else:
        pictures, passport = paint_in_child(recipes, placement, limits.environment)
    return Painted(
        pictures=pictures,
        passport=passport,
        reasons=(*limits.reasons, *else_than_usual),
        is_fragile=_is_fragile(backend, recipes[0]),
    )


def _all_reproduce(batch: Sequence[Claim], painted: Painted) -> bool:
    pairs = zip(batch, painted.pictures, strict=True)
    return all(
        isinstance(pixels, RunError)
        or claim.is_altered  # Then the file does not fit itself, and nothing else is to blame.
        or pixels.shape != claim.pixels.shape
        or np.array_equal(pixels, claim.pixels)
        for claim, pixels in pairs
    )


def _doubted(
    painted: Painted, recipe: Recipe, backend: Backend, placement: Placement, watch: Watch
) -> Painted:
    """Ask the probe, where there is one, before a picture is blamed for what its slot did.

    Raises:
        ModelError: `model_changed`: its weights are not what they were, so they are to blame.
    """
    if isinstance(backend, Rehasher):
        backend.rehash(recipe.model)
    if recipe.is_portable or not isinstance(backend, Prober):
        return painted
    report = backend.probe(recipe, placement, watch)
    if report.holds:
        return painted
    repeats = report.tested_width > 0
    return replace(painted, doubt="lock_broken" if repeats else "not_repeatable")


def _restored(
    backend: Backend, recipe: Recipe, placement: Placement, now: Passport
) -> list[Reason]:
    """Say what was set for this run that is not set here otherwise."""
    usual = backend.prepare(recipe, replace(placement, threads=None, switches=()))
    what = [f"{name} {value}" for name, value in passport_changes(usual, now)]
    what += [
        f"{name.replace('_', ' ')} {getattr(placement, name)}"
        for name in ("offload", "vae_slicing", "vae_tiling", "channels_last", "attention")
        if getattr(placement, name) != getattr(Placement(), name)
    ]
    return [reason("restored", what=", ".join(what))] if what else []


def _is_fragile(backend: Backend, recipe: Recipe) -> bool:
    try:
        return backend.card(recipe.model.id).fragile
    except ModelError:  # Another model of that name was asked for last; it painted, so it is there.
        return False
