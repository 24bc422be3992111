"""ZIP files: pictures alone, streamed, or a bundle with all that is needed to paint them again."""

import io
import shutil
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import seedgrid
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.picture import Entry
from seedgrid.core.text import is_hub_id, json_text, picture_filename, unique_names
from seedgrid.export.script import needs_model_path, quantiser_of, requirements, script, starts_of
from seedgrid.formats.own_texts import work_picture
from seedgrid.models import registry
from seedgrid.models.loras import LORAS
from seedgrid.models.shelf import BUNDLED, UPSCALERS, needs_spandrel
from seedgrid.storage.files import open_atomically

_DATE: Final = (2026, 1, 1, 0, 0, 0)  # Of all members, so that equal archives are equal files
_PIECE_BYTES: Final = 1024**2
_README: Final = """\
{count} pictures made with SeedGrid {version}.

pictures/         the pictures, each with its recipe inside
loras/            the LoRAs, if there are any
upscalers/        the networks that enlarged pictures, if any did
starts/           what pictures were begun from, and masks of regions, if they were packed
recipes.json      the recipe, the lineage and the digest of the pixels of each
passports.json    where they were computed
reproduce.py      makes them again with plain diffusers and compares bit for bit
requirements.txt  the versions that made them

    python -m venv venv && venv/bin/pip install -r requirements.txt
    venv/bin/python reproduce.py{arguments}

On Windows it is venv\\Scripts in place of venv/bin.

{model}"""


def write_bundle(
    entries: Sequence[Entry], path: Path, *, model: Path | None = None, has_starts: bool = True
) -> None:
    """Write a ZIP file with the pictures and all that paints them again; `model` adds the model.

    `path` is replaced if it exists. `model` is the folder of a model to include, by default that of
    the bundled model, if it made all pictures and is unchanged: it cannot be downloaded.
    `has_starts` includes start pictures and masks, which an import stores.
    """
    program = script(entries, has_starts=False)
    model, files = model or _bundled_model(entries), weight_files(entries)
    members = [  # names with number, seed and id, without words of the prompt
        f"pictures/{number:03}-seed{entry.recipe.seed}-{entry.id[:8]}.png"
        for number, entry in enumerate(entries, 1)
    ]
    with open_atomically(path) as file, zipfile.ZipFile(file, "w") as bundle:
        for name, entry in zip(members, entries, strict=True):
            bundle.writestr(_member(name), entry.read_file())
        for sha256, data in (starts_of(entries) if has_starts else {}).items():
            bundle.writestr(_member(f"starts/{sha256}.png"), data)
        for name, weights in files.items():
            _copy(bundle, name, weights)
        recipes = [
            {"picture": name} | work_picture(entry)
            for entry, name in zip(entries, members, strict=True)
        ]
        passports = {entry.passport.digest: entry.passport for entry in entries}
        plain = {key: passport.model_dump(mode="json") for key, passport in passports.items()}
        texts = {
            "recipes.json": json_text(recipes, indent=2),
            "passports.json": json_text(plain, indent=2),
            "reproduce.py": program,
            "requirements.txt": _pins(entries),
            "README.txt": _readme(entries, has_model=model is not None),
        }
        for name, text in texts.items():
            bundle.writestr(_member(name), text, compress_type=zipfile.ZIP_DEFLATED)
        if model:
            for source in filter(Path.is_file, sorted(model.rglob("*"))):
                _copy(bundle, f"model/{source.relative_to(model).as_posix()}", source)


def weight_files(entries: Iterable[Entry]) -> dict[str, Path]:
    """Return the files of the pictures' LoRAs and upscalers, by their names in a bundle.

    Raise if a file is missing, and `lora_not_offered` or `upscaler_not_offered` for a name that a
    public page does not offer, whatever the digest.
    """
    files = {}
    for recipe in (each for entry in entries for each in entry.recipe.line):
        for lora in recipe.loras:
            LORAS.check_offered(lora.id)
            files[f"loras/{lora.weights_sha256}.safetensors"] = LORAS.recorded(lora)
        if network := recipe.upscaler:
            UPSCALERS.check_offered(network.id)
            name = f"upscalers/{network.weights_sha256}.safetensors"
            files[name] = UPSCALERS.recorded(network)
    return files


