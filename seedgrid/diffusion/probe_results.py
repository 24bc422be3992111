"""Reports of probes (tests of the lock, see probe.py), stored in the cache folder."""

import hashlib
from typing import Annotated, Final

from pydantic import Field

from seedgrid.core.errors import Notice
from seedgrid.core.recipe import Passport, Recipe, Value
from seedgrid.storage.cache import recall, recall_value, recall_values, remember_one

# Files of the cache folder: the reports, and the batch widths to offer for models that leak
_REPORTS: Final = "probes"
_WIDTHS: Final = "widths"
_PROBE_VERSION: Final = "7"  # Reports of other versions are not used


class Check(Value):
    """The comparison of one part of the pipeline at one batch width."""

    name: str
    lock_width: int
    holds: bool  # Whether every bit was equal
    differing: int  # How many values differed, of `compared`
    compared: int


class ProbeReport(Value):
    """At which batch widths a probe found a leak: a picture that its neighbours changed."""

    model: str
    weights_sha256: str = ""  # Of the model's files when they were tested
    dtype: str
    size: str
    scheduler: str
    num_inference_steps: int  # How many the probe ran
    asked_width: int  # The recipe's `lock_width`
    tested_width: int  # The greatest of the tested widths without a leak; 0 if there is none
    checks: tuple[Check, ...]
    elapsed_s: Annotated[float, Field(ge=0)]
    tested_at: str  # UTC, ISO 8601
    remembered: bool = False  # Whether the report was read from the cache

    @property
    def holds(self) -> bool:
        """Whether no leak was found at the recipe's width."""
        return self.tested_width == self.asked_width


def recall_report(recipe: Recipe, passport: Passport) -> ProbeReport | None:
    """Return the report of an earlier probe with the same `report_key`, if any."""
    report = recall_value(_REPORTS, report_key(recipe, passport), ProbeReport)
    return report and report.model_copy(update={"remembered": True})


def newest_report(weights_sha256: str) -> ProbeReport | None:
    """Return the newest report on these weights, by any placement, at a width above 1."""
    reports = (
        report
        for report in recall_values(_REPORTS, ProbeReport)
        if report.weights_sha256 == weights_sha256 and report.asked_width > 1
    )
    return max(reports, key=lambda report: report.tested_at, default=None)


def keep_report(recipe: Recipe, passport: Passport, report: ProbeReport) -> None:
    """Store a report in the cache folder."""
    remember_one(_REPORTS, report_key(recipe, passport), report.model_dump_json())


def lock_notice(recipe: Recipe, passport: Passport) -> Notice | None:
    """Return a notice if no report shows that the lock holds for such recipes and passport."""
    # Enlarged pictures are computed alone, and portable ones do not depend on their neighbours.
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


def record_width(recipe: Recipe, report: ProbeReport) -> None:
    """If a probe found a leak, store a smaller batch width for `advised_width` to return."""
    if not report.holds:
        sha256, dtype = recipe.model.weights_sha256, recipe.dtype
        width = advised_width(sha256, dtype, max(report.tested_width, 1))
        remember_one(_WIDTHS, f"{sha256}|{dtype}", width)


def advised_width(weights_sha256: str, dtype: str, width: int) -> int:
    """Return the batch width to offer for a model: `width`, or less if a probe found a leak."""
    advised = recall(_WIDTHS).get(f"{weights_sha256}|{dtype}")
    return min(width, advised) if isinstance(advised, int) and advised > 0 else width


def report_key(recipe: Recipe, passport: Passport) -> str:
    """Return a report's key: all that changes kernels or shapes, so no prompts, seeds or steps."""
    parts = (
        _PROBE_VERSION,
        recipe.model.weights_sha256,
        recipe.dtype,
        f"{recipe.width}x{recipe.height}",
        recipe.scheduler,
        f"width {recipe.lock_width}",
        recipe.determinism,
        # At a scale of 1 or less, pipelines compute no unconditional rows: half as many rows.
        "guided" if recipe.guidance_scale > 1 else "",
        "weighed" if recipe.weights else "",
        "from a picture" if recipe.start else "",
        *(lora.weights_sha256 for lora in recipe.loras),
        passport.digest,
    )
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
