"""Writes a script that paints pictures again with diffusers alone, and compares them.

The script calls diffusers as SeedGrid does (batches padded to the lock width, new CPU generators).
Only portable pictures need SeedGrid, so the script proves that SeedGrid adds nothing of its own.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import resources
from pprint import pformat
from typing import Any, Final

import seedgrid
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.picture import Entry
from seedgrid.core.prompts import Pieces, plain_words, read_weights
from seedgrid.core.recipe import Passport, in_batches
from seedgrid.core.text import is_hub_id, is_model_name, is_revision, library_release
from seedgrid.diffusion import process
from seedgrid.diffusion.backend import DEVICE_KINDS, placement_of
from seedgrid.models.families import FAMILIES, family_of
from seedgrid.models.files import QUANTISERS
from seedgrid.models.schedulers import TABLE
from seedgrid.storage import starts

_DATA_MARK: Final = "# <data>\n"
# Portable arithmetic is imported from SeedGrid instead of copied; its versions never change, so any
# later release will do.
_PORTABLE_IMPORT: Final = """\
try:
    from seedgrid.portable import portable
except ImportError:
    sys.exit("These pictures are portable: making them again needs SeedGrid.")
ARITHMETIC["portable-1"] = portable
"""
_NEEDED: Final = "nothing of SeedGrid"
_NEEDED_IF_PORTABLE: Final = "and SeedGrid, for these pictures are portable"
# The oldest supported releases: older ones in a picture's passport are not pinned, since they may
# have known vulnerabilities.
_REQUIRED: Final = {"torch": "2.8", "diffusers": "0.42", "transformers": "5.0"}
_OPTIONAL: Final = {"peft": "0.18", "spandrel": "0.4", "sdnq": "0.2", "gguf": "0.19"}


def script(entries: Sequence[Entry], *, has_starts: bool = True) -> str:
    """Return a program that paints these pictures again with diffusers and compares them.

    Pictures of one model, size and settings share a batch. Starts and masks are in the program if
    `has_starts`, else in the folder `starts` beside it. The program prints `identical` or
    `DIFFERENT` for each picture and exits with 0 if all are identical. A model that is no
    hub id is passed by `--model PATH`, one of several by `--model NAME=PATH`.

    Raise `start_missing`, `export_nothing`, `scheduler_unknown`, or `model_name`.
    """
    if not entries:
        raise InputError("export_nothing", field="picture")
    for recipe in (entry.recipe for entry in entries):
        if not is_model_name(recipe.model.id) or not is_revision(recipe.model.revision):
            raise ModelError("model_name", value=f"{recipe.model.id}@{recipe.model.revision}")
        if recipe.scheduler not in TABLE:
            data = {"value": recipe.scheduler, "choices": ", ".join(TABLE)}
            raise InputError("scheduler_unknown", field="scheduler", **data)
    head, tail = _template("reproduce").split(_DATA_MARK)
    is_portable = any(entry.recipe.is_portable for entry in entries)
    is_steered = any(entry.recipe.parent or entry.recipe.spread for entry in entries)
    head = head.replace("SEEDGRID_VERSION", seedgrid.__version__)
    head = head.replace("NEEDED_OF_SEEDGRID", _NEEDED_IF_PORTABLE if is_portable else _NEEDED)
    sections = {
        "# <arithmetic>\n": _PORTABLE_IMPORT if is_portable else "",
        "# <enlarging>\n": _template("enlarging", any(e.recipe.upscaler for e in entries)),
        "    # <quantised>\n": _template("quantised", any(map(quantiser_of, entries))),
        "# <steering>\n": _template("steering", is_steered),
    }
    for mark, section in sections.items():
        tail = tail.replace(mark, section)
    tables = "".join(f"{name} = {pformat(rows, width=96)}\n" for name, rows in _tables().items())
    batches = pformat([_batch(group) for group in _groups(entries)], width=96, sort_dicts=False)
    files = starts_of(entries) if has_starts else {}
    packed = {sha256: b64encode(data).decode() for sha256, data in files.items()}
    return f"{head}BATCHES = {batches}\nSTARTS = {pformat(packed, width=96)}\n{tables}{tail}"


def _tables() -> dict[str, Any]:
    """Return the program's tables of pipeline properties."""
    families = [family_of(name) for name in FAMILIES]
    patterns = {f.pipeline: f.separate_call_pattern for f in families}
    return {
        "SIZES_WITH_BINS": {f.pipeline: f.binned_sizes for f in families if f.binned_sizes},
        "READ_ALONE": {
            f.pipeline: (f.embeds_names, f.tokens_per_block, f.takes_embeds_list)
            for f in families
            if f.encodes_separately
        },
        "TOLD_APART": {name: each.pattern for name, each in patterns.items() if each},
        "WITHOUT_NEGATIVE": [f.pipeline for f in families if not f.has_negative_prompt],
    }