def _pins(entries: Sequence[Entry]) -> str:
    """Return the lines of requirements.txt."""
    networks = [entry.recipe.upscaler for entry in entries if entry.recipe.upscaler]
    has_networks = any(map(needs_spandrel, networks))
    needed = ["peft"] if any(entry.recipe.loras for entry in entries) else []
    needed += ["spandrel"] if has_networks else []
    needed += sorted({quantiser_of(entry) for entry in entries} - {""})
    passports = {entry.passport.digest: entry.passport for entry in entries}
    return requirements(passports.values(), *needed) + ("einops\n" if has_networks else "")


def _bundled_model(entries: Sequence[Entry]) -> Path | None:
    """Return the bundled model's folder, if all pictures were made with the model in it."""
    first, *others = {entry.recipe.model for entry in entries}
    if others or first.id != BUNDLED:
        return None
    try:
        return registry.find_recorded(first).files.folder
    except ModelError:
        return None  # This release has another version: reproduce.py needs `--model`.


def _readme(entries: Sequence[Entry], *, has_model: bool) -> str:
    models = sorted({entry.recipe.model.id for entry in entries})
    arguments, model = "", f"Model: {', '.join(models)}, fetched by its name.\n"
    if has_model:
        model = "The model is in the folder model/, where reproduce.py looks for it.\n"
    elif needs_model_path(entries):
        local = ", ".join(name for name in models if not is_hub_id(name))
        arguments = " --model FOLDER"
        model = f"FOLDER is where the model “{local}” lies on your machine.\n"
        if len(models) > 1:
            arguments = " --model NAME=FOLDER"
            model = f"Say so of each NAME of “{local}”: FOLDER is where it lies on your machine.\n"
        if "bundled" in models:
            model += "SeedGrid's own model, “bundled”, is assets/model in its repository.\n"
    return _README.format(
        count=len(entries), version=seedgrid.__version__, arguments=arguments, model=model
    )


def _member(name: str) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _DATE)
    member.external_attr = 0o644 << 16
    return member


def _copy(bundle: zipfile.ZipFile, name: str, source: Path) -> None:
    with source.open("rb") as file, bundle.open(_member(name), "w", force_zip64=True) as target:
        shutil.copyfileobj(file, target)


def packed_pictures(entries: Sequence[Entry]) -> Iterator[bytes]:
    """Yield a ZIP archive in pieces: the pictures whose files exist, named by their prompts."""
    present = [entry for entry in entries if entry.path.is_file()]
    if not present:
        raise InputError("export_nothing", field="picture")
    names = unique_names(
        picture_filename(e.recipe.prompt, e.recipe.seed, e.lineage.change) for e in present
    )
    pieces = _Pieces()
    # PNGs are compressed already. Some readers cannot read a stored member whose length is unknown
    # in advance, but all read deflate at level 0.
    with zipfile.ZipFile(pieces, "w", zipfile.ZIP_DEFLATED, compresslevel=0) as archive:
        for name, entry in zip(names, present, strict=True):
            member = zipfile.ZipInfo(name, _DATE)
            member.compress_type = zipfile.ZIP_DEFLATED
            with (
                suppress(FileNotFoundError),  # The file was deleted meanwhile.
                entry.path.open("rb") as file,
                archive.open(member, "w") as target,
            ):
                while piece := file.read(_PIECE_BYTES):
                    target.write(piece)
                    yield pieces.drain()
    yield pieces.drain()


class _Pieces(io.RawIOBase):
    """A file object that keeps what was written since the last `drain`."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(memoryview(data))  # type: ignore[arg-type] # what has a buffer
        self._pieces.append(piece)
        return len(piece)

    def drain(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)
