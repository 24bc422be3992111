"""The verdict on one picture, from what it claims and what came out now. Knows no backend.

identical   every bit, and the file shows it as it is
close       a named difference of the passport rounds otherwise, and no more than it was seen to
altered     the same passport and other pixels, or a file that does not fit itself
drifted     something else came out, and nobody can be blamed
impossible  it could not be run
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from seedgrid.core.errors import RunError, SeedGridError
from seedgrid.core.picture import Pixels, pixels_sha256
from seedgrid.core.recipe import Passport
from seedgrid.diffusion.backend import Outcome
from seedgrid.storage import regions
from seedgrid.verify.claim import Claim
from seedgrid.verify.comparison import Comparison, compare_pixels, figures_of
from seedgrid.verify.reasons import Reason, explain, passport_differences

Word = Literal["identical", "close", "altered", "drifted", "impossible"]
WORDS: tuple[Word, ...] = get_args(Word)

_MAX_NAMES = 8

Doubt = Literal["", "lock_broken", "not_repeatable"]
"""Why another picture here says nothing: neighbours reach it, or it never repeats."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a claim.

    Attributes:
        name: Of the claim.
        verdict: See the module.
        comparison: None when there is nothing to compare.
        reasons: Differences of the passports first.
        pixels: What came out now.
        passport: Under which it came out.
        confirms: Every bit came out again under the very passport that the picture names.
    """

    name: str
    verdict: Word
    comparison: Comparison | None = None
    reasons: tuple[Reason, ...] = ()
    pixels: Pixels | None = field(default=None, repr=False, compare=False)
    passport: Passport | None = field(default=None, repr=False)
    confirms: bool = False

    @property
    def holds(self) -> bool:
        """Whether it is the picture that was claimed, but for rounding at the most."""
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
class Painted:
    """What came out of one batch.

    Attributes:
        pictures: One a claim; where the model gave none, why.
        reasons: What was restored for it, and what could not be.
        doubt: See `Doubt`.
        parents: What pictures of a region follow, by the ids of the recipes.
    """

    pictures: tuple[Outcome, ...]
    passport: Passport
    reasons: tuple[Reason, ...]
    is_fragile: bool
    doubt: Doubt = ""
    parents: Mapping[str, Pixels] = field(default_factory=dict)


def impossible(name: str, error: SeedGridError, claim: Claim | None = None) -> Verdict:
    """Say that a claim could not be run, and why; None where the file could not be read."""
    unverified = _unverified(claim) if claim else ()
    reasons = (Reason("impossible", error=str(error)), *unverified)
    return Verdict(name=name, verdict="impossible", reasons=reasons)


def judge(claim: Claim, pixels: Outcome, painted: Painted) -> Verdict:
    """Compare what came out with what is claimed."""
    if isinstance(pixels, RunError):
        return impossible(claim.name, pixels, claim)
    comparison = None if claim.pixels is None else compare_pixels(claim.pixels, pixels)
    word, reasons = _word(claim, pixels, comparison, painted)
    if word != "identical":
        is_portable = claim.recipe.is_portable  # Then no passport matters.
        reasons = (
            *(() if is_portable else passport_differences(claim.passport, painted.passport)),
            *reasons,
            *_where(comparison),
            *([Reason("fragile")] if painted.is_fragile else []),
        )
    return Verdict(
        name=claim.name,
        verdict=word,
        comparison=comparison,
        reasons=(*reasons, *_around(claim, painted), *_unverified(claim), *painted.reasons),
        pixels=pixels,
        passport=painted.passport,
        confirms=word == "identical" and claim.passport.digest == painted.passport.digest,
    )


def _around(claim: Claim, painted: Painted) -> tuple[Reason, ...]:
    """Count the pixels outside the region that are the parent's."""
    recipe, parent = claim.recipe, None
    if recipe.mask and recipe.parent:
        parent = painted.parents.get(recipe.parent.id)
    if parent is None or claim.pixels is None or claim.pixels.shape != parent.shape:
        return ()
    outside = ~regions.inside(recipe.mask, recipe.width, recipe.height)
    total = int(outside.sum())
    differing = int(np.any(claim.pixels != parent, axis=2)[outside].sum())
    if differing:
        return (Reason("region_changed", pixels=differing),)
    return (Reason("region", pixels=total, total=total),)


def _word(
    claim: Claim, pixels: Pixels, comparison: Comparison | None, painted: Painted
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
    """Say what in the file does not fit itself; no tolerance excuses that."""
    found = []
    if claim.is_altered:
        found.append(Reason("digest" if comparison.is_identical else "altered"))
        if pixels_sha256(pixels) == claim.pixels_sha256:
            found.append(Reason("altered_but_reproduces"))
    if not claim.has_own_form:
        found.append(Reason("form"))
    found += [Reason("own_text", key=key) for key in claim.altered_texts]
    return tuple(found)


def _unverified(claim: Claim) -> tuple[Reason, ...]:
    """Say what no picture can prove: words that were typed, those of an enlarged one, others'."""
    recipe, found = claim.recipe, []
    if recipe.upscaler is not None:
        found.append(Reason("enlarged_unverified"))
    elif recipe.typed_prompt:
        found.append(Reason("typed_unverified", typed=recipe.typed_prompt, painted=recipe.prompt))
    if claim.unverified:
        more = len(claim.unverified) - _MAX_NAMES
        names = [*claim.unverified[:_MAX_NAMES], *([f"+{more}"] if more > 0 else [])]
        found.append(Reason("others_unverified", names=", ".join(names)))
    return tuple(found)


def _where(comparison: Comparison | None) -> Sequence[Reason]:
    if comparison is None or comparison.where is None:
        return ()
    where = asdict(comparison.where)
    return (Reason("where", pixels=comparison.differing_pixels, **where),)
