"""Every environment variable that SeedGrid reads, in one table: names, meanings, defaults.

`python -m seedgrid.core.variables` writes the table of docs/operations.md.
"""

import os
import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Final

from seedgrid.core.errors import InputError

_YES: Final = ("1", "true", "yes", "on")


@dataclass(frozen=True)
class Variable:
    """One environment variable."""

    name: str
    what: str  # Its meaning, in a sentence
    _: KW_ONLY
    home: str = ""  # The default on one's own machine; empty means none
    public: str | None = None  # The default on a public page; None means the same


# The proxies of a Space have private addresses; loopback is not among them.
_PRIVATE_NETWORKS: Final = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10"

VARIABLES: Final = (
    Variable(
        "SEEDGRID_MODEL",
        "The model when none is named: `bundled`, a folder, a hub id or a .safetensors file.",
        home="bundled",
    ),
    Variable(
        "SEEDGRID_LIBRARY",
        "The folder that keeps the pictures.",
        home="the system's place for user data",
        public="a temporary folder",
    ),
    Variable("SEEDGRID_MODELS", "Folders with models and LoRAs of your own, separated like PATH."),
    Variable(
        "SEEDGRID_ALLOWED_MODELS",
        "What a public page offers of the installed models and LoRAs, and may fetch from the"
        " hub: names and hub ids, separated by commas.",
        public="all that are installed; nothing is fetched",
    ),
    Variable(
        "SEEDGRID_BUNDLED",
        "Where the bundled model is, when it is not in the package.",
        home="in the package",
    ),
    Variable(
        "SEEDGRID_CACHE",
        "Where digests, probe results and other things are kept that can be made again.",
        home="the system's place for caches",
    ),
    Variable(
        "SEEDGRID_PUBLIC",
        "`1` makes the page a public one: a library for each visitor, deleted when they stay"
        " away, installed models only, and the bounds below.",
        home="0",
        public="1 on a Space",
    ),
    Variable(
        "SEEDGRID_MAX_QUEUE_S",
        "All that waits or runs, in estimated seconds; what would be more is refused.",
        public="1800",
    ),
    Variable(
        "SEEDGRID_MAX_RUN_S",
        "One request, in estimated seconds, measured by model and size.",
        public="600",
    ),
    Variable(
        "SEEDGRID_MAX_RUNS_PER_VISITOR",
        "What one visitor may have waiting or running, verifying too.",
        home="2",
        public="2",
    ),
    Variable(
        "SEEDGRID_MAX_RUNS_PER_ADDRESS",
        "What one address may have waiting or running, whatever ids it chooses.",
        public="6",
    ),
    Variable(
        "SEEDGRID_MAX_VISITORS", "How many visitors may have pictures at once.", public="1000"
    ),
    Variable(
        "SEEDGRID_MAX_VISITORS_MB",
        "How large the pictures of all visitors may be together, in megabytes.",
        public="4000",
    ),
    Variable(
        "SEEDGRID_MAX_UPLOAD_MB",
        "One upload, with all its files, in megabytes.",
        home="1000",
        public="64",
    ),
    Variable(
        "SEEDGRID_MAX_UPLOADS_MB",
        "All uploads that lie on the disk together, in megabytes.",
        public="1000",
    ),
    Variable(
        "SEEDGRID_WAY_MB",
        "How much memory may hold what was computed on the way to the newest pictures, in"
        " megabytes: a refinement that holds their first steps is quicker.",
        home="256",
    ),
    Variable(
        "SEEDGRID_MAX_UNPACKED_MB",
        "What a picture that others made may take unpacked, in megabytes: one that takes more is"
        " refused, and large ones wait for each other.",
        home="2000",
        public="200",
    ),
    Variable(
        "SEEDGRID_MAX_DROPPED",
        "How many pictures are taken in at once, those in bundles counted.",
        public="200",
    ),
    Variable(
        "SEEDGRID_MAX_DOWNLOAD_MB",
        "One download, sheet or bundle: its pictures together, in megabytes.",
        public="500",
    ),
    Variable(
        "SEEDGRID_MAX_FILES_PER_ADDRESS",
        "How many downloads, sheets, bundles, drops and readings of pictures one address may"
        " have in work.",
        public="4",
    ),
    Variable(
        "SEEDGRID_MAX_FILES_S_PER_ADDRESS",
        "How many seconds of a processor all that may take one address in ten minutes.",
        public="120",
    ),
    Variable(
        "SEEDGRID_HOST",
        "The address to listen on, where `--host` says none; a container's is 0.0.0.0.",
        home="127.0.0.1",
    ),
    Variable(
        "SEEDGRID_HOSTS",
        "Names under which the page may be asked, separated by commas, beside localhost and"
        " plain IP addresses: those of your network, or of your proxy.",
    ),
    Variable(
        "SEEDGRID_C2PA",
        "A PEM file with a certificate for C2PA, those above it, and its ES256 key: what is painted"
        " is signed (`pip install c2pa-python`).",
    ),
    Variable(
        "SEEDGRID_PORT", "The port, where `--port` says none; 0 takes a free one.", home="7860"
    ),
    Variable(
        "SEEDGRID_WORKERS",
        "How many workers this machine offers a cluster; 0 is none.",
        home="one a GPU, or one",
    ),
    Variable("SPACE_ID", "Set by Hugging Face: the page is a Space and public."),
    Variable(
        "SPACES_ZERO_GPU",
        "Set by Hugging Face: GPUs are lent for some seconds (ZeroGPU), and paint.",
    ),
    Variable(
        "FORWARDED_ALLOW_IPS",
        "Proxies whose X-Forwarded-For is believed: addresses and networks, separated by"
        " commas (uvicorn reads it).",
        home="nobody",
        public=_PRIVATE_NETWORKS + " on a Space, else nobody",
    ),
    Variable(
        "GRADIO_TEMP_DIR",
        "Where uploads lie until they are taken in; on a public page nothing stays an hour.",
        home="a temporary folder of the program's own",
    ),
    Variable("GRADIO_ANALYTICS_ENABLED", "Gradio's reports to its makers.", home="False"),
    Variable(
        "CUBLAS_WORKSPACE_CONFIG",
        "What makes CUDA's matrix products the same every time; strict determinism sets it.",
        home=":16:8",
    ),
    Variable(
        "ATEN_CPU_CAPABILITY",
        "Limits the processor's instructions in torch; it changes bits, so the passport names it.",
    ),
    Variable("ONEDNN_MAX_CPU_ISA", "The same in oneDNN."),
    Variable("DNNL_MAX_CPU_ISA", "The same, by its older name."),
    Variable("MKL_ENABLE_INSTRUCTIONS", "The same in MKL."),
    Variable("MKL_CBWR", "The same in MKL, by branch."),
)

