"""Makes a ModelCard from a model's checked files, with the number format for this machine.

A `seedgrid.json` in the model's folder may hold default steps, guidance, scheduler, size and number
format (`"defaults"`), an upscaler (`"upscaler"`), suggested words (`"hints"`), all words that the
model knows (`"words"`), their translations (`"names": {"zh": {"cat": ["猫"]}}`), default variations
(`"suffixes"`), and whether image-to-image improves its enlarged pictures (`"enlarges"`).
"""

import contextlib
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Final

import psutil
from pydantic import BaseModel, ConfigDict, ValidationError

from seedgrid.core.card import ModelCard, Vocabulary
from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import MAX_STEPS, MIN_SIZE_PX, DType, ModelRef
from seedgrid.models import schedulers
from seedgrid.models.families import Family
from seedgrid.models.files import ModelFiles

_SMALL_MODEL_PARAMETERS: Final = 200_000_000
_MEMORY_SHARE: Final = 0.9  # The share of the memory that a model may take
_SMALLER_FORMATS: Final[dict[str, DType]] = {"bfloat16": "bfloat16", "int8": "int8-bfloat16"}
"""Formats smaller than float32, the most exact first: the value of `--dtype`, and the recipe's."""
_SIDE_FILE: Final = "seedgrid.json"
# Default steps and guidance, by words that a model's name contains; the first match counts
_FEW_STEPS: Final[dict[tuple[str, ...], tuple[int, float] | None]] = {
    ("z-image-turbo",): (9, 0.0),
    ("flux", "2-klein", "base"): None,
    ("flux", "2-klein"): (4, 1.0),
    ("krea", "2", "turbo"): (8, 0.0),
    ("flux", "1-schnell"): (4, 0.0),
    ("sdxl-turbo",): (4, 0.0),
    ("sd-turbo",): (4, 0.0),
    ("stable-diffusion-3.5-large-turbo",): (4, 0.0),
    ("hidream-i1-dev",): (28, 0.0),
    ("hidream-i1-fast",): (16, 0.0),
    ("hunyuanimage", "distilled"): (8, 3.25),
    ("qwen-image", "lightning"): (8, 1.0),
    ("lightning",): (4, 0.0),
}  # Only the models' cards on the hub state these values; None means the family's defaults
# The same by pipeline class, for models whose `model_index.json` says that they are distilled
_DISTILLED: Final = {"Flux2KleinPipeline": (4, 1.0), "Krea2Pipeline": (8, 0.0)}


class _Defaults(BaseModel):
    """A publisher's default settings; None leaves the default that `make_card` chooses."""

    model_config = ConfigDict(strict=True)

    width: int | None = None
    height: int | None = None
    num_inference_steps: int | None = None
    guidance_scale: float | None = None
    scheduler: str | None = None
    dtype: DType | None = None


class _SideFile(BaseModel):
    """The `seedgrid.json` beside a model."""

    defaults: _Defaults = _Defaults()
    enlarges: bool = True
    upscaler: str = ""
    hints: dict[str, tuple[str, ...]] = {}
    words: tuple[str, ...] = ()
    names: dict[str, dict[str, tuple[str, ...]]] = {}
    suffixes: tuple[str, ...] = ()

    @property
    def vocabulary(self) -> Vocabulary | None:
        """The declared vocabulary, if any; names in ASCII are only shown, never translated back."""
        if not self.words:
            return None
        rows = [(own, names) for each in self.names.values() for own, names in each.items()]
        return Vocabulary(
            known=frozenset(word.casefold() for word in self.words),
            names={name: own for own, names in rows for name in names if not name.isascii()},
            shown={
                language: {own: names[0] for own, names in each.items() if own and names}
                for language, each in self.names.items()
            },
        )


