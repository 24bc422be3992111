"""Read a diffusers pipeline from files: its weights, also in fewer bits, and its LoRAs.

Weights are safetensors, files are local, and no code comes with a model. SDNQ makes numbers of 8
bits, a quarter of float32's memory, on every processor: a weight is turned back into the format of
the computation where it is used, so rows of a batch share nothing. Weights stored by SDNQ, torchao,
bitsandbytes or as GGUF are read as they are.

diffusers only warns in its log where it leaves out parts of a LoRA that do not fit. That log is
read here, and such a LoRA is refused.
"""

from __future__ import annotations

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Final

from seedgrid.core.checks import check_quantiser
from seedgrid.core.errors import InputError, ModelError, RunError
from seedgrid.core.recipe import Recipe
from seedgrid.core.text import one_line
from seedgrid.diffusion.backend import LoadWatch
from seedgrid.diffusion.devices import torch_dtype
from seedgrid.diffusion.libraries import foreign_errors, quiet_diffusers, replaced
from seedgrid.models.families import Family
from seedgrid.models.files import GGUF, ModelFiles

_QUANTISED_PARTS: Final = re.compile(r"(?:transformer|unet|text_encoder)(?:_\d)?")
_LONGEST: Final = 200
_HARMLESS: Final = "safe to ignore"


def read_pipeline(
    files: ModelFiles, recipe: Recipe, loras: Sequence[Path], watch: LoadWatch | None
) -> Any:
    """Read a recipe's pipeline and LoRAs (`loras`, in order), on the CPU; `watch` before each part.

    Raises:
        ModelError: `model_damaged`.
        InputError: `dtype_library`; `dtype_int8`: weights are stored in fewer bits already, in a
            single file, or used with LoRAs. `lora_family`: this kind of model takes none;
            `lora_misfit`: it does not fit; `lora_partly`: diffusers would leave out a part;
            `lora_peft`: peft is missing.
        RunError: `library_import`.
    """
    pipeline_class = _pipeline_class(files.family)
    with (
        foreign_errors(
            lambda _, reason: ModelError("model_damaged", value=recipe.model.id, file=reason)
        ),
        quiet_diffusers(),
        _called_before_parts(watch) if watch else nullcontext(),
    ):
        parts = dict.fromkeys(files.absent) | _quantised_parts(files, recipe)
        options = parts | {"dtype": torch_dtype(recipe.dtype), "local_files_only": True}
        if files.checkpoint is not None:
            checkpoint, config = str(files.checkpoint), str(files.folder)
            pipeline = pipeline_class.from_single_file(checkpoint, config=config, **options)
        else:
            pipeline = pipeline_class.from_pretrained(
                files.folder, variant=files.variant, use_safetensors=True, **options
            )
    with quiet_diffusers():  # It warns of each part for which a LoRA has no layers.
        _add_loras(pipeline, recipe, loras)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def quantiser_of(recipe: Recipe, files: ModelFiles) -> str:
    """Return which library keeps a recipe's weights in fewer bits; empty for none."""
    return "sdnq" if recipe.is_int8 else files.quantiser


def scale_loras(pipeline: Any, recipe: Recipe) -> None:
    """Set the scales of a pipeline's LoRAs to those of a recipe."""
    if recipe.loras:
        names = [_adapter(place) for place in range(len(recipe.loras))]
        pipeline.set_adapters(names, [lora.scale for lora in recipe.loras])


def _pipeline_class(family: Family) -> Any:
    """Import a family's class and all that it needs: a failure here is not the model's fault."""
    with foreign_errors(
        # diffusers says the innermost reason last.
        lambda error, _: RunError("library_import", value=str(error).strip().split("\n")[-1][:300])
    ):
        import diffusers

        with quiet_diffusers():
            return getattr(diffusers, family.pipeline)


@contextmanager
def _called_before_parts(watch: LoadWatch) -> Iterator[None]:
    """Call `watch` before each part that diffusers loads, so that Stop is heard there."""
    from diffusers.loaders import single_file
    from diffusers.pipelines import pipeline_utils

    def watched(load: Callable[..., Any]) -> Callable[..., Any]:
        def load_part(*args: Any, **kwargs: Any) -> Any:
            watch()
            return load(*args, **kwargs)

        return load_part

    owners = {"load_sub_model": pipeline_utils, "load_single_file_sub_model": single_file}
    with ExitStack() as stack:
        for name, owner in owners.items():
            if load := getattr(owner, name, None):  # Private: another release may have none.
                stack.enter_context(replaced(owner, name, watched(load)))
        yield


def _quantised_parts(files: ModelFiles, recipe: Recipe) -> dict[str, Any]:
    """Return the arguments by which diffusers keeps weights in fewer bits."""
    if recipe.is_int8:
        _check_int8(files, recipe)
    if quantiser_of(recipe, files) == "sdnq":
        _import_sdnq()
    if recipe.is_int8:
        from diffusers import PipelineQuantizationConfig
        from sdnq import SDNQConfig

        parts = [name for name in files.configs if _QUANTISED_PARTS.fullmatch(name)]
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
    """Import SDNQ without compiling its kernels, whose bits differ from machine to machine."""
    os.environ["SDNQ_USE_TORCH_COMPILE"] = "0"
    logging.getLogger("sdnq").setLevel(logging.ERROR)
    import sdnq  # noqa: F401


def _read_gguf(files: ModelFiles, recipe: Recipe) -> dict[str, Any]:
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


def _add_loras(pipeline: Any, recipe: Recipe, paths: Sequence[Path]) -> None:
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
            warnings.simplefilter("ignore")  # peft warns of each LoRA after the first.
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


def _adapter(place: int) -> str:
    """Return peft's name for the LoRA at a place; peft does not accept every file's name."""
    return f"lora_{place}"


@contextmanager
def _warnings_of_diffusers() -> Iterator[list[str]]:
    """Collect diffusers' warnings in the block, except of parts for which a LoRA has no layers."""
    logger = logging.getLogger("diffusers")
    texts: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if record.levelno >= logging.WARNING and _HARMLESS not in text:
                texts.append(text)

    before = logger.level, logger.handlers
    logger.setLevel(logging.WARNING)
    logger.handlers = [Collecting()]
    try:
        yield texts
    finally:
        logger.setLevel(before[0])
        logger.handlers = before[1]
