"""Turns another tool's picture into a request, and names what cannot be imported.

`to_imported` checks every value of a reader's `ForeignSettings` and turns each one that does not
fit into a notice. `fit` does the same for one model.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from seedgrid.core.card import ModelCard, rounded_side
from seedgrid.core.checks import check_prompt
from seedgrid.core.errors import Notice, PictureError
from seedgrid.core.field import Field
from seedgrid.core.fields import FIELDS, field
from seedgrid.core.prompts import MAX_LORAS
from seedgrid.core.recipe import MAX_PROMPT_CHARACTERS, MAX_SEED, MAX_SHARES, NoiseShare
from seedgrid.core.request import Request
from seedgrid.formats import exif, png
from seedgrid.formats.importers import a1111, comfyui, json_tools
from seedgrid.formats.importers.foreign import ForeignSettings
from seedgrid.storage.unpacking import is_photo

_READERS: Final[tuple[Callable[[Mapping[str, str]], ForeignSettings | None], ...]] = (
    json_tools.read_invokeai,
    json_tools.read_swarmui,
    json_tools.read_fooocus,
    a1111.read,
    json_tools.read_novelai,
    comfyui.read,
)
_SETTINGS: Final = ("parameters", "prompt", "Comment", "invokeai_metadata")
"""The keys of texts with these tools' settings."""

# SeedGrid's samplers, with other tools' names for each; a sampler that is not here gets a notice.
_ALIKE: Final[dict[str, tuple[str, ...]]] = {
    "DDIM": ("ddim", "ddim_v3", "k_ddim", "ddim trailing"),
    "DDPM": ("ddpm",),
    "PNDM": ("pndm", "plms", "k_plms"),
    "Euler": ("euler", "k_euler", "sample_euler"),
    "Euler a": ("euler a", "euler_a", "euler_ancestral", "k_euler_ancestral", "k_euler_a"),
    "Heun": ("heun", "k_heun"),
    "DPM2": ("dpm2", "dpm_2", "k_dpm_2", "kdpm_2"),
    "DPM2 a": ("dpm2 a", "dpm_2_ancestral", "k_dpm_2_ancestral", "kdpm_2_a", "k_dpm_2_a"),
    "DPM++ 2M": ("dpm++ 2m", "dpmpp_2m", "k_dpmpp_2m", "k_dpmpp_2"),
    "DPM++ 2M Karras": ("dpm++ 2m karras", "dpmpp_2m karras", "dpmpp_2m_k", "k_dpmpp_2m karras"),
    "DPM++ 2M SDE": ("dpm++ 2m sde", "dpmpp_2m_sde", "dpmpp_2m_sde_gpu", "k_dpmpp_2m_sde"),
    "DPM++ 2M SDE Karras": (
        "dpm++ 2m sde karras",
        "dpmpp_2m_sde karras",
        "dpmpp_2m_sde_gpu karras",
        "dpmpp_2m_sde_k",
        "k_dpmpp_2m_sde karras",
    ),
    "DPM++ SDE": ("dpm++ sde", "dpmpp_sde", "dpmpp_sde_gpu", "k_dpmpp_sde"),
    "DPM++ SDE Karras": (
        "dpm++ sde karras",
        "dpmpp_sde karras",
        "dpmpp_sde_gpu karras",
        "dpmpp_sde_k",
        "k_dpmpp_sde karras",
    ),
    "DEIS": ("deis",),
    "UniPC": ("unipc", "uni_pc", "uni_pc_bh2", "unipc trailing"),
    "LCM": ("lcm",),
    "Flow Euler": ("flow euler", "euler flowmatch", "flowmatch euler"),
}

_PLAIN_SCHEDULES: Final = ("", "normal", "uniform", "native", "default")

OUR_NAMES: Final[dict[str, str]] = {
    f"{name} {schedule}".strip(): ours
    for ours, names in _ALIKE.items()
    for name in names
    for schedule in _PLAIN_SCHEDULES
}  # SeedGrid's names, by another tool's name of sampler and noise schedule in lower case

_NO_TEXT: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]")
_NO_NAME: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_MAX_NUMBER: Final = 10**30
_MAX_NAME: Final = 60


