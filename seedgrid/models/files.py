"""Reads a model's folder without torch, and refuses what is damaged or unsafe.

Weights are safetensors only: pickled files (.bin, .ckpt, .pt) can run code when they are opened, so
they never are. A folder with Python code of its own is refused too.

    files = read_folder(Path("assets/model"))
    files.family.pipeline, files.digest()
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError, safe_open

from seedgrid.core.errors import ModelError
from seedgrid.core.recipe import DType
from seedgrid.models.digests import files_digest
from seedgrid.models.families import Configs, Family, family_of
from seedgrid.models.memory import weights_bytes
from seedgrid.models.pipeline_source import package_folder

SUFFIX: Final = ".safetensors"
GGUF: Final = ".gguf"
QUANTISERS: Final = ("sdnq", "torchao", "bitsandbytes", "gguf")
"""The libraries for weights of fewer bits, by diffusers' names."""
PICKLE_SUFFIXES: Final = (".bin", ".ckpt", ".pt", ".pth", ".pkl")

INDEX: Final = "model_index.json"
"""The file that lists a model's components."""

# `stable_diffusion` and the like are diffusers' own modules; anything else would be foreign code.
_LIBRARIES: Final = frozenset({"diffusers", "transformers"})
WITHOUT_WEIGHTS: Final = re.compile(r"Tokenizer|Scheduler|Processor|FeatureExtractor|Guidance")
_SETTINGS: Final = (("Scheduler", "scheduler_config.json"), ("Guidance", "guider_config.json"))
"""Configuration files with names other than `config.json`, by a part of the class name."""
_DIGESTED_SUFFIXES: Final = (".json", ".txt", ".model", SUFFIX, GGUF)
_NEEDED: Final = re.compile(r"unet|transformer|vae|scheduler|(?:text_encoder|tokenizer)(?:_\d)?")
"""Required components; others may be empty, for example a safety checker."""
_LORA_MARKS: Final = ("lora", "lokr", "hada")
VARIANT: Final = re.compile(r"\.(fp16|bf16|fp32|non_ema)(?:[.-])")


@dataclass(frozen=True, kw_only=True)
class ModelFiles:
    """A model in a folder of the diffusers layout, checked."""

    folder: Path
    family: Family
    configs: Configs
    variant: str | None  # The variant in the file names (`fp16`); None for the plain files
    files: dict[str, Path]  # All files that are loaded, by name within the folder
    num_parameters: int
    # The single file with all weights, if they are not in the folder
    checkpoint: Path | None = None
    absent: tuple[str, ...] = ()  # Optional components that it lacks, which diffusers must be told
    is_distilled: bool = False  # Whether its index says that it is distilled for few steps
    quantiser: str = ""  # The library of `QUANTISERS` that reads the weights; empty for plain ones

    def weights_bytes(self, dtype: DType) -> int:
        """Return about how many bytes the weights take in a number format."""
        if self.quantiser:
            paths = [path for path in self.files.values() if path.suffix in (SUFFIX, GGUF)]
            return sum(path.stat().st_size for path in paths)
        return weights_bytes(self.num_parameters, dtype)

    def digest(self) -> str:
        """Return the SHA-256 over weights and configurations, in order of their names."""
        return files_digest(self.files)


def read_folder(folder: Path, *, needs_weights: bool = True) -> ModelFiles:
    """Check a model's folder.

    Raises:
        ModelError: `model_not_one` without a readable `model_index.json`, `model_family`,
            `model_code`, `model_part`, `model_pickle`, or `model_damaged` with the file's name.
    """
    index_file = folder / INDEX
    if not index_file.is_file():
        raise ModelError("model_not_one", value=folder.name)
    index = _read_json(index_file, folder)
    family = family_in(index, folder)
    components = components_of(index, folder, family)
    _check_is_what_it_says(components, folder, family)
    if "guider" in family.components and "guider" not in components:
        family = replace(
            family, has_negative_prompt=False
        )  # Distilled: negative words have no effect.
    weighted = [name for name, cls in components.items() if not WITHOUT_WEIGHTS.search(cls)]
    variant = _common_variant(folder, weighted)
    files = {INDEX: index_file}
    num_parameters = 0
    for name in components:
        found = _component_files(folder, name, variant)
        if name in weighted and needs_weights:
            num_parameters += _check_weights(folder, name, found)
        files |= {f"{name}/{path.name}": path for path in found}
    configs = _configs(folder, components)
    _check_paints_from_noise(family, configs, folder)
    return ModelFiles(
        folder=folder,
        family=family,
        configs=configs,
        variant=variant,
        files=files,
        num_parameters=num_parameters,
        absent=tuple(name for name in family.may_lack if name not in components),
        is_distilled=index.get("is_distilled") is True,
        quantiser=_quantiser(files, configs, folder),
    )


