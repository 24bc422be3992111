"""What goes out: a script that needs only diffusers, and a bundle of pictures with all they need.

The script makes the plain diffusers calls that SeedGrid makes: the same padding to the lock's
width, fresh CPU generators, the same scheduler and switches. It imports nothing of SeedGrid, so it
is also the proof that SeedGrid adds nothing of its own to a picture.

    Path("reproduce.py").write_text(script(entries))
    write_bundle(entries, Path("art.zip"))
"""

from __future__ import annotations

import shutil
import zipfile
from base64 import b64encode
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from pprint import pformat
from typing import Any, Final

import seedgrid
from seedgrid.core import names
from seedgrid.core.entry import Entry
from seedgrid.core.errors import InputError, LibraryError, ModelError
from seedgrid.core.plain import json_text
from seedgrid.core.recipe import Passport
from seedgrid.core.weights import Pieces, plain_words, read_weights
from seedgrid.diffusion import instruction_limits
from seedgrid.diffusion.backend import DEVICE_KINDS
from seedgrid.diffusion.placement import placement_of
from seedgrid.models import registry
from seedgrid.models.loras import recorded_lora
from seedgrid.models.schedulers import TABLE
from seedgrid.storage import starts
from seedgrid.storage.files import open_atomically

_TEMPLATE: Final = "reproduce_template.txt"
_DATA_MARK: Final = "# <data>\n"
_ARITHMETIC_MARK: Final = "# <arithmetic>\n"
# A portable picture's arithmetic is SeedGrid's own. A copy of it in every script would be a second
# definition; its versions never change, so any later SeedGrid will do.
_PORTABLE_IMPORT: Final = """\
try:
    from seedgrid.diffusion.portable import portable
except ImportError:
    sys.exit("These pictures are portable: making them again needs SeedGrid.")
ARITHMETIC["portable-1"] = portable
"""
_NEEDED: Final = "nothing of SeedGrid"
_NEEDED_IF_PORTABLE: Final = "and SeedGrid, for these pictures are portable"
# With the oldest releases that SeedGrid computes with: a picture that claims an older one was not
# made by it, and old ones have known holes.
_REQUIRED: Final = {"torch": "2.8", "diffusers": "0.42", "transformers": "4.51"}
# A fixed date makes equal bundles equal files.
_DATE: Final = (2026, 1, 1, 0, 0, 0)

_README: Final = """\
{count} pictures made with SeedGrid {version}.

pictures/         the pictures, each with its recipe inside
loras/            the LoRAs, if there are any
starts/           what pictures were begun from, if any were
recipes.json      the recipe, the lineage and the digest of the pixels of each
passports.json    where they were computed
reproduce.py      makes them again with plain diffusers and compares bit for bit
requirements.txt  the versions that made them

    python -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python reproduce.py{arguments}

{model}"""


def script(entries: Sequence[Entry], *, has_starts: bool = True) -> str:
    """Write a program that makes these pictures again with diffusers and compares them.

    Args:
        entries: At least one; those of one model, size and settings share a batch.
        has_starts: Whether the program holds what pictures were begun from; it looks for them in
            the folder `starts` beside it otherwise.

    Returns:
        Python source. It prints `identical` or `DIFFERENT` for each picture and ends with 0 when
        all are identical. A model that is no hub id is given by `--model PATH`.

    Raises:
        PictureError: `start_missing`.
        InputError: `export_nothing`, `scheduler_unknown`, or `model_name` when what
            a stranger's picture calls its model is no name.
    """
    if not entries:
        raise InputError("export_nothing", field="picture")
    for entry in entries:
        _check(entry)
    template = resources.files("seedgrid.export").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    head, tail = template.split(_DATA_MARK)
    is_portable = any(entry.recipe.is_portable for entry in entries)
    head = head.replace("SEEDGRID_VERSION", seedgrid.__version__)
    head = head.replace("NEEDED_OF_SEEDGRID", _NEEDED_IF_PORTABLE if is_portable else _NEEDED)
    tail = tail.replace(_ARITHMETIC_MARK, _PORTABLE_IMPORT if is_portable else "")
    batches = pformat([_batch(group) for group in _groups(entries)], width=96, sort_dicts=False)
    files = _starts(entries) if has_starts else {}
    packed = {sha256: b64encode(data).decode() for sha256, data in files.items()}
    return f"{head}BATCHES = {batches}\nSTARTS = {pformat(packed, width=96)}\n{tail}"


