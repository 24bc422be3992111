"""Reads a model's folder or single file without torch, and refuses what is damaged or unsafe.

Weights are safetensors or GGUF only: pickled files (.bin, .ckpt, .pt) can run code. A folder whose
index names Python code of its own is refused, too. A single file has only weights; configurations
and tokenizer come from a folder of the same name beside it (`fox.safetensors`,
`fox/model_index.json`), else from a repository of its family in the hub's cache.
"""

import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError, safe_open

from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import DType
from seedgrid.models.families import Configs, Family, family_of
from seedgrid.models.pipeline_source import package_folder
from seedgrid.storage.cache import files_digest

SUFFIX: Final = ".safetensors"
GGUF: Final = ".gguf"
QUANTISERS: Final = ("sdnq", "torchao", "bitsandbytes", "gguf")  # Libraries for weights of few bits
PICKLE_SUFFIXES: Final = (".bin", ".ckpt", ".pt", ".pth", ".pkl")
INDEX: Final = "model_index.json"  # The file that lists a model's components
WITHOUT_WEIGHTS: Final = re.compile(r"Tokenizer|Scheduler|Processor|FeatureExtractor|Guidance")
VARIANT: Final = re.compile(r"\.(fp16|bf16|fp32|non_ema)(?:[.-])")

_LIBRARIES: Final = frozenset({"diffusers", "transformers"})
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_SETTINGS: Final = (("Scheduler", "scheduler_config.json"), ("Guidance", "guider_config.json"))
"""Configuration files with names other than `config.json`, by a part of the class name."""
_LOADED_SUFFIXES: Final = (".json", ".txt", ".model", ".jinja", SUFFIX, GGUF)
_NEEDED: Final = re.compile(r"unet|transformer|vae|scheduler|(?:text_encoder|tokenizer)(?:_\d)?")
"""Required components; others may be empty, for example a safety checker."""
_LORA_MARKS: Final = ("lora", "lokr", "hada")
_SD3: Final = "model.diffusion_model.joint_blocks."  # The prefix of SD 3's tensors
CONFIGURATIONS: Final = {  # Repositories of the hub, by tensor prefix; the first match counts
    "conditioner.embedders.1.": "stabilityai/stable-diffusion-xl-base-1.0",
    "cond_stage_model.transformer.": "stable-diffusion-v1-5/stable-diffusion-v1-5",
    f"{_SD3}37.": "stabilityai/stable-diffusion-3.5-large",
    f"{_SD3}0.x_block.attn2.": "stabilityai/stable-diffusion-3.5-medium",
    _SD3: "stabilityai/stable-diffusion-3-medium-diffusers",
}
_OPTIONAL_ENCODERS: Final = {  # Components that a file of SD 3 may lack, by tensor prefix
    "text_encoders.clip_l.": "text_encoder",
    "text_encoders.clip_g.": "text_encoder_2",
    "text_encoders.t5xxl.": "text_encoder_3",
}

Header = dict[str, dict[str, Any]]  # The `dtype` and `shape` of each tensor of a safetensors file


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """The checked files of a model: a folder of the diffusers layout, or a single file."""

    folder: Path
    family: Family
    configs: Configs
    variant: str | None  # The variant in the file names (`fp16`); None for the plain files
    files: dict[str, Path]  # All files that are loaded, by name within the folder
    num_parameters: int
    checkpoint: Path | None = None  # The single file with all weights
    absent: tuple[str, ...] = ()  # Optional components that it lacks; diffusers is given None
    is_distilled: bool = False  # Whether its index says that it is distilled for few steps
    quantiser: str = ""  # The library of `QUANTISERS` that reads the weights; empty for plain ones

    def weights_bytes(self, dtype: DType) -> int:
        """Return about how many bytes the weights take in a number format; quantised, as stored."""
        if self.quantiser:
            paths = [path for path in self.files.values() if path.suffix in (SUFFIX, GGUF)]
            return sum(path.stat().st_size for path in paths)
        if dtype.startswith("int8-"):
            return self.num_parameters
        return self.num_parameters * (4 if dtype == "float32" else 2)

    def digest(self) -> str:
        """Return the SHA-256 over weights and configurations, in order of their names."""
        return files_digest(self.files)


