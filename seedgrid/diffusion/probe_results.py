"""What a probe found, and the memory of it: was the lock tested for this model and setting, here?

A report is kept in the cache folder under everything that changes the code that runs, or the
shapes that kernels see. Needs no torch; `probe.py` does the work.
"""

import hashlib
from typing import Annotated, Final

from pydantic import Field

from seedgrid.core.errors import Notice
from seedgrid.core.recipe import Passport, Recipe, Value
from seedgrid.storage.cache import recall, recall_value, recall_values, remember_one, remember_value

_CACHE: Final = "probes"
_WIDTHS: Final = "widths"
# Another way of probing must not trust what the one before it found.
_METHOD: Final = "7"


class Check(Value):
    """A part of the pipeline whose own rows were compared beside two kinds of neighbours.

    Attributes:
        name: The part, in words.
        lock_width: The width it was tried at.
        holds: Whether every bit was equal.
        differing: How many values differed, of `compared`.
    """

    name: str
    lock_width: int
    holds: bool
    differing: int
    compared: int


class ProbeReport(Value):
    """Whether a leak was found, and up to which width none was.

    Attributes:
        weights_sha256: Of the model's files; other ones may have its name since.
        num_inference_steps: How many were run.
        asked_width: The width of the recipe.
        tested_width: The greatest width, at most `asked_width`, at which no check found a leak; 0
            when not even a batch of one repeats.
        tested_at: UTC, ISO 8601.
        remembered: It was not measured now, but before under the same passport.
    """

    model: str
    weights_sha256: str = ""
    dtype: str
    size: str
    scheduler: str
    num_inference_steps: int
    asked_width: int
    tested_width: int
    checks: tuple[Check, ...]
    elapsed_s: Annotated[float, Field(ge=0)]
    tested_at: str
    remembered: bool = False

    @property
    def holds(self) -> bool:
        """Whether no leak was found at the width that was asked for."""
        return self.tested_width == self.asked_width


def recall_report(recipe: Recipe, passport: Passport) -> ProbeReport | None:
    """Return what an earlier probe found for recipes like this under this passport, if any did."""
    found = recall_value(_CACHE, report_key(recipe, passport), ProbeReport)
    return found and found.model_copy(update={"remembered": True})


def newest_report(weights_sha256: str) -> ProbeReport | None:
    """Return what the last probe of a model's batches found on this machine, however placed."""
    found = recall_values(_CACHE, ProbeReport)
    own = (each for each in found if each.weights_sha256 == weights_sha256 and each.asked_width > 1)
    return max(own, key=lambda each: each.tested_at, default=None)


def keep_report(recipe: Recipe, passport: Passport, report: ProbeReport) -> None:
    """Remember what a probe found."""
    remember_value(_CACHE, report_key(recipe, passport), report)


def lock_notice(recipe: Recipe, passport: Passport) -> Notice | None:
    """Say that pictures like this one were not tested here, or that their lock does not hold."""
    # The one is made alone, without noise; of the other its batch cannot show: docs/portable.md.
    if recipe.upscaler is not None or recipe.is_portable:
        return None
    report = recall_report(recipe, passport)
    if report is None:
        size, scheduler = f"{recipe.width}x{recipe.height}", recipe.scheduler
        return Notice("lock_untested", width=recipe.lock_width, size=size, scheduler=scheduler)
    if not report.tested_width:
        return Notice("lock_never")
    if not report.holds:
        return Notice("lock_leaks", width=recipe.lock_width, tested=report.tested_width)
    return None


def advise(recipe: Recipe, report: ProbeReport) -> None:
    """Have a smaller batch offered for this model from now on, if its lock does not hold here.

    Args:
        recipe: Of the kind that was probed.
        report: Of a probe that was placed as pictures usually are.
    """
    if report.holds:
        return
    model = f"{recipe.model.weights_sha256}|{recipe.dtype}"
    least = advised_width(recipe.model.weights_sha256, recipe.dtype, max(report.tested_width, 1))
    remember_one(_WIDTHS, model, least)


def advised_width(weights_sha256: str, dtype: str, width: int) -> int:
    """Return the width to offer for a model: the usual one, or less where a probe said no here."""
    found = recall(_WIDTHS).get(f"{weights_sha256}|{dtype}")
    return min(width, found) if isinstance(found, int) and found > 0 else width


def report_key(recipe: Recipe, passport: Passport) -> str:
    """Return under what a probe is remembered: whatever changes shapes or code.

    Words, seeds, steps, strengths, mixes of noise and the scales of LoRAs and guidance do not.
    """
    parts = (
        _METHOD,
        recipe.model.weights_sha256,
        recipe.dtype,
        f"{recipe.width}x{recipe.height}",
        recipe.scheduler,
        f"width {recipe.lock_width}",
        recipe.determinism,
        # At 1 and below pipelines leave out the rows without words: half the batch.
        "guided" if recipe.guidance_scale > 1 else "",
        "weighed" if recipe.weights else "",
        "from a picture" if recipe.start else "",
        *(lora.weights_sha256 for lora in recipe.loras),
        passport.digest,
    )
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
