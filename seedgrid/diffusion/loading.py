"""Load a diffusers pipeline with its LoRAs from files, and move it to its device.

Weights are read only from local safetensors or GGUF files, and no code from a model is run. For
`int8-…` recipes SDNQ quantises the weights to 8 bits, and dequantises them where they are used;
activations are not quantised, so rows of a batch share no scale. Weights that were stored quantised
(by SDNQ, torchao or bitsandbytes, or as GGUF) are used as they are.
"""

import logging
import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final, cast

import torch

from seedgrid.core.checks import check_quantiser
from seedgrid.core.errors import DeviceError, InputError, ModelError, RunError
from seedgrid.core.recipe import DType, Recipe
from seedgrid.core.text import one_line
from seedgrid.diffusion.backend import DEVICE_KINDS, LoadWatch, Placement
from seedgrid.diffusion.libraries import foreign_errors, quiet_diffusers, replaced
from seedgrid.models.families import Family
from seedgrid.models.files import GGUF, ModelFiles

_ADAPTER: Final = "lora_{}"  # LoRAs' names in peft, which does not accept every file name
_QUANTISED_PARTS: Final = re.compile(r"(?:transformer|unet|text_encoder)(?:_\d)?")
_HARMLESS: Final = "safe to ignore"  # In diffusers' warning that a LoRA has no layers for a part


def available_devices() -> tuple[str, ...]:
    """Return the names of this machine's devices, the preferred first: `("cuda:0", "cpu")`."""
    names = (f"{kind}:{index}" for kind in DEVICE_KINDS for index in range(_count(kind)))
    return tuple({"mps:0": "mps", "cpu:0": "cpu"}.get(name, name) for name in names)


def pick_device(device: str) -> torch.device:
    """Return a named device, or the preferred one for `"auto"`; raise `device_missing`."""
    names = available_devices()
    for name in names:
        if device in ("auto", name, name.partition(":")[0]):
            return torch.device(name)
    raise DeviceError("device_missing", value=device[:80], choices=", ".join(names))


def torch_dtype(dtype: DType) -> torch.dtype:
    """Return torch's own object for the name of a number format."""
    return cast("torch.dtype", getattr(torch, dtype.removeprefix("int8-")))


def move_to_device(pipeline: Any, device: torch.device, placement: Placement) -> None:
    """Move a pipeline to a device, with a placement's memory options; raise `offload_needs_gpu`."""
    vae = getattr(pipeline, "vae", None)
    if placement.channels_last:
        for part in (getattr(pipeline, "unet", None), vae):
            if part is not None:
                part.to(memory_format=torch.channels_last)
    if vae is not None and placement.vae_slicing:
        vae.enable_slicing()
    if vae is not None and placement.vae_tiling:
        vae.enable_tiling()
    if placement.attention == "sliced":
        pipeline.enable_attention_slicing()
    if placement.offload != "none" and device.type == "cpu":
        raise DeviceError("offload_needs_gpu", value=placement.offload)
    match placement.offload:
        case "none":
            pipeline.to(device)
        case "model":
            pipeline.enable_model_cpu_offload(device=device)
        case "sequential":
            pipeline.enable_sequential_cpu_offload(device=device)
        case "group":
            pipeline.enable_group_offload(device, offload_type="leaf_level")


def empty_cache() -> None:
    """Return memory that torch holds in reserve to the devices."""
    for kind in ("cuda", "xpu", "mps"):
        if _count(kind):
            getattr(torch, kind).empty_cache()


def _count(kind: str) -> int:
    """Return how many devices of a kind there are."""
    if kind in ("cuda", "xpu"):
        module = getattr(torch, kind)
        return int(module.device_count()) if module.is_available() else 0
    return int(kind == "cpu" or torch.backends.mps.is_available())


def read_pipeline(
    files: ModelFiles, recipe: Recipe, loras: Sequence[Path], watch: LoadWatch | None
) -> Any:
    """Load a recipe's pipeline and its LoRAs to the CPU; call `watch` before each part is loaded.

    Raises `model_damaged`; `library_import`: the pipeline cannot be imported; `dtype_library`: SDNQ
    is missing; `dtype_int8`: the model is quantised already, is a single file, or is used with
    LoRAs; `lora_family`: this model takes none; `lora_misfit`: a LoRA is for another kind of model;
    `lora_partly`: diffusers would leave out a part of it; `lora_peft`: peft is missing.
    """
    pipeline_class = _pipeline_class(files.family)
    model = recipe.model.id
    with (
        foreign_errors(lambda _, reason: ModelError("model_damaged", value=model, file=reason)),
        quiet_diffusers(),
        _called_before_parts(watch) if watch else nullcontext(),
    ):
        parts = dict.fromkeys(files.absent) | _quantised_parts(files, recipe)
        options = parts | {"dtype": torch_dtype(recipe.dtype), "local_files_only": True}
        if files.checkpoint is not None:
            checkpoint, config = str(files.checkpoint), str(files.folder)
            pipeline = pipeline_class.from_single_file(checkpoint, config=config, **options)
        else:
            options |= {"variant": files.variant, "use_safetensors": True}
            pipeline = pipeline_class.from_pretrained(files.folder, **options)
    with quiet_diffusers():
        _add_loras(pipeline, recipe, loras)
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def quantiser_of(recipe: Recipe, files: ModelFiles) -> str:
    """Return the library by which a recipe's weights are quantised; empty for none."""
    return "sdnq" if recipe.is_int8 else files.quantiser


