"""LoRAs: put into a pipeline that was just loaded, by diffusers and peft.

A loaded pipeline keeps its LoRAs: those of another recipe have a pipeline of their own. What does
not fit, wholly or in part, is refused: diffusers leaves out layers that the model has not, and a
few kinds of weights, and warns of it in its log, which is read here. Knows nothing of batches.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from seedgrid.core.errors import InputError
from seedgrid.core.recipe import Recipe
from seedgrid.core.text import one_line
from seedgrid.diffusion.foreign_errors import foreign_errors

_LONGEST: Final = 200
_HARMLESS: Final = "safe to ignore"


def add_loras(pipeline: Any, recipe: Recipe, paths: Sequence[Path]) -> None:
    """Load a recipe's LoRAs into a pipeline, in order.

    Raises:
        InputError: `lora_family`: this kind of model takes none; `lora_misfit`: this one does not
            fit; `lora_partly`: diffusers would leave a part of it out; `lora_peft`: the package
            that it wants for them is not there.
    """
    from diffusers.utils import is_peft_available

    if not recipe.loras:
        return
    if not is_peft_available():
        raise InputError("lora_peft", field="prompt")
    if not hasattr(pipeline, "load_lora_weights"):
        raise InputError("lora_family", field="prompt", value=recipe.model.id)
    for place, (lora, path) in enumerate(zip(recipe.loras, paths, strict=True)):
        misfit = InputError("lora_misfit", field="prompt", value=lora.id)
        with (
            foreign_errors(lambda *_, misfit=misfit: misfit),
            _warnings_of_diffusers() as left_out,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # peft tells of each LoRA after the first.
            pipeline.load_lora_weights(
                str(path.parent),
                weight_name=path.name,
                adapter_name=_adapter(place),
                use_safetensors=True,
                local_files_only=True,
            )
        layers = (name for names in pipeline.get_list_adapters().values() for name in names)
        if _adapter(place) not in layers:
            raise misfit
        if left_out:
            part = one_line(left_out[0], limit=_LONGEST).rstrip(". ")
            raise InputError("lora_partly", field="prompt", value=lora.id, part=part)


def scale_loras(pipeline: Any, recipe: Recipe) -> None:
    """Set the scales of a pipeline's LoRAs to those of a recipe."""
    if recipe.loras:
        names = [_adapter(place) for place in range(len(recipe.loras))]
        pipeline.set_adapters(names, [lora.scale for lora in recipe.loras])


def _adapter(place: int) -> str:
    """Return what peft calls the LoRA at a place; a file's own name may be no name to it."""
    return f"lora_{place}"


@contextmanager
def _warnings_of_diffusers() -> Iterator[list[str]]:
    """Collect what diffusers warns of in the block, but for parts that a LoRA has no layers for."""
    logger = logging.getLogger("diffusers")
    found: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if record.levelno >= logging.WARNING and _HARMLESS not in text:
                found.append(text)

    before = logger.level, logger.handlers
    logger.setLevel(logging.WARNING)
    logger.handlers = [Collecting()]
    try:
        yield found
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]