def read_folder(folder: Path, *, needs_weights: bool = True) -> ModelFiles:
    """Check a model's folder.

    Raises `model_not_one` without an index; as `family_in` and `components_of`; `model_mixed`,
    `model_inpainting`, `model_quantiser`, `model_library`, `model_gguf` or `model_pickle`.
    """
    index_file = folder / INDEX
    if not index_file.is_file():
        raise ModelError("model_not_one", value=folder.name)
    index = _read_json(index_file, folder)
    family = family_in(index, folder.name)
    components = components_of(index, folder.name, family)
    _check_denoiser(components, folder.name, family)
    configs = _configs(folder, components)
    _check_paints_from_noise(configs, folder.name)
    if "guider" in family.components and "guider" not in components:
        # Without a guider the model is distilled: negative prompts have no effect.
        family = replace(family, has_negative_prompt=False)
    weighted = [name for name, cls in components.items() if not WITHOUT_WEIGHTS.search(cls)]
    variant = _common_variant(folder, weighted)
    files = {INDEX: index_file}
    num_parameters = 0
    for name in components:
        paths = _component_files(folder, name, variant)
        if name in weighted and needs_weights:
            num_parameters += _check_weights(folder, name, paths)
        files |= {f"{name}/{path.name}": path for path in paths}
    return ModelFiles(
        folder=folder,
        family=family,
        configs=configs,
        variant=variant,
        files=files,
        num_parameters=num_parameters,
        absent=tuple(name for name in family.optional_components if name not in components),
        is_distilled=index.get("is_distilled") is True,
        quantiser=_quantiser(files, configs, folder),
    )


def configuration_source(path: Path) -> str | Path:
    """Return the folder or hub id of a single file's configurations; raise `model_unrecognised`."""
    header = read_header(path, path.name)
    beside = path.with_suffix("")
    if (beside / INDEX).is_file():
        return beside
    for prefix, hub_id in CONFIGURATIONS.items():
        if _has_prefix(header, prefix):
            return hub_id
    raise ModelError("model_unrecognised", value=path.name)


def read_single_file(path: Path, configurations: Path) -> ModelFiles:
    """Check a single file as `read_folder`; raise `model_part` if a text encoder is missing."""
    files = read_folder(configurations, needs_weights=False)
    header = read_header(path, path.name)
    if _has_prefix(header, _SD3):
        for prefix, component in _OPTIONAL_ENCODERS.items():
            if component not in files.absent and not _has_prefix(header, prefix):
                raise ModelError("model_part", value=path.name, part=component)
    named = {f"configurations/{name}": file for name, file in files.files.items()}
    configs = {name: file for name, file in named.items() if file.suffix != SUFFIX}
    return replace(
        files,
        checkpoint=path,
        variant=None,
        files=configs | {path.name: path},
        num_parameters=count_parameters(header),
    )


def read_header(path: Path, model: str) -> Header:
    """Read a safetensors file's header; raise `model_damaged` unless the file is complete."""
    try:
        with safe_open(path, framework="np") as file:
            tensors = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (no dict)
            return {
                name: {"dtype": each.get_dtype(), "shape": each.get_shape()}
                for name, each in tensors.items()
            }
    except (OSError, SafetensorError) as error:
        raise ModelError("model_damaged", value=model, file=path.name) from error


def is_lora(header: Collection[str]) -> bool:
    """Tell by its tensors' names whether a safetensors file is a LoRA."""
    return any(mark in name.lower() for name in header for mark in _LORA_MARKS)


def count_parameters(header: Header) -> int:
    """Return the number of values in all tensors."""
    return sum(math.prod(entry["shape"]) for entry in header.values())


def parse_object(content: bytes, model: str, file: str) -> dict[str, Any]:
    """Return the JSON object in a file of a model; raise `model_damaged` for anything else."""
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ModelError("model_damaged", value=model, file=file) from error
    if not isinstance(data, dict):
        raise ModelError("model_damaged", value=model, file=file)
    return data


def family_in(index: dict[str, Any], model: str) -> Family:
    """Return the family that a model's index names; raise `model_code`, or as `family_of`."""
    name = index.get("_class_name")
    if isinstance(name, list):  # diffusers' form for a pipeline that comes with its own code.
        raise ModelError("model_code", value=model, file=INDEX)
    try:
        return family_of(str(name))
    except ModelError as error:
        data = {key: text for key, text in error.data.items() if key != "field"}
        data |= {"value": model, "family": str(name)[:80]}
        raise ModelError(error.code, **data) from error


def components_of(index: dict[str, Any], model: str, family: Family) -> dict[str, str]:
    """Return the class of each component that an index names, by the component's name.

    Raises `model_damaged`, `model_code`, or `model_part` if a required one is empty.
    """
    components: dict[str, str] = {}
    for name, entry in index.items():
        # Lists of numbers are settings, for example of Krea 2.
        is_setting = not isinstance(entry, list) or all(isinstance(item, int) for item in entry)
        if name.startswith("_") or is_setting:
            continue
        if not _NAME.fullmatch(name) or len(entry) != 2:
            raise ModelError("model_damaged", value=model, file=INDEX)
        library, class_name = entry
        if class_name is None:
            if _NEEDED.fullmatch(name) and name not in family.optional_components:
                raise ModelError("model_part", value=model, part=name)
            continue
        # Any library but `_LIBRARIES` and diffusers' pipeline modules is foreign code: refused.
        is_name = isinstance(library, str) and _NAME.fullmatch(library)
        module = package_folder() / "pipelines" / str(library) / "__init__.py"
        if library not in _LIBRARIES and not (is_name and module.is_file()):
            raise ModelError("model_code", value=model, file=INDEX)
        components[name] = str(class_name)
    return components