def scale_loras(pipeline: Any, recipe: Recipe) -> None:
    """Set the scales of a pipeline's LoRAs to those of a recipe."""
    if recipe.loras:
        names = [_ADAPTER.format(number) for number in range(len(recipe.loras))]
        pipeline.set_adapters(names, [lora.scale for lora in recipe.loras])


def _pipeline_class(family: Family) -> Any:
    """Import a family's pipeline class; raise `library_import` if that fails."""

    def translate(error: Exception, _: str) -> RunError:  # The last line names the cause.
        return RunError("library_import", value=str(error).strip().split("\n")[-1][:300])

    with foreign_errors(translate), quiet_diffusers():
        import diffusers

        return getattr(diffusers, family.pipeline)


@contextmanager
def _called_before_parts(watch: LoadWatch) -> Iterator[None]:
    """In the block, call `watch` before diffusers loads each part; its errors stop the loading."""
    from diffusers.loaders import single_file
    from diffusers.pipelines import pipeline_utils

    def watched(load: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        watch()
        return load(*args, **kwargs)

    owners = {"load_sub_model": pipeline_utils, "load_single_file_sub_model": single_file}
    with ExitStack() as stack:
        for name, owner in owners.items():
            if load := getattr(owner, name, None):  # Private: another release may not have it.
                stack.enter_context(replaced(owner, name, partial(watched, load)))
        yield


def _quantised_parts(files: ModelFiles, recipe: Recipe) -> dict[str, Any]:
    """Return the arguments with which diffusers loads quantised weights, or quantises them."""
    if recipe.is_int8:
        check_quantiser(recipe.dtype)  # The recipe may come from another machine.
        single_file = files.checkpoint.name if files.checkpoint else ""
        obstacles = [files.quantiser, single_file, *(lora.id for lora in recipe.loras)]
        if obstacle := next(filter(None, obstacles), ""):
            raise InputError("dtype_int8", field="dtype", value=obstacle)
    if quantiser_of(recipe, files) == "sdnq":
        # The results of its compiled kernels differ from machine to machine.
        os.environ["SDNQ_USE_TORCH_COMPILE"] = "0"
        logging.getLogger("sdnq").setLevel(logging.ERROR)
        import sdnq  # noqa: F401
    if recipe.is_int8:
        from diffusers import PipelineQuantizationConfig
        from sdnq import SDNQConfig

        parts = [name for name in files.configs if _QUANTISED_PARTS.fullmatch(name)]
        mapping = {name: SDNQConfig(weights_dtype="int8") for name in parts}
        return {"quantization_config": PipelineQuantizationConfig(quant_mapping=mapping)}
    return _read_gguf(files, recipe) if files.quantiser == "gguf" else {}


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
    for number, (lora, path) in enumerate(zip(recipe.loras, paths, strict=True)):
        name = _ADAPTER.format(number)
        misfit = InputError("lora_misfit", field="prompt", value=lora.id)
        with (
            foreign_errors(lambda *_, misfit=misfit: misfit),
            _warnings_of_diffusers() as warned,  # diffusers only warns if it leaves out a part.
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # peft warns of every LoRA after the first.
            pipeline.load_lora_weights(
                str(path.parent),
                weight_name=path.name,
                adapter_name=name,
                use_safetensors=True,
                local_files_only=True,
            )
        if not any(name in adapters for adapters in pipeline.get_list_adapters().values()):
            raise misfit
        if warned:
            part = one_line(warned[0], limit=200).rstrip(". ")
            raise InputError("lora_partly", field="prompt", value=lora.id, part=part)


@contextmanager
def _warnings_of_diffusers() -> Iterator[list[str]]:
    """Collect diffusers' warnings in the block, except the harmless ones."""
    logger, level = logging.getLogger("diffusers"), logging.getLogger("diffusers").level
    texts: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if record.levelno >= logging.WARNING and _HARMLESS not in text:
                texts.append(text)

    logger.setLevel(logging.WARNING)
    try:
        with replaced(logger, "handlers", [Collector()]):
            yield texts
    finally:
        logger.setLevel(level)
