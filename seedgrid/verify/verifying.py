"""Run recipes again under their old passports and compare. Pictures of one grid share a batch.

It touches the backend, so it belongs on the thread that owns it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from seedgrid.core.errors import DeviceError, ModelError, PictureError, RunError, SeedGridError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Passport, Recipe
from seedgrid.diffusion.backend import Backend, Placement, Unwatched, Watch
from seedgrid.diffusion.placement import placement_of
from seedgrid.diffusion.probe_results import ProbeReport
from seedgrid.diffusion.worker.spawn import paint_in_child
from seedgrid.verify.claim import Claim, read_claim
from seedgrid.verify.comparison import (
    CLOSE_MAX_DIFFERENCE,
    CLOSE_PSNR_DB,
    Comparison,
    compare_pixels,
)
from seedgrid.verify.reasons import Reason, passport_changes, passport_differences, reason
from seedgrid.verify.restoring import limits_of

Word = Literal["identical", "close", "drifted", "impossible"]


@runtime_checkable
class Prober(Protocol):
    """A backend that can tell whether the lock holds."""

    def probe(self, recipe: Recipe, placement: Placement, watch: Watch) -> ProbeReport:
        """Probe recipes like this one."""
        ...


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a claim.

    Attributes:
        name: Of the claim.
        verdict: `identical`, all bits; `close`, within rounding; `drifted`, something else came
            out, or the file was edited; `impossible`, it cannot be run here.
        max_abs_diff: The largest difference, 0 … 255; None when there is nothing to compare.
        psnr_db: In dB; None when equal, or nothing to compare.
        differing_pixels: How many; None when there is nothing to compare.
        reasons: Differences of the passports first.
        pixels: What came out now.
        passport: Under which it came out.
    """

    name: str
    verdict: Word
    max_abs_diff: int | None = None
    psnr_db: float | None = None
    differing_pixels: int | None = None
    reasons: tuple[Reason, ...] = ()
    pixels: Pixels | None = field(default=None, repr=False, compare=False)
    passport: Passport | None = field(default=None, repr=False)

    def as_json(self) -> dict[str, Any]:
        """Return what `seedgrid verify --json` prints."""
        return {
            "path": self.name,
            "verdict": self.verdict,
            "max_abs_diff": self.max_abs_diff,
            "psnr_db": self.psnr_db,
            "differing_pixels": self.differing_pixels,
            "reasons": [str(item) for item in self.reasons],
        }


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

    Raises:
        RunCancelled: `watch.cancelled` became true.
        RunError: Out of memory, and whatever else is no verdict on the picture.
    """
    watch = watch or Unwatched()
    for places in _batches(claims):
        batch = [claims[place] for place in places]
        placement = placement_of(batch[0].passport, device=device)
        try:
            painted = _paint(batch, backend, placement, watch)
        except (ModelError, DeviceError, RunError) as error:
            if isinstance(error, RunError) and error.code != "portable_refused":
                raise
            for place in places:
                yield place, _impossible(claims[place].name, error)
        else:
            if not _all_reproduce(batch, painted):
                broken = _lock_is_broken(batch[0].recipe, backend, placement, watch)
                painted = replace(painted, lock_is_broken=broken)
            for place, pixels in zip(places, painted.pictures, strict=True):
                yield place, _judge(claims[place], pixels, painted)


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
            yield _impossible(str(path), error)
    for _, verdict in verify_each(claims, backend, watch=watch, device=device):
        yield verdict


@dataclass(frozen=True, kw_only=True)
class _Painted:
    pictures: tuple[Pixels, ...]
    passport: Passport
    reasons: tuple[Reason, ...]
    is_fragile: bool
    lock_is_broken: bool = False


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


def _paint(
    batch: Sequence[Claim], backend: Backend, placement: Placement, watch: Watch
) -> _Painted:
    """Compute a batch under the passport of its claims, in a child process if need be."""
    recipes: list[Recipe] = [claim.recipe for claim in batch]
    then = batch[0].passport
    passport = backend.prepare(recipes[0], placement)
    if recipes[0].is_portable:  # One answer everywhere: there is nothing to restore.
        return _Painted(
            pictures=backend.paint(recipes, placement, watch),
            passport=passport,
            reasons=(),
            is_fragile=False,
        )
    limits = limits_of(then, passport)
    else_than_usual = _restored(backend, recipes[0], placement, passport)
    if limits.environment is None:
        pictures = backend.paint(recipes, placement, watch)
    else:
        pictures, passport = paint_in_child(recipes, placement, limits.environment)
    return _Painted(
        pictures=pictures,
        passport=passport,
        reasons=(*limits.reasons, *else_than_usual),
        is_fragile=_is_fragile(backend, recipes[0]),
    )


def _all_reproduce(batch: Sequence[Claim], painted: _Painted) -> bool:
    pairs = zip(batch, painted.pictures, strict=True)
    return all(pixels_sha256(pixels) == claim.pixels_sha256 for claim, pixels in pairs)


def _lock_is_broken(recipe: Recipe, backend: Backend, placement: Placement, watch: Watch) -> bool:
    """Ask the probe, where there is one, before a picture is blamed for what its slot did."""
    if recipe.lock_width == 1 or recipe.is_portable or not isinstance(backend, Prober):
        return False
    return not backend.probe(recipe, placement, watch).holds


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


def _judge(claim: Claim, pixels: Pixels, painted: _Painted) -> Verdict:
    comparison = compare_pixels(claim.pixels, pixels)
    word = _word(claim, comparison)
    is_portable = claim.recipe.is_portable
    differences = () if is_portable else passport_differences(claim.passport, painted.passport)
    reasons: list[Reason] = [] if word == "identical" else list(differences)
    if comparison is None:
        reasons.append(reason("size"))
    if claim.is_altered:
        reasons.append(reason("altered"))
        if pixels_sha256(pixels) == claim.pixels_sha256:
            reasons.append(reason("altered_but_reproduces"))
    elif word != "identical" and painted.lock_is_broken:
        reasons.append(reason("lock_broken"))
    elif word == "drifted" and is_portable:
        reasons.append(reason("portable_differs"))
    elif word == "drifted" and not differences:
        reasons.append(reason("same_passport"))
    if word == "close":
        reasons.append(reason("close", limit=CLOSE_MAX_DIFFERENCE, psnr_db=f"{CLOSE_PSNR_DB:g}"))
    if word != "identical" and painted.is_fragile:
        reasons.append(reason("fragile"))
    return Verdict(
        name=claim.name,
        verdict=word,
        max_abs_diff=comparison.max_abs_diff if comparison else None,
        psnr_db=comparison.psnr_db if comparison else None,
        differing_pixels=comparison.differing_pixels if comparison else None,
        reasons=(*reasons, *painted.reasons),
        pixels=pixels,
        passport=painted.passport,
    )


def _word(claim: Claim, comparison: Comparison | None) -> Word:
    if comparison is None or claim.is_altered:
        return "drifted"  # No tolerance excuses an edit.
    if comparison.is_identical:
        return "identical"
    return "close" if comparison.is_close and not claim.recipe.is_portable else "drifted"


def _impossible(name: str, error: SeedGridError) -> Verdict:
    return Verdict(
        name=name, verdict="impossible", reasons=(reason("impossible", error=str(error)),)
    )
