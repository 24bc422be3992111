"""What SeedGrid writes into a picture for other programs, and a work's recipes as JSON.

`parameters` is understood by AUTOMATIC1111-style readers. The mark of generated pictures is XMP
with IPTC's digital source type, without user text. If `SEEDGRID_C2PA` names a certificate,
c2pa-python (optional) signs the finished file, asking no time stamp server. A work's recipes are in
`recipes.json` of a bundle and, under `WORK_KEY`, in a sheet.

Source: https://cv.iptc.org/newscodes/digitalsourcetype/; XMP specification, part 3, 1.1.5 (PNG);
https://spec.c2pa.org, https://github.com/contentauth/c2pa-python
"""

import io
import json
import os
import re
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Final

from PIL import Image
from pydantic import Field, TypeAdapter, ValidationError

from seedgrid import __version__
from seedgrid.core.errors import LibraryError, PictureError
from seedgrid.core.picture import Entry, Lineage
from seedgrid.core.prompts import write_tags
from seedgrid.core.recipe import Digest, Recipe, Value, first_reason
from seedgrid.core.text import json_text

PARAMETERS_KEY: Final = "parameters"
MARK_KEY: Final = "XML:com.adobe.xmp"
WORK_KEY: Final = "seedgrid-work"
SIGNING_VARIABLE: Final = "SEEDGRID_C2PA"

_SOURCE_TYPES: Final = "http://cv.iptc.org/newscodes/digitalsourcetype/"
_MARK: Final = (
    '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>'
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">'
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
    '<rdf:Description rdf:about=""'
    ' xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"'
    ' Iptc4xmpExt:DigitalSourceType="{kind}"/>'
    '</rdf:RDF></x:xmpmeta><?xpacket end="r"?>'
)

_VERSION: Final = re.compile(r", Version: SeedGrid [\w.+-]{1,40}\Z")
_PEM_PART: Final = re.compile(r"-----BEGIN ([A-Z ]+)-----[A-Za-z0-9+/=\s]+-----END \1-----")
_SIGNING_SETTINGS: Final = {"builder": {"thumbnail": {"enabled": False}}}


class WorkPicture(Value):
    """A picture of a work, without pixels."""

    recipe_id: str  # The id of `recipe`, for other programs
    recipe: Recipe
    lineage: Lineage
    passport: Digest
    pixels_sha256: Digest


_WORK: Final = TypeAdapter(Annotated[list[WorkPicture], Field(min_length=1, max_length=1000)])


def parameters_text(recipe: Recipe) -> str:
    """Return the recipe in the format of AUTOMATIC1111.

    Source: https://github.com/AUTOMATIC1111/stable-diffusion-webui, modules/infotext_utils.py
    """
    settings: dict[str, object] = {
        "Steps": recipe.num_inference_steps,
        "Sampler": recipe.scheduler,
        "CFG scale": f"{recipe.guidance_scale:g}",
        "Seed": recipe.seed,
        "Size": f"{recipe.width}x{recipe.height}",
        "Model hash": recipe.model.weights_sha256[:10],
        "Model": recipe.model.id,
        **_noise_settings(recipe),
    }
    if recipe.start and not recipe.upscaler:
        settings["Denoising strength"] = f"{recipe.strength:g}"
    settings |= {"RNG": "CPU", "Version": f"SeedGrid {__version__}"}
    lines = [write_tags(_edited_prompt(recipe), recipe.loras)]
    if recipe.negative_prompt:
        lines.append(f"Negative prompt: {recipe.negative_prompt}")
    lines.append(", ".join(f"{name}: {_quoted(value)}" for name, value in settings.items()))
    return "\n".join(lines)


def mark_text(*, has_start: bool) -> str:
    """Return the XMP packet that marks a picture as generated; with a start, as a composite."""
    return _MARK.format(kind=source_type(has_start=has_start))


def source_type(*, has_start: bool) -> str:
    """Return the address of IPTC's digital source type of a picture, as in `mark_text`."""
    made_of = "compositeWithTrainedAlgorithmicMedia" if has_start else "trainedAlgorithmicMedia"
    return f"{_SOURCE_TYPES}{made_of}"


def without_version(text: str) -> str:
    """Return a `parameters` text without SeedGrid's release."""
    return _VERSION.sub("", text)


