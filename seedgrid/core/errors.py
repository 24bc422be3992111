"""Every error SeedGrid raises on purpose, and its sentence.

    SeedGridError
    ├── InputError       what was asked for cannot be (exit 2); `field` names the place
    │   ├── ModelError   a model is missing, damaged, unsafe or does not fit
    │   ├── DeviceError  a device is missing or too small
    │   ├── CompileError a denoiser cannot run compiled here
    │   └── PictureError a file is not a picture that SeedGrid can read
    ├── RunError         the work was started and did not succeed (exit 1)
    │   └── RunCancelled the work was stopped on request
    └── LibraryError     the library's folder or database refuses

An error is a code and its data; the English sentence is made here, other languages translate the
code in `web/locales/texts.py`. Each sentence says what, the value, and what to do.

    raise InputError("seed_range", field="seeds", value=-1)
"""

from __future__ import annotations

from typing import Final

MESSAGES: Final[dict[str, str]] = {
    "seed_range": "Seed {value} is out of range: use a whole number from 0 to 4294967295.",
    "seed_text": "“{value}” is not a list of seeds: write 7, or 0-3, or 7, 11, 42.",
    "seed_count": "{value} seeds are too many: ask for at most {limit} at once.",
    "mix_text": "“{value}” is no mix of seeds: write SEED:WEIGHT, as in 5:0.1, 7:0.3.",
    "pictures_count": "{value} pictures are too many: ask for at most {limit} at once.",
    "prompt_empty": "The prompt is empty: say what the picture should show.",
    "prompt_long": "The {field} has {value} characters: use at most {limit}.",
    "prompt_characters": "The {field} holds a character no text can hold ({value}): remove it.",
    "size_range": "Size {value} does not work: use WIDTHxHEIGHT from {low} to {high} pixels.",
    "size_multiple": "Size {value} does not fit this model: use multiples of {multiple}.",
    "size_text": "“{value}” is not a size: write WIDTHxHEIGHT, as in 512x512.",
    "size_fixed": "Size {value} does not fit this model: it only paints {width}x{height}.",
    "steps_range": "{value} steps do not work: use a whole number from 1 to {limit}.",
    "steps_few": "{value} needs at least {limit} steps with this model: use more.",
    "guidance_range": "Guidance {value} does not work: use a number from 0 to 30.",
    "width_range": "Lock width {value} does not work: use a whole number from 1 to 16.",
    "scheduler_unknown": "Scheduler “{value}” does not work with this model: use one of {choices}.",
    "dtype_unknown": "Number format “{value}” is unknown: use one of {choices}.",
    "determinism_unknown": "Determinism level “{value}” is unknown: use one of {choices}.",
    "variations_empty": "There is no variation to make: write at least one suffix or prompt.",
    "model_missing": "There is no model “{value}”: see `seedgrid models`, or name a folder.",
    "run_cancelled": "Stopped. Pictures that were finished are kept.",
    "picture_nan": (
        "The model gave no picture (NaN): try number format float32, lower guidance, or another "
        "scheduler."
    ),
    "run_unexpected": "The run failed unexpectedly ({reason}): the log says where.",
    "too_many_runs": "{limit} runs are waiting or running already: stop one, or wait for it.",
    "engine_closed": "SeedGrid is closing: start it again.",
    "model_not_offered": "Model “{value}” is not offered here: choose one of {choices}.",
    "model_name": "“{value}” is not the name of a model: see `seedgrid models`.",
    "model_not_downloaded": (
        "Model “{value}” is not on this machine: run `seedgrid models --download {value}` first."
    ),
    "model_not_one": "“{value}” is not a model: it has no model_index.json.",
    "model_family": "Model “{value}” is a {family}, which SeedGrid cannot paint with: {choices}.",
    "model_pickle": (
        "Model “{value}” comes as a pickle ({file}), which can run code: use .safetensors files."
    ),
    "model_code": "Model “{value}” wants to run its own code ({file}): SeedGrid never does that.",
    "model_damaged": "Model “{value}” is damaged at {file}: get it again from where it came.",
    "model_changed": "The weights of model “{value}” are not those that made this picture.",
    "model_configs": (
        "“{value}” needs its family's configurations: run `seedgrid models --download {hub_id}`."
    ),
    "model_unrecognised": (
        "“{value}” is no Stable Diffusion checkpoint that SeedGrid knows: put its configurations"
        " into a folder of the same name beside it."
    ),
    "download_failed": "Model “{value}” could not be downloaded: {reason}.",
    "device_missing": "There is no device “{value}” on this machine: use one of {choices}.",
    "offload_needs_gpu": "Offload “{value}” needs a GPU to load onto: use none on a CPU.",
    "attention_unknown": "Attention “{value}” is unknown: use one of {choices}.",
    "cublas_too_late": (
        "Strict determinism needs CUBLAS_WORKSPACE_CONFIG=:16:8 before CUDA starts (it is {value}):"
        " set it and start SeedGrid again, or use determinism seeded."
    ),
    "picture_blank": (
        "The model gave a picture of one colour: try number format float32 or a lower guidance."
    ),
    "picture_withheld": "The model's safety checker withheld the picture of seed {value}.",
    "memory_full": (
        "{width}x{height} in a batch of {lock_width} does not fit into the memory of {device}:"
        " use a smaller size, offload, or a smaller lock width."
    ),
    "not_deterministic": (
        "This model needs an operation that has no deterministic form here: use determinism"
        " seeded. ({reason})"
    ),
    "lora_unsupported": "This release cannot mix in LoRAs ({value}): use a recipe without.",
    "noise_mix_unsupported": "This model cannot mix the noise of several seeds: leave the mix out.",
    "child_failed": "The process with other instruction limits failed: {reason}",
    "compiler_missing": (
        "There is no C++ compiler here to compile the denoiser: install g++, or leave it as it is."
    ),
    "compile_failed": "The denoiser could not be compiled: {reason}. Leave it as it is.",
    "compile_device": "A compiled denoiser runs on the processor only, not on {value}: use cpu.",
    "pipeline_refused": "The model refused these settings: {reason}.",
    "portable_refused": (
        "The same picture on every machine cannot be had with this model or scheduler: {value} has"
        " no portable rule. Choose another scheduler, or leave it off."
    ),
    "out_folder": "The folder “{value}” cannot be used ({reason}): name another with --out.",
    "language_unknown": "There is no language “{value}” on the page: use one of {choices}.",
    "address_refused": "The page cannot use {value} ({reason}): choose another --host or --port.",
    "page_missing": "There is no page at {value}: start it from a checkout, with `python app.py`.",
    "bench_missing": "There is no benchmark at {value}: start it from a checkout.",
    "bench_unknown": "There is no benchmark “{value}”: use one of {choices}.",
    "recipe_invalid": "This recipe cannot be used: {reason}.",
    "picture_missing": "There is no picture at {value}: check the path.",
    "picture_unreadable": (
        "{value} cannot be opened ({reason}): check the file and its permissions."
    ),
    "picture_not_png": ("This file is no picture that SeedGrid reads: give a PNG as it was saved."),
    "picture_large": "This picture is too large ({value}): the limit is {limit}.",
    "picture_damaged": "This PNG is damaged: {reason}. Get it again from where it came.",
    "picture_text": "This PNG holds too much text under “{value}”: it is not read.",
    "picture_without_recipe": (
        "This picture holds no recipe: its text was removed, or nothing was written into it."
    ),
    "picture_record": "The recipe in this PNG cannot be read: {reason}.",
    "picture_altered": (
        "The pixels of this picture are not those that its recipe came with: it was edited."
    ),
    "disk_full": (
        "The disk is full: {value} has no room. Make room, nothing that was saved is lost."
    ),
    "disk_low": (
        "There is too little room in {value}: {wanted} are wanted, {free} are free. Make room; "
        "nothing was started, nothing that was saved is lost."
    ),
    "folder_read_only": (
        "{value} cannot be written to: allow writing there or choose another folder."
    ),
    "folder_refuses": "{value} cannot be written: {reason}. Choose another folder.",
    "picture_unknown": "There is no picture “{value}” in this library: check the id.",
    "picture_ambiguous": "Several pictures begin with “{value}”: give more digits.",
    "picture_twice": (
        "Another picture in this library has the id {value}: it is kept, this one is not."
    ),
    "picture_lost": (
        "The file of picture {value} is missing or damaged: make it again from its recipe."
    ),
    "library_locked": "The library {value} is in use by another process: try again in a moment.",
    "library_damaged": ("The library's database {value} is damaged: run `seedgrid library check`."),
    "library_newer": "A later SeedGrid made the library {value}: update SeedGrid to open it.",
    "library_rebuilt": (
        "The library's database was gone or damaged; it was made again from {value} pictures."
    ),
    "library_mended": (
        "SeedGrid was stopped while it saved; nothing is lost. Loose ends tied up: {value}."
    ),
    "import_nothing": "There is no PNG and no ZIP among these files: drop pictures or bundles.",
    "imported": (
        "From {tool}, filled in as far as it goes; the same picture will not come out: {reasons}."
    ),
    "import_seed_missing": "The file names no seed.",
    "import_seed": "The seed {value} is beyond 32 bits, {instead} draws the same noise.",
    "import_text": "The text lost {value} characters that a prompt here cannot hold.",
    "import_number": "The value of {name}, {value}, became {instead}.",
    "import_size": "The size {value} became {instead}, which this model can paint.",
    "import_sampler": "The sampler “{value}” is not offered here, the model's own is used.",
    "import_schedule": "The noise levels “{value}” are not offered with {sampler}.",
    "import_loras": "The LoRAs are not taken along: {value}.",
    "import_extras": "There is no such setting here: {value}.",
    "import_model": "The model “{value}” must be chosen here, if you have it.",
    "import_noise": "The noise is drawn elsewhere by {tool}.",
    "import_arithmetic": "The arithmetic is another program's.",
    "import_weights": "The marks with which {tool} weights words are plain words here.",
    "import_second_pass": "There was a second pass over it (hires fix, refiner or upscaling).",
    "import_first_picture": "It was made from another picture, not from noise alone.",
    "import_batch": "It is one of {value} drawn in one go, and the file does not say which.",
    "picture_foreign": "The settings in this picture cannot be read: {reason}.",
    "bundle_large": "The bundle {value} is too large: at most 10,000 files and 4 GB unpacked.",
    "bundle_damaged": "The bundle {value} cannot be read: {reason}.",
    "link_invalid": "This link cannot be used ({reason}): “{value}”.",
    "export_nothing": "There is no picture to export: name at least one.",
    "export_loras": "Picture {value} was made with a LoRA: a script for it cannot be written yet.",
    "sheet_suffix": "A contact sheet is a PNG or a PDF: “{value}” should end in .png or .pdf.",
    "import_words": "The words were not found in its graph, fill them in.",
    "export_models": (
        "A bundle holds the folder of one model, this one needs {value}: leave --with-model out."
    ),
    "library_lost": (
        "The files of {value} pictures are gone; their recipes are kept, so they can be "
        "painted again."
    ),
}


