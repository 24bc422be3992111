"""The verdict on one picture, from its claim and the new pixels.

identical   every pixel is equal, and the file's form and texts are as SeedGrid writes them
close       few pixels differ by rounding, which a named difference of the passports explains
altered     other pixels under the same passport, or a file that contradicts itself
drifted     another size, or other pixels that neither passports nor file explain
impossible  the file could not be read, or the picture could not be painted again
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from seedgrid.core.errors import RunError, SeedGridError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Passport
from seedgrid.diffusion.backend import Outcome
from seedgrid.storage import starts
from seedgrid.verify.claim import Claim
from seedgrid.verify.comparison import (
    Comparison,
    Reason,
    compare_pixels,
    explain,
    figures_of,
    passport_differences,
)

Word = Literal["identical", "close", "altered", "drifted", "impossible"]
WORDS: tuple[Word, ...] = get_args(Word)

_MAX_NAMES = 8  # Of unverified chunks in one reason

Doubt = Literal["", "lock_broken", "not_repeatable"]  # Why other pixels prove nothing here


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict on a claim."""

    name: str
    verdict: Word
    comparison: Comparison | None = None  # None if there is nothing to compare
    reasons: tuple[Reason, ...] = ()  # differences of the passports first
    pixels: Pixels | None = field(default=None, repr=False, compare=False)  # the newly painted ones
    passport: Passport | None = field(default=None, repr=False)  # of the new pixels
    confirms: bool = False  # whether every bit is equal, under the same passport

    @property
    def holds(self) -> bool:
        """Whether the new picture is the claimed one, except for rounding."""
        return self.verdict in {"identical", "close"}

    def as_json(self) -> dict[str, Any]:
        """Return what `seedgrid verify --json` prints."""
        return {
            "path": self.name,
            "verdict": self.verdict,
            **figures_of(self.comparison),
            "reasons": [str(item) for item in self.reasons],
        }


@dataclass(frozen=True, kw_only=True)
class Repaint:
    """A batch that was painted again."""

    pictures: tuple[Outcome, ...]  # one for each claim, or its error
    passport: Passport
    reasons: tuple[Reason, ...]  # settings that were restored from the passport
    is_fragile: bool
    doubt: Doubt = ""
    parents: Mapping[str, Pixels]  # the parents of pictures with a region, by recipe id


def impossible(name: str, error: SeedGridError, claim: Claim | None = None) -> Verdict:
    """Return the verdict `impossible`; `claim` is None if the file could not be read."""
    unverified = _unverified(claim) if claim else ()
    reasons = (Reason("impossible", error=str(error)), *unverified)
    return Verdict(name=name, verdict="impossible", reasons=reasons)


def judge(claim: Claim, pixels: Outcome, painted: Repaint) -> Verdict:
    """Compare new pixels with a claim."""
    if isinstance(pixels, RunError):
        return impossible(claim.name, pixels, claim)
    comparison = None if claim.pixels is None else compare_pixels(claim.pixels, pixels)
    word, reasons = _word_and_reasons(claim, pixels, comparison, painted)
    if word != "identical":
        is_portable = claim.recipe.is_portable  # Then bits do not depend on the passport.
        reasons = (
            *(() if is_portable else passport_differences(claim.passport, painted.passport)),
            *reasons,
            *_box_reason(comparison),
            *([Reason("fragile")] if painted.is_fragile else []),
        )
    return Verdict(
        name=claim.name,
        verdict=word,
        comparison=comparison,
        reasons=(*reasons, *_outside_region(claim, painted), *_unverified(claim), *painted.reasons),
        pixels=pixels,
        passport=painted.passport,
        confirms=word == "identical" and claim.passport.digest == painted.passport.digest,
    )


def _outside_region(claim: Claim, painted: Repaint) -> tuple[Reason, ...]:
    """Say whether pixels outside the region are the parent's; empty without region or parent."""
    recipe, parent = claim.recipe, None
    if recipe.mask and recipe.parent:
        parent = painted.parents.get(recipe.parent.id)
    if parent is None or claim.pixels is None or claim.pixels.shape != parent.shape:
        return ()
    outside = ~starts.inside(recipe.mask, recipe.width, recipe.height)
    total = int(outside.sum())
    differing = int(np.any(claim.pixels != parent, axis=2)[outside].sum())
    if differing:
        return (Reason("region_changed", pixels=differing),)
    return (Reason("region", pixels=total, total=total),)


def _word_and_reasons(
    claim: Claim, pixels: Pixels, comparison: Comparison | None, painted: Repaint
) -> tuple[Word, tuple[Reason, ...]]:
    if comparison is None:
        return "drifted", (Reason("size"),)
    forgery = _forgery(claim, pixels, comparison)
    if forgery:
        return "altered", forgery
    if comparison.is_identical:
        return "identical", ()
    if claim.recipe.is_portable:
        return "altered", (Reason("portable_differs"),)
    if painted.doubt:
        return "drifted", (Reason(painted.doubt),)
    return explain(claim.passport, painted.passport, comparison)


def _forgery(claim: Claim, pixels: Pixels, comparison: Comparison) -> tuple[Reason, ...]:
    """Return the contradictions in the file: changed pixels, another form, changed texts."""
    reasons = []
    if claim.is_altered:
        reasons.append(Reason("digest" if comparison.is_identical else "altered"))
        if pixels_sha256(pixels) == claim.pixels_sha256:
            reasons.append(Reason("altered_but_reproduces"))
    if not claim.has_own_form:
        reasons.append(Reason("form"))
    reasons += [Reason("own_text", key=key) for key in claim.altered_texts]
    return tuple(reasons)


def _unverified(claim: Claim) -> tuple[Reason, ...]:
    """Return what cannot be verified: typed words, an enlarged picture's words, other chunks."""
    recipe, reasons = claim.recipe, []
    if recipe.upscaler is not None:
        reasons.append(Reason("enlarged_unverified"))
    elif recipe.typed_prompt:
        reasons.append(Reason("typed_unverified", typed=recipe.typed_prompt, painted=recipe.prompt))
    if claim.unverified:
        more = len(claim.unverified) - _MAX_NAMES
        names = [*claim.unverified[:_MAX_NAMES], *([f"+{more}"] if more > 0 else [])]
        reasons.append(Reason("others_unverified", names=", ".join(names)))
    return tuple(reasons)


def _box_reason(comparison: Comparison | None) -> Sequence[Reason]:
    if comparison is None or comparison.where is None:
        return ()
    return (Reason("where", pixels=comparison.differing_pixels, **asdict(comparison.where)),)