def signed(png: bytes, *, has_start: bool) -> bytes:
    """Return a PNG file, signed if `SEEDGRID_C2PA` is set; raise `c2pa_missing`, `c2pa_refused`."""
    named = os.environ.get(SIGNING_VARIABLE)
    if not named:
        return png
    try:
        import c2pa
    except ImportError as error:
        raise LibraryError("c2pa_missing", value=SIGNING_VARIABLE) from error
    try:
        chain, key = _read_certificate(Path(named))
        context = c2pa.Context.from_dict(_SIGNING_SETTINGS)
        signer = c2pa.Signer.from_info(c2pa.C2paSignerInfo(b"es256", chain, key, None))
        target = io.BytesIO()
        with signer, c2pa.Builder(_manifest(has_start=has_start), context) as builder:
            builder.sign(signer, "image/png", io.BytesIO(png), target)
    except (OSError, ValueError, c2pa.C2paError) as error:
        reason = str(error).split("\n")[0][:200]
        raise LibraryError("c2pa_refused", value=named, reason=reason) from error
    return target.getvalue()


def check_signing() -> None:
    """Check that pictures can be signed, if `SEEDGRID_C2PA` is set; raises as `signed` does."""
    pixel = io.BytesIO()
    Image.new("RGB", (1, 1)).save(pixel, "PNG")
    signed(pixel.getvalue(), has_start=False)


def work_picture(entry: Entry) -> dict[str, Any]:
    """Return the JSON data of a `WorkPicture`, as `recipes.json` holds it."""
    return {
        "recipe_id": entry.recipe.id,
        "recipe": entry.recipe.model_dump(mode="json"),
        "lineage": entry.lineage.model_dump(mode="json"),
        "passport": entry.passport.digest,
        "pixels_sha256": entry.pixels_sha256,
    }


def write_work(entries: Iterable[Entry]) -> str:
    """Return the recipes of a work's pictures as JSON, which `read_work` reads."""
    return json_text([work_picture(entry) for entry in entries])


def read_work(text: str) -> tuple[WorkPicture, ...]:
    """Read one work's pictures, sorted by time, round, cell; else raise `picture_record`."""
    try:
        pictures = _WORK.validate_json(text)
    except ValidationError as error:
        raise PictureError("picture_record", reason=first_reason(error, whole="work")) from error
    if len({each.lineage.picture_id for each in pictures}) < len(pictures):
        raise PictureError("picture_record", reason="it holds a picture twice")
    if len({each.lineage.work_id for each in pictures}) > 1:
        raise PictureError("picture_record", reason="its pictures are of several works")
    order = attrgetter("lineage.created_at", "lineage.round_id", "lineage.cell")
    return tuple(sorted(pictures, key=order))


def _noise_settings(recipe: Recipe) -> dict[str, object]:
    """Return the noise mix: one share under AUTOMATIC1111's keys, several under SeedGrid's."""
    shares = recipe.noise_mix
    if len(shares) == 1:
        return {"Variation seed": shares[0].seed, "Variation seed strength": shares[0].weight}
    mix = ", ".join(f"{share.seed}: {share.weight!r}" for share in shares)
    return {"Noise mix": mix} if mix else {}


def _edited_prompt(recipe: Recipe) -> str:
    """Return the prompt; with held steps as `[parent's prompt:prompt:steps]`."""
    # https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features#prompt-editing
    # Prompts with brackets or colons, and regions, cannot be written so.
    parent, own = recipe.parent, recipe.prompt
    if parent is None or recipe.mask or parent.prompt == own:
        return own
    if set("[]():|\\") & set(parent.prompt + own):
        return own
    return f"[{parent.prompt}:{own}:{recipe.held_steps}]"


def _quoted(value: object) -> str:
    """Quote what would break the list of settings, as AUTOMATIC1111 does."""
    text = str(value)
    needs_quotes = any(character in text for character in ',:\n"')
    return json.dumps(text, ensure_ascii=False) if needs_quotes else text


def _read_certificate(path: Path) -> tuple[bytes, bytes]:
    """Return the certificate chain and the private key of a PEM file."""
    parts = [(part[1], part[0].encode()) for part in _PEM_PART.finditer(path.read_text("ascii"))]
    certificates = [text for kind, text in parts if kind == "CERTIFICATE"]
    keys = [text for kind, text in parts if kind == "PRIVATE KEY"]
    if not certificates or len(keys) != 1:
        raise ValueError("it holds no certificate, or not one PRIVATE KEY (PKCS #8)")
    return b"\n".join(certificates) + b"\n", keys[0] + b"\n"


def _manifest(*, has_start: bool) -> dict[str, Any]:
    action = {"action": "c2pa.created", "digitalSourceType": source_type(has_start=has_start)}
    return {
        "claim_generator_info": [{"name": "SeedGrid", "version": __version__}],
        "assertions": [{"label": "c2pa.actions", "data": {"actions": [action]}}],
    }