def _quantiser(files: Mapping[str, Path], configs: Configs, folder: Path) -> str:
    """Return the library that reads the weights; empty if none is needed."""
    stored = [config.get("quantization_config") for config in configs.values()]
    found = [str(each.get("quant_method", "")) for each in stored if isinstance(each, dict)]
    found += ["gguf" for path in files.values() if path.suffix == GGUF]
    for name in found:
        if name not in QUANTISERS:
            known = {"method": name[:40], "choices": ", ".join(QUANTISERS)}
            raise ModelError("model_quantiser", value=folder.name, **known)
        if find_spec(name) is None:
            raise ModelError("model_library", value=folder.name, library=name)
    return found[0] if found else ""


def _check_paints_from_noise(family: Family, configs: Configs, folder: Path) -> None:
    """Refuse an inpainting denoiser, whose input also has a picture and a mask (nine channels)."""
    denoiser, vae = configs.get(family.denoiser, {}), configs.get("vae", {})
    takes, has = denoiser.get("in_channels"), vae.get("latent_channels")
    if (
        family.denoiser == "unet"
        and isinstance(takes, int)
        and isinstance(has, int)
        and takes > has
    ):
        raise ModelError(
            "model_inpainting", value=folder.name, file="unet/config.json", channels=takes
        )


def read_header(path: Path, shown: str) -> dict[str, dict[str, Any]]:
    """Read the header of a safetensors file and check that the file is complete.

    Returns:
        For each tensor its `dtype` and `shape`.

    Raises:
        ModelError: `model_damaged`: truncated, a pointer of Git LFS, or another format.
    """
    try:
        with safe_open(path, framework="np") as file:
            tensors = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 (no dict)
            return {
                name: {"dtype": each.get_dtype(), "shape": each.get_shape()}
                for name, each in tensors.items()
            }
    except (OSError, SafetensorError) as error:
        raise ModelError("model_damaged", value=shown, file=path.name) from error


def is_lora(header: Mapping[str, Any]) -> bool:
    """Tell by its tensors' names whether a safetensors file is a LoRA; a whole model has none."""
    return any(mark in name.lower() for name in header for mark in _LORA_MARKS)


def count_parameters(header: dict[str, Any]) -> int:
    """Return the number of values in all tensors of a safetensors header."""
    return sum(math.prod(entry["shape"]) for entry in header.values())