@dataclass(frozen=True, kw_only=True)
class Imported:
    """A request from another tool's picture."""

    tool: str
    request: Request  # settings that the file lacks are None
    reasons: tuple[Notice, ...] = ()  # what cannot be imported, one notice each
    loras: tuple[str, ...] = ()
    lora_tags: tuple[tuple[str, str], ...] = ()  # names and scales in the prompt

    @property
    def notice(self) -> Notice:
        """All reasons in one English sentence."""
        sentences = [str(reason) for reason in self.reasons]
        clauses = [each[0].lower() + each[1:].rstrip(".") for each in sentences]
        return Notice("imported", tool=self.tool, reasons="; ".join(clauses))


def read_foreign(source: png.Source) -> Imported:
    """Turn another tool's picture into a request, and name what cannot be imported.

    Raise PictureError: the file is missing or damaged; `picture_without_recipe`: without settings;
    `picture_foreign`: they cannot be read; `picture_text`: they are above 256 KB.
    """
    data = png.read_bytes(source)
    read_texts: Callable[[bytes], Mapping[str, str | None]]
    read_texts = exif.read_texts if is_photo(data) else png.read_texts
    texts = read_texts(data)
    for key in _SETTINGS:
        if key in texts and texts[key] is None:
            raise PictureError("picture_text", value=key)
    plain = {key: text or "" for key, text in texts.items()}
    for read in _READERS:
        parsed = read(plain)
        if parsed is not None:
            return to_imported(parsed)
    raise PictureError("picture_without_recipe")


def to_imported(parsed: ForeignSettings) -> Imported:
    """Check a reader's result and turn it into a request."""
    checker = _Checker(parsed)
    request = Request(
        **checker.seeds(),
        prompt=checker.text(parsed.prompt),
        negative_prompt=checker.text(parsed.negative_prompt),
        width=checker.whole(field("size"), parsed.width),
        height=checker.whole(field("size"), parsed.height),
        **checker.numbers(),
        scheduler=checker.scheduler(),
        noise_mix=checker.noise_mix(),
        weights=parsed.weights,
    )
    checker.add_other_notices()
    return Imported(
        tool=parsed.tool,
        request=request,
        reasons=tuple(checker.reasons),
        loras=parsed.loras,
        lora_tags=parsed.lora_tags[:MAX_LORAS],
    )


def fit(imported: Imported, card: ModelCard) -> Imported:
    """Fit the request to a model, and name what had to change."""
    request, reasons = imported.request, list(imported.reasons)
    names = {name.casefold() for name in card.schedulers}
    if request.scheduler and request.scheduler.casefold() not in names:
        reasons.append(Notice("import_sampler", value=request.scheduler))
        request = replace(request, scheduler=None)
    if request.weights and not card.has_weights:
        reasons.append(Notice("import_weights", tool=imported.tool))
        request = replace(request, weights=False)
    width, height = request.width or card.width, request.height or card.height
    fitting = (rounded_side(width, card.size_multiple), rounded_side(height, card.size_multiple))
    if card.fixed_size:
        fitting = (card.width, card.height)
    if fitting != (width, height):
        shown = f"{fitting[0]}x{fitting[1]}"
        reasons.append(Notice("import_size", value=f"{width}x{height}", instead=shown))
        request = replace(request, width=fitting[0], height=fitting[1])
    steps = request.num_inference_steps
    if steps is not None and steps > card.max_steps:
        reasons.append(Notice("import_number", name="steps", value=steps, instead=card.max_steps))
        request = replace(request, num_inference_steps=card.max_steps)
    return replace(imported, request=request, reasons=tuple(reasons))


