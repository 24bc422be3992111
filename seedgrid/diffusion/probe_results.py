"""Reports of probes: was the lock tested for this model and these settings on this machine?"""

import hashlib
from typing import Annotated, Final

from pydantic import Field

from seedgrid.core.errors import Notice
from seedgrid.core.recipe import Passport, Recipe, Value
from seedgrid.storage.cache import recall, recall_value, recall_values, remember_one

_CACHE: Final = "probes"
_WIDTHS: Final = "widths"
_METHOD: Final = "7"  # Version of the probe: reports of other versions are not used


class Check(Value):
    """The comparison of one part of the pipeline at one width."""

    name: str
    lock_width: int
    holds: bool  # Whether every bit was equal
    differing: int  # How many values differed, of `compared`
    compared: int


class ProbeReport(Value):
    """Whether a leak was found, and up to which width none was."""

    model: str
    weights_sha256: str = ""  # Of the model's files, which may have been replaced since
    dtype: str
    size: str
    scheduler: str
    num_inference_steps: int  # How many were run
    asked_width: int  # The width of the recipe
    tested_width: int  # The greatest up to `asked_width` without a leak; 0 if even 1 leaks
    checks: tuple[Check, ...]
    elapsed_s: Annotated[float, Field(ge=0)]
    tested_at: str  # UTC, ISO 8601
    remembered: bool = False  # It was read from the cache

    @property
    def holds(self) -> bool:
        """Whether no leak was found at the recipe's width."""
        return self.tested_width == self.asked_width


def recall_report(recipe: Recipe, passport: Passport) -> ProbeReport | None:
    """Return the report of an earlier probe of such recipes under this passport, if any."""
    report = recall_value(_CACHE, report_key(recipe, passport), ProbeReport)
    return report and report.model_copy(update={"remembered": True})


def newest_report(weights_sha256: str) -> ProbeReport | None:
    """Return the newest report on a model's batches on this machine, with any placement."""
    reports = (
        report
        for report in recall_values(_CACHE, ProbeReport)
        if report.weights_sha256 == weights_sha256 and report.asked_width > 1
    )
    return max(reports, key=lambda report: report.tested_at, default=None)


def keep_report(recipe: Recipe, passport: Passport, report: ProbeReport) -> None:
    """Keep a report in the cache."""
    remember_one(_CACHE, report_key(recipe, passport), report.model_dump_json())


def lock_notice(recipe: Recipe, passport: Passport) -> Notice | None:
    """Say that pictures like this one were not tested here, or that their lock does not hold."""
    # Enlarged pictures have no neighbours, and portable ones do not depend on them.
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
    """Offer a smaller batch for this model from now on, if a probe found a leak."""
    if not report.holds:
        sha256, dtype = recipe.model.weights_sha256, recipe.dtype
        width = advised_width(sha256, dtype, max(report.tested_width, 1))
        remember_one(_WIDTHS, f"{sha256}|{dtype}", width)


def advised_width(weights_sha256: str, dtype: str, width: int) -> int:
    """Return the width to offer for a model: less than usual if a probe found a leak here."""
    advised = recall(_WIDTHS).get(f"{weights_sha256}|{dtype}")
    return min(width, advised) if isinstance(advised, int) and advised > 0 else width


def report_key(recipe: Recipe, passport: Passport) -> str:
    """Return a probe's cache key: all that changes shapes or code, so no words, seeds or steps."""
    parts = (
        _METHOD,
        recipe.model.weights_sha256,
        recipe.dtype,
        f"{recipe.width}x{recipe.height}",
        recipe.scheduler,
        f"width {recipe.lock_width}",
        recipe.determinism,
        # At 1 and below pipelines leave out the unconditional rows: half the batch.
        "guided" if recipe.guidance_scale > 1 else "",
        "weighed" if recipe.weights else "",
        "from a picture" if recipe.start else "",
        *(lora.weights_sha256 for lora in recipe.loras),
        passport.digest,
    )
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