def _starts(entries: Iterable[Entry]) -> dict[str, bytes]:
    """Return the files of what these pictures were begun from, by the digests of their pixels."""
    wanted = {entry.recipe.start for entry in entries if entry.recipe.start}
    return {sha256: starts.file_bytes(sha256) for sha256 in sorted(wanted)}


def requirements(passports: Iterable[Passport]) -> str:
    """Pin the libraries that computed under these passports; the newest where they differ.

    What is no release, or one that is too old, is not pinned: then the oldest that will do is said.
    """
    lines = []
    found = tuple(passports)
    for name, oldest in _REQUIRED.items():
        claimed = (names.release(getattr(passport, name)) for passport in found)
        versions = {text for text in claimed if text and _order(text) >= _order(oldest)}
        pin = f"=={max(sorted(versions), key=_order)}" if versions else f">={oldest}"
        lines.append(f"{name}{pin}")
    return "\n".join(lines) + "\n"


def write_bundle(entries: Sequence[Entry], path: Path, *, model: Path | None = None) -> None:
    """Write a ZIP file with the pictures and everything that makes them again.

    Args:
        entries: At least one, whose files are there.
        path: Replaced if it exists.
        model: A model's folder to put in as well. Our own, which nobody can fetch by its name, is
            put in anyway; any other must be had without it.

    Raises:
        InputError: As `script`.
        LibraryError: A picture's file is missing, or the bundle cannot be written.
    """
    program = script(entries, has_starts=False)
    model = model or _own_model(entries)
    members = [f"pictures/{picture_name(entry, number)}" for number, entry in enumerate(entries, 1)]
    with open_atomically(path) as file, zipfile.ZipFile(file, "w") as bundle:
        for name, entry in zip(members, entries, strict=True):
            _write(bundle, name, _picture_bytes(entry), packed=False)
        for sha256, data in _starts(entries).items():
            _write(bundle, f"starts/{sha256}.png", data, packed=False)
        for lora in dict.fromkeys(lora for entry in entries for lora in entry.recipe.loras):
            _copy(bundle, f"loras/{lora.weights_sha256}.safetensors", recorded_lora(lora))
        recipes = [_described(entry, name) for entry, name in zip(entries, members, strict=True)]
        passports = {entry.passport.digest: entry.passport for entry in entries}
        plain = {key: passport.model_dump(mode="json") for key, passport in passports.items()}
        _write(bundle, "recipes.json", _json(recipes))
        _write(bundle, "passports.json", _json(plain))
        _write(bundle, "reproduce.py", program.encode())
        has_loras = any(entry.recipe.loras for entry in entries)
        pins = requirements(passports.values()) + ("peft\n" if has_loras else "")
        _write(bundle, "requirements.txt", pins.encode())
        _write(bundle, "README.txt", _readme(entries, has_model=model is not None).encode())
        for source in sorted(model.rglob("*")) if model else ():
            if source.is_file() and model:
                _copy(bundle, f"model/{source.relative_to(model).as_posix()}", source)


def picture_name(entry: Entry, number: int) -> str:
    """Name a picture's file by place, seed and id; words never become a file's name."""
    return f"{number:03}-seed{entry.recipe.seed}-{entry.id[:8]}.png"


def needs_model_path(entries: Sequence[Entry]) -> bool:
    """Tell whether the script must be told where the model is: it is no hub id."""
    return not all(names.is_hub_id(entry.recipe.model.id) for entry in entries)


def _check(entry: Entry) -> None:
    recipe = entry.recipe
    if recipe.compiled:
        raise ModelError("compiled_unsupported")
    model = recipe.model
    if not names.is_model_name(model.id) or not names.is_revision(model.revision):
        raise ModelError("model_name", value=f"{model.id}@{model.revision}")
    if recipe.scheduler not in TABLE:
        choices = ", ".join(TABLE)
        raise InputError(
            "scheduler_unknown", field="scheduler", value=recipe.scheduler, choices=choices
        )


def _groups(entries: Sequence[Entry]) -> list[list[Entry]]:
    """Group entries that may share a batch, at most W of them: settings and passport are equal.

    A negative prompt and none may not share one: SDXL means two things by them.
    """
    groups: dict[tuple[str, str, bool], list[list[Entry]]] = {}
    for entry in entries:
        recipe = entry.recipe
        key = (recipe.batch_key, entry.passport.digest, bool(recipe.negative_prompt))
        parts = groups.setdefault(key, [[]])
        if len(parts[-1]) == recipe.lock_width:
            parts.append([])
        parts[-1].append(entry)
    return [part for parts in groups.values() for part in parts]


