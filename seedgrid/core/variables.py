"""Reads environment variables: models, folders, limits, whether the page is public.

docs/operations.md says what each variable means; a test compares it with the code.
"""

import os
from pathlib import Path
from typing import Final

from seedgrid.core.errors import InputError

_YES: Final = ("1", "true", "yes", "on")


# The reverse proxies of a Hugging Face Space have private addresses, but not loopback ones.
_PRIVATE_NETWORKS: Final = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10"

# By variable: the default on one's own machine and on a public page; None is no limit
LIMITS: Final[dict[str, tuple[float | None, float | None]]] = {
    "SEEDGRID_MAX_QUEUE_S": (None, 1800),
    "SEEDGRID_MAX_RUN_S": (None, 600),
    "SEEDGRID_MAX_RUNS_PER_VISITOR": (2, 2),
    "SEEDGRID_MAX_RUNS_PER_ADDRESS": (None, 6),
    "SEEDGRID_MAX_VISITORS": (None, 1000),
    "SEEDGRID_MAX_VISITORS_MB": (None, 4000),
    "SEEDGRID_MAX_UPLOAD_MB": (1000, 64),
    "SEEDGRID_MAX_UPLOADS_MB": (None, 1000),
    "SEEDGRID_WAY_MB": (256, 256),
    "SEEDGRID_MAX_UNPACKED_MB": (2000, 200),
    "SEEDGRID_MAX_DROPPED": (None, 200),
    "SEEDGRID_MAX_DOWNLOAD_MB": (None, 500),
    "SEEDGRID_MAX_FILES_PER_ADDRESS": (None, 4),
    "SEEDGRID_MAX_FILES_S_PER_ADDRESS": (None, 120),
}


def default_model() -> str:
    """Return the model that the environment names, else the bundled one."""
    return os.environ.get("SEEDGRID_MODEL") or "bundled"


def default_library() -> Path:
    """Return the folder that the environment names, else the system's folder for user data."""
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
    """Tell whether this page offers any of these names; always if not public or without a list."""
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
    text = os.environ.get(name, "").strip()
    if not text:
        return LIMITS[name][is_public()]
    if text.lower() == "none":
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