_BY_NAME: Final = {variable.name: variable for variable in VARIABLES}


def default_model() -> str:
    """Return the model that the environment names, else the bundled one."""
    return os.environ.get("SEEDGRID_MODEL") or "bundled"


def default_library() -> Path:
    """Return the folder that the environment names, else the system's place for user data."""
    folder = os.environ.get("SEEDGRID_LIBRARY")
    if folder:
        return Path(folder)
    import platformdirs

    return Path(platformdirs.user_data_dir("seedgrid", appauthor=False))


def is_public() -> bool:
    """Tell whether this page is public: on a Space, or by `SEEDGRID_PUBLIC`."""
    return "SPACE_ID" in os.environ or is_on("SEEDGRID_PUBLIC")


def is_on(name: str) -> bool:
    """Tell whether a variable is set to 1, true, yes or on."""
    return os.environ.get(name, "").lower() in _YES


def _names(variable: str) -> frozenset[str]:
    named = os.environ.get(variable, "").split(",")
    return frozenset(name.strip() for name in named) - {""}


def allowed_models() -> frozenset[str] | None:
    """Return the names in `SEEDGRID_ALLOWED_MODELS`; None if it is empty."""
    return _names("SEEDGRID_ALLOWED_MODELS") or None


def is_offered(*names: str) -> bool:
    """Tell whether visitors may use a model or LoRA of any of these names; at home always True."""
    allowed = allowed_models()
    return allowed is None or not is_public() or not allowed.isdisjoint(names)


def named_hosts() -> frozenset[str]:
    """Return the host names in `SEEDGRID_HOSTS`, in lower case."""
    return frozenset(name.lower() for name in _names("SEEDGRID_HOSTS"))


def models_folders() -> tuple[Path, ...]:
    """Return the folders in `SEEDGRID_MODELS`."""
    named = os.environ.get("SEEDGRID_MODELS", "").split(os.pathsep)
    return tuple(Path(folder) for folder in named if folder)


def is_zero_gpu() -> bool:
    """Tell whether this is a Space with ZeroGPU."""
    return is_on("SPACES_ZERO_GPU")


def number(name: str) -> float | None:
    """Return a limit above 0 from the environment, or its default; None means no limit."""
    own = _BY_NAME[name]
    default = own.public if is_public() and own.public is not None else own.home
    text = os.environ.get(name, "").strip() or default
    if not text or text.lower() == "none":
        return None
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise InputError("variable_number", field=name, value=text[:40])
    return found


def count(name: str) -> int | None:
    """Return a limit as a whole number, as `number` does; at least 1."""
    found = number(name)
    return None if found is None else max(1, int(found))


def megabytes(name: str) -> float | None:
    """Return a limit that is set in megabytes, as `number` does, in bytes."""
    found = number(name)
    return None if found is None else found * 1e6


def trusted_proxies() -> str:
    """Return the default of `FORWARDED_ALLOW_IPS`: the proxies of a Space, else none."""
    return _PRIVATE_NETWORKS if "SPACE_ID" in os.environ else ""


def as_table() -> str:
    """Return the table of docs/operations.md."""
    lines = ["| variable | what it is | at home | on a public page |", "|---|---|---|---|"]
    for each in VARIABLES:
        public = each.home if each.public is None else each.public
        cells = (f"`{each.name}`", each.what, each.home or "–", public or "–")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.stdout.write(as_table() + "\n")
