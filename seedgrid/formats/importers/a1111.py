"""Settings as AUTOMATIC1111, Forge and SD.Next write them: the text `parameters`.

    a red fox
    Negative prompt: blurry
    Steps: 20, Sampler: Euler a, CFG scale: 7, Seed: 42, Size: 512x512, Model: …, Version: …

Source: https://github.com/AUTOMATIC1111/stable-diffusion-webui, modules/infotext_utils.py
"""

import json
import re
from collections.abc import Mapping
from typing import Final

from seedgrid.core.errors import Notice, PictureError
from seedgrid.core.variations import MAX_HOLD, MIN_STEPS
from seedgrid.formats.importers.foreign import ForeignSettings

# Repetitions have a limit or end at the first character that they exclude: time is linear.
_SETTING: Final = re.compile(r'(\w[\w \-/.]{0,80}):[ \t]{0,4}("(?:\\.|[^\\"])*"|[^,]*)(?:,|$)')
_NEGATIVE: Final = "Negative prompt:"
_NETWORK: Final = re.compile(r"<(?:lora|lyco|hypernet):([^:>]{1,200})(?::[^>]{0,200})?>", re.I)
_LORA: Final = re.compile(r"<lora:([^:>]{1,200}+)(?::([^:>]{1,20}+))?+[^>]{0,200}+>", re.I)
_WEIGHT: Final = re.compile(r"(?<!\\)[(\[][^()\[\]]+(?<!\\)[)\]]")
_PROMPT_EDITING: Final = re.compile(r"\bBREAK\b|\bAND\b|\[[^()\[\]:|]{0,200}+[:|]")
"""Syntax that is no weight: BREAK, AND, and words that change between steps."""
_CHANGING: Final = re.compile(r"\[([^\[\]:|]{1,5000}):([^\[\]:|]{1,5000}):(\d{0,3}\.?\d{1,6})\]")
"""A whole prompt that changes into another one after some steps."""
_MIN_SETTINGS: Final = 3
_MAX_LINE: Final = 100_000
_MAX_TEXT: Final = 256 * 1024
_SECOND_PASS: Final = ("Hires", "Second pass")
_EXTRAS: Final = (
    *("Clip skip", "ENSD", "VAE", "Refiner", "Prompt2", "Token merging ratio", "Tiling"),
    *("Face restoration", "Style Selector Style", "TI hashes", "Hypernet", "NGMS"),
    *("Seed resize from", "RP Active", "FreeU", "ADM Guidance", "Eta", "ADetailer model"),
    *("Sharpness", "Dynamic thresholding enabled"),
)
_AUTOMATIC_SCHEDULES: Final = {
    "dpm++ 2m": "Karras",
    "dpm++ sde": "Karras",
    "dpm++ 2m sde": "Exponential",
    "dpm++ 2m sde heun": "Exponential",
    "dpm++ 2s a": "Karras",
    "dpm++ 3m sde": "Exponential",
    "dpm2": "Karras",
    "dpm2 a": "Karras",
}
"""The schedules that "Automatic" means in AUTOMATIC1111 1.9 and newer.

Source: https://github.com/AUTOMATIC1111/stable-diffusion-webui, modules/sd_samplers_kdiffusion.py
"""


def read(texts: Mapping[str, str]) -> ForeignSettings | None:
    """Read the settings, None if not of this format; raise `picture_text` above 256 KB."""
    text = texts.get("parameters", "")
    if len(text) > _MAX_TEXT:
        raise PictureError("picture_text", value="parameters")
    lines = text.strip().split("\n")
    last = _settings_line(lines)
    if last is None:
        return None
    settings = _settings(lines[last])
    prompt, negative = _prompts(lines[:last])
    tags = tuple((tag[1], tag[2] or "1") for tag in _LORA.finditer(prompt))
    loras = tuple(match[1] for match in _NETWORK.finditer(prompt))
    prompt = _NETWORK.sub("", prompt).strip() if loras else prompt
    prompt, hold_notice = _before_change(prompt, settings.get("Steps", ""))
    # Before version 1, `Size` was that of the second pass.
    size = settings.get("First pass size", "0x0")
    size = settings.get("Size", "") if size == "0x0" else size
    width, _, height = size.partition("x")
    tool = _tool(settings)
    is_named = any(name.startswith(_SECOND_PASS) for name in settings)
    has_second_pass = is_named or settings.get("Size", "") != size
    words = () if tool == "SeedGrid" else (prompt, negative)  # Its recipe is read instead.
    has_editing = any(map(_PROMPT_EDITING.search, words))
    return ForeignSettings(
        tool=tool,
        prompt=prompt,
        negative_prompt=negative,
        seed=settings.get("Seed"),
        width=width,
        height=height,
        steps=settings.get("Steps"),
        # Flux uses distilled guidance, which Forge writes under this name.
        guidance=_first(settings, "Distilled CFG Scale", "CFG scale", "CFG Scale"),
        sampler=settings.get("Sampler", ""),
        schedule=_schedule(settings),
        model=settings.get("Model", settings.get("Model hash", "")),
        mix=_mix(settings),
        is_cpu_noise=settings.get("RNG") == "CPU" or tool == "ComfyUI",
        extras=_extras(settings),
        lora_tags=tags,
        loras=(*loras, *_lora_names(settings)),
        weights=tool != "ComfyUI" and not has_editing and any(map(_WEIGHT.search, words)),
        has_other_weights=has_editing,
        has_second_pass=has_second_pass,
        begins_from_picture=not has_second_pass and _is_img2img(settings),
        reasons=hold_notice,
    )


