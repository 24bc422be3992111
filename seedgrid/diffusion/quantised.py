"""Weights of fewer bits: made so while a model is loaded, or stored so.

Numbers of 8 bits take a quarter of float32's memory. They are made by SDNQ, whose int8 weights run
on every processor; a weight is turned back into the format that is computed in where it is used, so
rows of a batch share nothing. What is stored by SDNQ, torchao, bitsandbytes or as GGUF is read as
it is.

    given = quantised_parts(files, "int8-float32")
    pipeline_class.from_pretrained(files.folder, **given)
"""

import logging
import os
import re
from typing import Any, Final

from seedgrid.core.checks import check_quantiser
from seedgrid.core.errors import InputError, ModelError
from seedgrid.core.recipe import Recipe
from seedgrid.diffusion.devices import torch_dtype
from seedgrid.models.files import GGUF, ModelFiles

PARTS: Final = re.compile(r"(?:transformer|unet|text_encoder)(?:_\d)?")
"""The components with most of the weights."""


def quantiser_of(recipe: Recipe, files: ModelFiles) -> str:
    """Return which library keeps a recipe's weights in fewer bits; empty for none."""
    return "sdnq" if recipe.is_int8 else files.quantiser


def quantised_parts(files: ModelFiles, recipe: Recipe) -> dict[str, Any]:
    """Return what a pipeline's loading is told, beside folder and number format.

    Raises:
        InputError: `dtype_int8`: of weights that are stored in fewer bits already, of a single
            file, or beside LoRAs; `dtype_library`.
    """
    if recipe.is_int8:
        _check_int8(files, recipe)
    if quantiser_of(recipe, files) == "sdnq":
        _import_sdnq()
    if recipe.is_int8:
        from diffusers import PipelineQuantizationConfig
        from sdnq import SDNQConfig

        parts = [name for name in files.configs if PARTS.fullmatch(name)]
        mapping = {name: SDNQConfig(weights_dtype="int8") for name in parts}
        return {"quantization_config": PipelineQuantizationConfig(quant_mapping=mapping)}
    return _read_gguf(files, recipe) if files.quantiser == "gguf" else {}


def _check_int8(files: ModelFiles, recipe: Recipe) -> None:
    check_quantiser(recipe.dtype)  # A recipe may come from a machine that has it.
    single_file = files.checkpoint.name if files.checkpoint else ""
    names = [files.quantiser, single_file, *(lora.id for lora in recipe.loras)]
    if unfit := next(filter(None, names), ""):
        raise InputError("dtype_int8", field="dtype", value=unfit)


def _import_sdnq() -> None:
    """Import it, which makes it known to diffusers and transformers.

    It would compile its kernels otherwise, whose bits differ from machine to machine.
    """
    os.environ["SDNQ_USE_TORCH_COMPILE"] = "0"
    logging.getLogger("sdnq").setLevel(logging.ERROR)
    import sdnq  # noqa: F401


def _read_gguf(files: ModelFiles, recipe: Recipe) -> dict[str, Any]:
    """Return the one part that is a GGUF file, read."""
    import diffusers

    name, path = next(
        (key.partition("/")[0], path) for key, path in files.files.items() if path.suffix == GGUF
    )
    part_class: Any = getattr(diffusers, str(files.configs[name].get("_class_name")), None)
    if not hasattr(part_class, "from_single_file"):
        raise ModelError("model_damaged", value=recipe.model.id, file=f"{name}/config.json")
    dtype = torch_dtype(recipe.dtype)
    part = part_class.from_single_file(
        str(path),
        config=str(files.folder / name),
        quantization_config=diffusers.GGUFQuantizationConfig(compute_dtype=dtype),
        torch_dtype=dtype,
        local_files_only=True,
    )
    return {name: part}