def _template(name: str, is_needed: bool = True) -> str:
    """Return a template of the program; empty if no picture needs it."""
    path = resources.files("seedgrid.export").joinpath(f"{name}_template.txt")
    return path.read_text(encoding="utf-8") if is_needed else ""


def starts_of(entries: Iterable[Entry]) -> dict[str, bytes]:
    """Return the files of starts and masks of these pictures, by the digests of their pixels."""
    digests = {digest for entry in entries for digest in entry.recipe.kept_pixels}
    return {sha256: starts.read_start(sha256)[0] for sha256 in sorted(digests)}


def requirements(passports: Iterable[Passport], *besides: str) -> str:
    """Return requirements with the newest versions of these passports, or the oldest supported."""
    lines = []
    plain = [passport.model_dump() for passport in passports]
    for name, oldest in (_REQUIRED | {name: _OPTIONAL[name] for name in besides}).items():
        claimed = (library_release(str(passport.get(name, ""))) for passport in plain)
        versions = {text for text in claimed if text and _order(text) >= _order(oldest)}
        pin = f"=={max(sorted(versions), key=_order)}" if versions else f">={oldest}"
        lines.append(f"{name}{pin}")
    return "\n".join(lines) + "\n"


def needs_model_path(entries: Sequence[Entry]) -> bool:
    """Tell whether the script needs `--model`: a model is no hub id."""
    return not all(is_hub_id(entry.recipe.model.id) for entry in entries)


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group entries that may share a batch: with equal settings and passport."""

    def passport_and_negative(entry: Entry) -> tuple[str, bool]:
        # SDXL treats pictures with and without a negative prompt differently.
        return entry.passport.digest, bool(entry.recipe.negative_prompt)

    return in_batches(entries, lambda entry: entry.recipe, passport_and_negative)


def _batch(entries: Sequence[Entry]) -> dict[str, Any]:
    recipe, passport = entries[0].recipe, entries[0].passport
    scheduler = TABLE[recipe.scheduler]
    return {
        "model": recipe.model.id,
        "revision": recipe.model.revision if is_hub_id(recipe.model.id) else None,
        "dtype": recipe.dtype.removeprefix("int8-"),
        "is_int8": recipe.is_int8,
        "quantiser": quantiser_of(entries[0]),
        "arithmetic": recipe.arithmetic,
        "loras": [(lora.weights_sha256, lora.scale) for lora in recipe.loras],
        "start": recipe.start,
        "strength": recipe.strength,
        "upscaler": recipe.upscaler.weights_sha256 if recipe.upscaler else None,
        "lock_width": recipe.lock_width,
        "width": recipe.width,
        "height": recipe.height,
        "num_inference_steps": recipe.num_inference_steps,
        "guidance_scale": recipe.guidance_scale,
        "scheduler": scheduler.scheduler_class,
        "scheduler_changes": dict(scheduler.changes),
        "determinism": recipe.determinism,
        "passport": _script_passport(passport),
        "pictures": [_picture(entry) for entry in entries],
    }


def quantiser_of(entry: Entry) -> str:
    """Return the quantiser of a picture's model; empty if there is none."""
    if entry.recipe.is_int8:
        return "sdnq"
    passport = entry.passport.model_dump()
    return next((name for name in QUANTISERS if name in passport), "")


def _picture(entry: Entry) -> dict[str, Any]:
    recipe = entry.recipe
    as_words = plain_words if recipe.weights else str
    weighed: Callable[[str], Pieces] = read_weights if recipe.weights else lambda _: ()
    return {
        "prompt": as_words(recipe.prompt),
        "negative_prompt": as_words(recipe.negative_prompt),
        "weights": weighed(recipe.prompt),
        "negative_weights": weighed(recipe.negative_prompt),
        "seed": recipe.seed,
        "noise_mix": [(share.seed, share.weight) for share in recipe.noise_mix],
        "pixels_sha256": entry.pixels_sha256,
        "id": entry.id,
        "recipe_id": recipe.id,
        "parent": _batch([replace(entry, recipe=recipe.parent)]) if recipe.parent else None,
        "held_steps": recipe.held_steps,
        "mask": recipe.mask,
        "feather": recipe.feather,
        "spread": recipe.spread,
        "steps": recipe.num_inference_steps,
    }


def _script_passport(passport: Passport) -> dict[str, Any]:
    """Return the passport's values that the script restores or compares, or defaults."""
    placement = placement_of(passport)
    return {
        "versions": {name: library_release(getattr(passport, name)) or "" for name in _REQUIRED},
        "device": placement.device if placement.device in DEVICE_KINDS else "cpu",
        "instruction_limits": process.accepted_limits(passport.instruction_limits),
        "threads": placement.threads,
        "attention": placement.attention,
        "memory_format": "channels_last" if placement.channels_last else "contiguous",
        "vae_slicing": placement.vae_slicing,
        "vae_tiling": placement.vae_tiling,
    }


def _order(release: str) -> tuple[int, ...]:
    """Return the sort key of a release."""
    return tuple(int(part) for part in release.split(".") if part.isdecimal())