def _batch(entries: Sequence[Entry]) -> dict[str, Any]:
    recipe, passport = entries[0].recipe, entries[0].passport
    scheduler = TABLE[recipe.scheduler]
    return {
        "model": recipe.model.id,
        "revision": recipe.model.revision if names.is_hub_id(recipe.model.id) else None,
        "dtype": recipe.dtype,
        "arithmetic": recipe.arithmetic,
        "loras": [(lora.weights_sha256, lora.scale) for lora in recipe.loras],
        "start": recipe.start,
        "strength": recipe.strength,
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


def _nothing(_: str) -> Pieces:
    return ()


def _picture(entry: Entry) -> dict[str, Any]:
    recipe = entry.recipe
    said = plain_words if recipe.weights else str
    weighed = read_weights if recipe.weights else _nothing
    return {
        "prompt": said(recipe.prompt),
        "negative_prompt": said(recipe.negative_prompt),
        "weights": weighed(recipe.prompt),
        "negative_weights": weighed(recipe.negative_prompt),
        "seed": recipe.seed,
        "noise_mix": [(share.seed, share.weight) for share in recipe.noise_mix],
        "pixels_sha256": entry.pixels_sha256,
        "id": entry.id,
    }


def _script_passport(passport: Passport) -> dict[str, Any]:
    """Return what the script restores or compares: nothing but known names and values."""
    placement = placement_of(passport)
    return {
        "versions": {name: names.release(getattr(passport, name)) or "" for name in _REQUIRED},
        "device": placement.device if placement.device in DEVICE_KINDS else "cpu",
        "instruction_limits": instruction_limits.accepted(passport.instruction_limits),
        "threads": placement.threads,
        "attention": placement.attention,
        "memory_format": "channels_last" if placement.channels_last else "contiguous",
        "vae_slicing": placement.vae_slicing,
        "vae_tiling": placement.vae_tiling,
    }


def _own_model(entries: Sequence[Entry]) -> Path | None:
    """Return the folder of the model in the box, if it is what painted and is still the same."""
    first, *others = {entry.recipe.model for entry in entries}
    if others or first.id != registry.BUNDLED:
        return None
    try:
        return registry.find_recorded(first).files.folder
    except ModelError:
        return None  # A later release has another one: reproduce.py asks for the folder.


def _described(entry: Entry, name: str) -> dict[str, Any]:
    return {
        "picture": name,
        "recipe_id": entry.recipe.id,
        "recipe": entry.recipe.model_dump(mode="json"),
        "lineage": entry.lineage.model_dump(mode="json"),
        "passport": entry.passport.digest,
        "pixels_sha256": entry.pixels_sha256,
    }


def _picture_bytes(entry: Entry) -> bytes:
    try:
        return entry.path.read_bytes()
    except OSError as error:
        raise LibraryError("picture_lost", value=entry.id) from error


def _readme(entries: Sequence[Entry], *, has_model: bool) -> str:
    models = sorted({entry.recipe.model.id for entry in entries})  # Names, as `_check` made sure.
    arguments, model = "", f"Model: {', '.join(models)}, fetched by its name.\n"
    if has_model:
        model = "The model is in the folder model/, where reproduce.py looks for it.\n"
    elif needs_model_path(entries):
        arguments = " --model FOLDER"
        model = f"FOLDER is where the model “{', '.join(models)}” lies on your machine.\n"
        if "bundled" in models:
            model += "SeedGrid's own model, “bundled”, is assets/model in its repository.\n"
    return _README.format(
        count=len(entries), version=seedgrid.__version__, arguments=arguments, model=model
    )


def _write(bundle: zipfile.ZipFile, name: str, data: bytes, *, packed: bool = True) -> None:
    member = zipfile.ZipInfo(name, _DATE)
    member.external_attr = 0o644 << 16
    method = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    bundle.writestr(member, data, compress_type=method)


def _copy(bundle: zipfile.ZipFile, name: str, source: Path) -> None:
    member = zipfile.ZipInfo(name, _DATE)
    member.external_attr = 0o644 << 16
    with source.open("rb") as file, bundle.open(member, "w", force_zip64=True) as target:
        shutil.copyfileobj(file, target)


def _json(value: object) -> bytes:
    return json_text(value, indent=2).encode()


def _order(release: str) -> tuple[int, ...]:
    """Return what sorts releases; those of one number keep the order of their texts."""
    return tuple(int(part) for part in release.split(".") if part.isdecimal())