class _Checker:
    """Checks values one by one; each method adds a notice to `reasons` for what is not imported."""

    def __init__(self, parsed: ForeignSettings) -> None:
        self._settings = parsed
        self.reasons: list[Notice] = []

    def seeds(self) -> dict[str, Any]:
        seed = _whole(self._settings.seed)
        if seed is None or seed < 0:
            self.reasons.append(Notice("import_seed_missing"))
            return {}
        return {"seeds": (self._our_seed(seed),)}

    def noise_mix(self) -> tuple[NoiseShare, ...]:
        shares = []
        for mixed_seed, mixed_weight in self._settings.mix[:MAX_SHARES]:
            seed, weight = _whole(mixed_seed), _decimal(mixed_weight)
            if seed is not None and seed >= 0 and weight is not None and 0 < weight <= 1:
                shares.append(NoiseShare(seed=self._our_seed(seed), weight=weight))
        return tuple(shares)

    def _our_seed(self, seed: int) -> int:
        ours = seed % (MAX_SEED + 1)  # torch's CPU generator uses the low 32 bits and no more.
        if ours != seed:
            self.reasons.append(Notice("import_seed", value=seed, instead=ours))
        return ours

    def text(self, value: object) -> str:
        text = value if isinstance(value, str) else ""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        kept = _NO_TEXT.sub("", text)[:MAX_PROMPT_CHARACTERS]
        if kept != text:
            self.reasons.append(Notice("import_text", value=len(text) - len(kept)))
        return check_prompt(kept, field="prompt")

    def numbers(self) -> dict[str, Any]:
        """Return the settings that are numbers, brought into their range."""
        settings: dict[str, Any] = {}
        for setting in FIELDS:
            if setting.imported:
                raw = getattr(self._settings, setting.name)
                is_whole = setting.value_type is int
                number = self.whole(setting, raw) if is_whole else self._fit(setting, _decimal(raw))
                settings |= setting.as_attributes(number)
        return settings

    def whole(self, setting: Field, value: object) -> int | None:
        number = self._fit(setting, _whole(value))
        return None if number is None else int(number)

    def _fit(self, setting: Field, number: float | None) -> float | None:
        if number is None:
            return None
        low = type(number)(setting.low)  # An int stays an int.
        ours = min(max(number, low), setting.high)
        if ours != number:
            notice = Notice("import_number", name=setting.name, value=number, instead=ours)
            self.reasons.append(notice)
        return ours

    def scheduler(self) -> str | None:
        sampler, schedule = _name(self._settings.sampler), _name(self._settings.schedule)
        if sampler.casefold() in ("", "default", "none"):
            return None
        ours = OUR_NAMES.get(" ".join((sampler, schedule)).strip().casefold())
        if ours is not None:
            return ours
        ours = OUR_NAMES.get(sampler.casefold())
        if ours is None:
            self.reasons.append(Notice("import_sampler", value=f"{sampler} {schedule}".strip()))
        else:
            self.reasons.append(Notice("import_schedule", value=schedule, sampler=ours))
        return ours

    def add_other_notices(self) -> None:
        parsed = self._settings
        notices = (
            (parsed.begins_from_picture, Notice("import_first_picture")),
            (parsed.has_second_pass, Notice("import_second_pass")),
            (parsed.has_other_weights, Notice("import_weights", tool=parsed.tool)),
            (parsed.loras, Notice("import_loras", value=_listed(parsed.loras))),
            (parsed.extras, Notice("import_extras", value=_listed(parsed.extras))),
            (parsed.model, Notice("import_model", value=_name(parsed.model))),
            (not parsed.is_cpu_noise, Notice("import_noise", tool=parsed.tool)),
            (True, Notice("import_arithmetic")),
        )
        self.reasons += [*parsed.reasons, *(notice for holds, notice in notices if holds)]


def _name(text: str) -> str:
    """Return a name for a sentence: short, on one line, without control characters."""
    return " ".join(_NO_NAME.sub(" ", text[:1000]).split())[:_MAX_NAME]


def _whole(value: object) -> int | None:
    """Read a whole number from JSON or text, `20.0` too; None for everything else."""
    if isinstance(value, str):
        text = value.strip()
        digits = text.removeprefix("-")
        is_whole = digits.isascii() and digits.isdigit() and len(digits) <= 30
        value = int(text) if is_whole else _decimal(text)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if abs(value) < _MAX_NUMBER else None


def _decimal(value: object) -> float | None:
    """Read a finite number from JSON or text; None for everything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _listed(names: tuple[str, ...]) -> str:
    shown = list(dict.fromkeys(_name(name) for name in names[:1000]))
    return ", ".join(shown[:8]) + (" …" if len(shown) > 8 else "")