def _settings_line(lines: list[str]) -> int | None:
    """Find the last line with settings; extensions may add lines after it."""
    for number in reversed(range(len(lines))):
        settings = _settings(lines[number])
        min_settings = 2 if lines[number].lstrip().startswith("Steps:") else _MIN_SETTINGS
        if len(settings) >= min_settings and ("Steps" in settings or "Seed" in settings):
            return number
    return None


def _settings(line: str) -> dict[str, str]:
    return {name: _unquoted(value) for name, value in _SETTING.findall(line[:_MAX_LINE])}


def _unquoted(value: str) -> str:
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        try:
            return str(json.loads(value))
        except ValueError:
            return value
    return value.strip()


def _prompts(lines: list[str]) -> tuple[str, str]:
    """Split prompt and negative prompt, which begins with "Negative prompt:"."""
    for number, line in enumerate(lines):
        if line.strip().startswith(_NEGATIVE):
            first = line.strip().removeprefix(_NEGATIVE).strip()
            return "\n".join(lines[:number]).strip(), "\n".join([first, *lines[number + 1 :]])
    return "\n".join(lines).strip(), ""


def _before_change(prompt: str, steps: str) -> tuple[str, tuple[Notice, ...]]:
    """Return the prompt of the first steps, and a notice that suggests `hold` for the other one."""
    changing = _CHANGING.fullmatch(prompt)
    num_steps = int(steps) if re.fullmatch(r"\d{1,4}", steps, re.ASCII) else 0
    if changing is None or num_steps < MIN_STEPS:
        return prompt, ()
    before, after, when = changing[1].strip(), changing[2].strip(), float(changing[3])
    # A share of the steps is rounded down (modules/prompt_parser.py of AUTOMATIC1111).
    is_share = "." in changing[3] or when < 1
    hold = int(when * num_steps if is_share else when) / num_steps
    if not 0 < hold <= MAX_HOLD or not before:
        return prompt, ()
    return before, (Notice("import_hold", words=after, hold=f"{hold:.3g}"),)


def _lora_names(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Read names from `name: hash, name: hash`, and from SD.Next's `LoRA networks`."""
    hashes = settings.get("Lora hashes", "").split(",")
    names = [part.partition(":")[0].strip() for part in hashes if ":" in part]
    return (*names, *filter(None, re.split(r"[;\s]+", settings.get("LoRA networks", "").strip())))


def _first(settings: Mapping[str, str], *names: str) -> str | None:
    return next((settings[name] for name in names if name in settings), None)


def _schedule(settings: Mapping[str, str]) -> str:
    schedule = _first(settings, "Schedule type", "Scheduler", "Sampler sigma") or ""
    if schedule.casefold() == "automatic":
        return _AUTOMATIC_SCHEDULES.get(settings.get("Sampler", "").casefold(), "")
    return schedule


def _mix(settings: Mapping[str, str]) -> tuple[tuple[object, object], ...]:
    """Read the noise mix: one seed in most tools, any number in SeedGrid."""
    if "Variation seed" in settings:
        strength = _first(settings, "Variation seed strength", "Variation strength")
        return ((settings["Variation seed"], strength),)
    shares = [share.partition(":") for share in settings.get("Noise mix", "").split(",")]
    return tuple((seed, weight) for seed, _, weight in shares if weight)


def _extras(settings: Mapping[str, str]) -> tuple[str, ...]:
    controls = [name for name in settings if name.startswith("ControlNet")]
    if "Distilled CFG Scale" in settings and settings.get("CFG scale", "1") not in ("1", "1.0"):
        controls.append("CFG scale beside the distilled one")
    return (*(name for name in _EXTRAS if name in settings), *controls)


def _is_img2img(settings: Mapping[str, str]) -> bool:
    operations = settings.get("Operations", "")
    named = any(name in settings for name in ("Denoising strength", "Mask blur", "Init image hash"))
    return named or "img2img" in operations or "inpaint" in operations


def _tool(settings: Mapping[str, str]) -> str:
    version, app = settings.get("Version", ""), settings.get("App", "")
    for name in ("SeedGrid", "Fooocus", "ComfyUI", "SD.Next"):
        if name.casefold() in f"{version} {app}".casefold():
            return name
    if re.match(r"f\d|neo|forge|classic", version, re.I) or "forge" in app.casefold():
        return "Forge"
    return "AUTOMATIC1111"