class SeedGridError(Exception):
    """The root of the tree: `code`, `data` for translation, and one English sentence.

    Attributes:
        code: A key of `MESSAGES`.
        data: What the sentence is filled with.
    """

    exit_code = 1

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(MESSAGES[code].format(**data))
        self.code = code
        self.data = data


class InputError(SeedGridError):
    """What was asked for cannot be done; nothing was started and nothing is lost.

    Attributes:
        field: The request's field to blame, for example `"seeds"`.
    """

    exit_code = 2

    def __init__(self, code: str, *, field: str, **data: object) -> None:
        super().__init__(code, field=field, **data)
        self.field = field


class ModelError(InputError):
    """A model is missing, damaged, unsafe, or does not fit the request."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="model", **data)


class DeviceError(InputError):
    """The device asked for is not on this machine."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="device", **data)


class CompileError(InputError):
    """A denoiser cannot run compiled on this machine; uncompiled it can."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="compiled", **data)


class PictureError(InputError):
    """A file is not a picture that SeedGrid can read, or it holds no recipe."""

    def __init__(self, code: str, **data: object) -> None:
        super().__init__(code, field="picture", **data)


class RunError(SeedGridError):
    """The work was started and did not give a picture."""


class RunCancelled(RunError):  # noqa: N818 - a request, not an error
    """The work was stopped on request; pictures that were finished are kept."""


class LibraryError(SeedGridError):
    """The library's folder or database refuses: full, read-only, damaged, locked."""