def _check_denoiser(components: dict[str, str], model: str, family: Family) -> None:
    """Refuse a missing denoiser, or one of a class that the pipeline's source does not name."""
    name = family.denoiser
    expected, class_name = family.components.get(name, ()), components.get(name)
    if class_name is None:
        raise ModelError("model_part", value=model, part=name)
    # Older folders say `Transformer2DModel` where diffusers has a more specific class now.
    if not any(each.endswith(class_name) for each in expected):
        data = {"family": family.pipeline, "found": class_name, "wanted": expected[-1]}
        raise ModelError("model_mixed", value=model, part=name, **data)


def _check_paints_from_noise(configs: Configs, model: str) -> None:
    """Refuse an inpainting denoiser, whose input also has a picture and a mask."""
    inputs = configs.get("unet", {}).get("in_channels")
    latent = configs.get("vae", {}).get("latent_channels")
    if isinstance(inputs, int) and isinstance(latent, int) and inputs > latent:
        raise ModelError("model_inpainting", value=model, file="unet/config.json", channels=inputs)


def _quantiser(files: Mapping[str, Path], configs: Configs, folder: Path) -> str:
    """Return the library that reads the weights; empty if none is needed."""
    stored = [config.get("quantization_config") for config in configs.values()]
    methods = [str(each.get("quant_method", "")) for each in stored if isinstance(each, dict)]
    methods += ["gguf" for path in files.values() if path.suffix == GGUF]
    for name in methods:
        if name not in QUANTISERS:
            data = {"method": name[:40], "choices": ", ".join(QUANTISERS)}
            raise ModelError("model_quantiser", value=folder.name, **data)
        if find_spec(name) is None:
            raise ModelError("model_library", value=folder.name, library=name)
    return methods[0] if methods else ""


def _common_variant(folder: Path, weighted: list[str]) -> str | None:
    """Return a variant that all components have; None, for the plain files, is preferred."""
    variants = [
        {match[1] if (match := VARIANT.search(path.name)) else None for path in paths}
        for name in weighted
        if (paths := sorted((folder / name).glob(f"*{SUFFIX}")))
    ]
    common: set[str | None] = set.intersection(*variants) if variants else set()
    return None if None in common else min(common, key=str, default=None)


def _component_files(folder: Path, name: str, variant: str | None) -> list[Path]:
    """Return the files of a component that are loaded, without other variants."""
    paths = sorted((folder / name).glob("*"))
    if any(path.suffix == SUFFIX for path in paths):  # GGUF files are ignored.
        paths = [path for path in paths if path.suffix != GGUF]
    loaded = []
    for path in paths:
        match = VARIANT.search(path.name)
        accepted = {variant} if path.suffix == SUFFIX else {variant, None}
        if path.suffix in _LOADED_SUFFIXES and (match[1] if match else None) in accepted:
            loaded.append(path)
    return loaded


def _check_weights(folder: Path, name: str, paths: list[Path]) -> int:
    """Check a component's weight files and return their number of parameters."""
    weights = [path for path in paths if path.suffix == SUFFIX]
    if quantised := [path for path in paths if path.suffix == GGUF]:
        # GGUF headers are read only on loading: the library gguf reads them without limits.
        if len(quantised) > 1:
            raise ModelError("model_gguf", value=quantised[1].name)
        with quantised[0].open("rb") as file:
            if file.read(4) != b"GGUF":
                raise ModelError("model_damaged", value=folder.name, file=quantised[0].name)
        return quantised[0].stat().st_size  # A weight takes about one byte.
    if not weights:
        for path in (folder / name).glob("*"):
            if path.suffix in PICKLE_SUFFIXES:
                raise ModelError("model_pickle", value=folder.name, file=f"{name}/{path.name}")
        raise ModelError("model_damaged", value=folder.name, file=f"{name}/*.safetensors")
    for index in (path for path in paths if path.name.endswith(".safetensors.index.json")):
        shards = _read_json(index, folder).get("weight_map", {})
        if not isinstance(shards, dict):
            raise ModelError("model_damaged", value=folder.name, file=f"{name}/{index.name}")
        missing = {str(shard) for shard in shards.values()} - {path.name for path in weights}
        if missing:
            raise ModelError("model_damaged", value=folder.name, file=f"{name}/{min(missing)}")
    return sum(count_parameters(read_header(path, folder.name)) for path in weights)


def _configs(folder: Path, components: dict[str, str]) -> Configs:
    configs: Configs = {}
    for name, class_name in components.items():
        named = (file_name for mark, file_name in _SETTINGS if mark in class_name)
        path = folder / name / next(named, "config.json")
        if path.is_file():
            configs[name] = _read_json(path, folder)
        elif "Scheduler" in class_name:
            raise ModelError("model_damaged", value=folder.name, file=f"{name}/{path.name}")
    return configs


def _read_json(path: Path, folder: Path) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ModelError("model_damaged", value=folder.name, file=path.name) from error
    return parse_object(content, folder.name, path.name)


def _has_prefix(header: Header, prefix: str) -> bool:
    return any(name.startswith(prefix) for name in header)