def _read_json(path: Path, folder: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError("model_damaged", value=folder.name, file=path.name) from error
    if not isinstance(data, dict):
        raise ModelError("model_damaged", value=folder.name, file=path.name)
    return data


def family_in(index: dict[str, Any], folder: Path) -> Family:
    """Return the family that a model's index names.

    Raises:
        ModelError: `model_code`, or as `family_of`.
    """
    name = index.get("_class_name")
    if isinstance(name, list):  # diffusers' form for a pipeline that comes with its own code.
        raise ModelError("model_code", value=folder.name, file=INDEX)
    try:
        return family_of(str(name))
    except ModelError as error:
        told = {key: text for key, text in error.data.items() if key != "field"}
        told |= {"value": folder.name, "family": str(name)[:80]}
        raise ModelError(error.code, **told) from error


def _check_is_what_it_says(components: dict[str, str], folder: Path, family: Family) -> None:
    """Refuse a denoiser of another class than the pipeline's source names.

    Older folders say `Transformer2DModel` where diffusers has a more specific class now.
    """
    part = family.denoiser
    wanted, found = family.components.get(part, ()), components.get(part)
    if found is None:
        raise ModelError("model_part", value=folder.name, part=part)
    if not any(each.endswith(found) for each in wanted):
        data = {"family": family.pipeline, "part": part, "found": found, "wanted": wanted[-1]}
        raise ModelError("model_mixed", value=folder.name, **data)


def components_of(index: dict[str, Any], folder: Path, family: Family) -> dict[str, str]:
    """Return the class of each component that an index names, by the component's name.

    Raises:
        ModelError: `model_damaged`, `model_code`, or `model_part`: a required one is empty.
    """
    components: dict[str, str] = {}
    for name, entry in index.items():
        # Lists of numbers are settings, for example of Krea 2.
        if (
            name.startswith("_")
            or not isinstance(entry, list)
            or all(isinstance(item, int) for item in entry)
        ):
            continue
        if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or len(entry) != 2:
            raise ModelError("model_damaged", value=folder.name, file=INDEX)
        library, class_name = entry
        if class_name is None:
            if _NEEDED.fullmatch(name) and name not in family.may_lack:
                raise ModelError("model_part", value=folder.name, part=name)
            continue
        if library not in _LIBRARIES and not _is_module_of_diffusers(library):
            raise ModelError("model_code", value=folder.name, file=INDEX)
        components[name] = str(class_name)
    return components


def _is_module_of_diffusers(name: object) -> bool:
    """Tell whether a name is one of diffusers' own pipeline modules."""
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        return False
    return (package_folder() / "pipelines" / name / "__init__.py").is_file()


def _common_variant(folder: Path, weighted: list[str]) -> str | None:
    """Return the variant that all components have; None, the plain files, is preferred."""
    each = [
        {match[1] if (match := VARIANT.search(path.name)) else None for path in paths}
        for name in weighted
        if (paths := sorted((folder / name).glob("*.safetensors")))
    ]
    common: set[str | None] = set.intersection(*each) if each else {None}
    if None in common or not common:
        return None
    return sorted(common, key=str)[0]


def _component_files(folder: Path, name: str, variant: str | None) -> list[Path]:
    """Return the files of a component that are loaded, without other variants."""
    paths = sorted((folder / name).iterdir()) if (folder / name).is_dir() else []
    loaded = []
    for path in paths:
        match = VARIANT.search(path.name)
        if path.suffix == GGUF and any(each.suffix == SUFFIX for each in paths):
            continue  # The plain weights are used.
        accepted = {variant} if path.suffix == SUFFIX else {variant, None}
        if path.suffix in _DIGESTED_SUFFIXES and (match[1] if match else None) in accepted:
            loaded.append(path)
    return loaded


def _check_weights(folder: Path, name: str, found: list[Path]) -> int:
    """Check a component's weight files and return their number of parameters."""
    weights = [path for path in found if path.suffix == SUFFIX]
    quantised = [path for path in found if path.suffix == GGUF]
    if quantised:
        return _check_gguf(quantised, folder)
    if not weights:
        there = (folder / name).iterdir() if (folder / name).is_dir() else []
        pickles = [path.name for path in there if path.suffix in PICKLE_SUFFIXES]
        if pickles:
            raise ModelError("model_pickle", value=folder.name, file=f"{name}/{pickles[0]}")
        raise ModelError("model_damaged", value=folder.name, file=f"{name}/*.safetensors")
    for index in (path for path in found if path.name.endswith(".safetensors.index.json")):
        shards = _read_json(index, folder).get("weight_map", {})
        if not isinstance(shards, dict):
            raise ModelError("model_damaged", value=folder.name, file=f"{name}/{index.name}")
        missing = {str(shard) for shard in shards.values()} - {path.name for path in weights}
        if missing:
            raise ModelError("model_damaged", value=folder.name, file=f"{name}/{min(missing)}")
    return sum(count_parameters(read_header(path, folder.name)) for path in weights)


def _check_gguf(found: Sequence[Path], folder: Path) -> int:
    """Check a single GGUF file, and return its size: a weight takes about one byte.

    Its header is read when it is loaded, since its library has no limits on headers.
    """
    if len(found) > 1:
        raise ModelError("model_gguf", value=found[1].name)
    with found[0].open("rb") as file:
        if file.read(4) != b"GGUF":
            raise ModelError("model_damaged", value=folder.name, file=found[0].name)
    return found[0].stat().st_size


def _configs(folder: Path, components: dict[str, str]) -> Configs:
    configs: Configs = {}
    for name, class_name in components.items():
        named = (name for mark, name in _SETTINGS if mark in class_name)
        file_name = next(named, "config.json")
        path = folder / name / file_name
        if path.is_file():
            configs[name] = _read_json(path, folder)
        elif "Scheduler" in class_name:
            raise ModelError("model_damaged", value=folder.name, file=f"{name}/{file_name}")
    return configs