def make_card(ref: ModelRef, files: ModelFiles) -> ModelCard:
    """Return a model's card; raise `model_damaged` for a bad configuration or `seedgrid.json`."""
    family, configs = files.family, files.configs
    side = _read_side_file(ref, files.folder)
    steps, guidance = _default_steps_and_guidance(ref.id, files)
    scheduler_config = configs.get("scheduler", {})
    names = _fitting_schedulers(family, scheduler_config)
    scheduler = side.defaults.scheduler or schedulers.own_name(family, scheduler_config)
    if side.defaults.scheduler and scheduler not in names:
        raise ModelError("model_damaged", value=ref.id, file=_SIDE_FILE)
    fewest = {name: schedulers.min_steps(name, scheduler_config, family) for name in names}
    try:
        width, height = family.size(configs)
        size_multiple = family.size_multiple(configs)
        latent = family.latent(configs)
    except (KeyError, TypeError) as error:
        config = f"{family.denoiser}/config.json"
        raise ModelError("model_damaged", value=ref.id, file=config) from error
    if family.has_prompt:  # Both sides are rounded up to the multiple.
        width = -(-max(width, MIN_SIZE_PX) // size_multiple) * size_multiple
        height = -(-max(height, MIN_SIZE_PX) // size_multiple) * size_multiple
    card = ModelCard(
        ref=ref,
        family=family.pipeline,
        has_prompt=family.has_prompt,
        has_negative_prompt=family.has_negative_prompt,
        width=width,
        height=height,
        size_multiple=size_multiple,
        fixed_size=family.fixed_size or not family.has_prompt,
        latent=latent,
        num_inference_steps=steps,
        max_steps=_max_steps(family.sampling, scheduler_config),
        guidance_scale=guidance,
        scheduler=scheduler,
        schedulers=(scheduler, *(name for name in names if name != scheduler)),
        fewest_steps={name: least for name, least in fewest.items() if least > 1},
        dtype=choose_dtype(likely_device_type(), files.num_parameters),
        decoding_bytes=family.decoding_bytes(configs),
        has_start=bool(family.image_to_image),
        strength_shortens=family.strength_shortens,
        has_weights=family.has_weights,
        fragile=family.fragile,
        lock_width=family.lock_width,
        hints=side.hints,
        vocabulary=side.vocabulary,
        suffixes=side.suffixes,
        enlarges=side.enlarges,
        upscaler=side.upscaler,
    )
    return replace(card, **side.defaults.model_dump(exclude_none=True))


def _read_side_file(ref: ModelRef, folder: Path) -> _SideFile:
    path = folder / _SIDE_FILE
    try:
        return _SideFile.model_validate_json(path.read_bytes()) if path.is_file() else _SideFile()
    except ValidationError as error:
        raise ModelError("model_damaged", value=ref.id, file=_SIDE_FILE) from error


def _default_steps_and_guidance(model: str, files: ModelFiles) -> tuple[int, float]:
    family = files.family
    if files.is_distilled and family.pipeline in _DISTILLED:
        return _DISTILLED[family.pipeline]
    name = model.lower()
    matches = (found for words, found in _FEW_STEPS.items() if all(each in name for each in words))
    return next(matches, None) or (family.num_inference_steps, family.guidance_scale)


def _fitting_schedulers(family: Family, config: dict[str, Any]) -> tuple[str, ...]:
    names = schedulers.names_for(family.sampling)
    if family.needs_own_scheduler:
        return tuple(name for name in names if name == schedulers.own_name(family, config))
    # With a fixed shift, `use_flow_sigmas` schedulers refuse the `mu` that the pipeline passes.
    if not family.passes_mu or config.get("use_dynamic_shifting"):
        return names
    return tuple(n for n in names if "use_flow_sigmas" not in schedulers.TABLE[n].changes)


def _max_steps(sampling: str, config: dict[str, Any]) -> int:
    # The number of training timesteps less one; for LCM the length of its shorter schedule.
    if sampling == "consistency":
        return min(MAX_STEPS, int(config.get("original_inference_steps", 50)))
    return min(MAX_STEPS, int(config.get("num_train_timesteps", 1000)) - 1)


def first_fitting(needs: Mapping[str, int]) -> str | None:
    """Return the first number format whose bytes fit this machine's memory; None if none does."""
    most = _MEMORY_SHARE * memory_bytes()
    return next((name for name, num_bytes in needs.items() if num_bytes <= most), None)


def check_room(model: str, needs: Callable[[DType], int], dtype: DType) -> None:
    """Raise `model_memory` for too large weights, `model_memory_format` if another format fits."""
    num_bytes = needs(dtype)
    available = int(psutil.virtual_memory().total + psutil.swap_memory().total)
    if num_bytes > available:
        sizes = {"wanted": f"{num_bytes / 1e9:.1f}", "own": f"{available / 1e9:.1f}"}
        for name, smaller in _SMALLER_FORMATS.items():
            if needs(smaller) <= available:
                raise ModelError("model_memory_format", value=model, **sizes, format=name)
        raise ModelError("model_memory", value=model, **sizes)


@cache
def memory_bytes() -> int:
    """Return the bytes of memory for models: the largest NVIDIA GPU's, else the main memory."""
    if tool := shutil.which("nvidia-smi"):
        query = [tool, "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            answer = subprocess.run(query, capture_output=True, text=True, timeout=5, check=True)  # noqa: S603 (the system's own tool)
            if sizes := [int(line) for line in answer.stdout.split() if line.isdigit()]:
                return max(sizes) * 1024 * 1024
    return int(psutil.virtual_memory().total)


def size_text(num_bytes: float) -> str:
    """Return a size as the page shows it.

    >>> size_text(132_968), size_text(6_938_000), size_text(13_876_000_000)
    ('133 KB', '6.9 MB', '14 GB')
    """
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"))
    one, unit = next((each for each in units if num_bytes >= each[0]), units[-1])
    number = num_bytes / one
    return f"{round(number, 1):g} {unit}" if number < 10 else f"{number:.0f} {unit}"


def choose_dtype(device_type: str, num_parameters: int) -> DType:
    """Return the default number format for a model of this size on a kind of device.

    On NVIDIA GPUs bfloat16 has the range of float32 in half the memory; CPUs and small models gain
    little, and on Apple GPUs float16 gives NaN in many VAEs.
    """
    is_small = num_parameters < _SMALL_MODEL_PARAMETERS
    return "bfloat16" if device_type == "cuda" and not is_small else "float32"


def likely_device_type() -> str:
    """Guess the kind of device without torch, whose import takes seconds."""
    if Path("/dev/nvidia0").exists() or shutil.which("nvidia-smi") is not None:
        return "cuda"
    is_apple = sys.platform == "darwin" and platform.machine() == "arm64"
    return "mps" if is_apple else "cpu"
