"""torch's global settings during a computation, and the passport that describes them.

A recipe's determinism level `off` changes no setting. `seeded` turns off cuDNN's autotuning, which
may choose other kernels from run to run, and TensorFloat-32, which rounds more coarsely. `strict`
also turns on torch's deterministic algorithms, and cuBLAS's deterministic workspace; an operation
without a deterministic algorithm then raises an error.
"""

import os
import platform
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import seedgrid
from seedgrid.core.errors import DeviceError, InputError
from seedgrid.core.recipe import Determinism, Passport, Recipe
from seedgrid.diffusion.backend import ATTENTION_NAMES, Placement, even_threads
from seedgrid.diffusion.process import limits_in_force, processor_name

_LIMITS_AT_START: Final = limits_in_force(os.environ)  # Libraries read these variables once

CUBLAS_VARIABLE: Final = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_VALUE: Final = ":16:8"
_DETERMINISTIC_CUBLAS: Final = (":16:8", ":4096:8")
_PRECISIONS: Final = ("none", "ieee", "tf32", "bf16", "highest", "high", "medium")
_SWITCH_VALUES: Final[dict[str, Any]] = {  # Values by their texts in passports
    str(value).lower(): value for value in (True, False, 0, 1, 2, *_PRECISIONS)
}
_SEEDED: Final[dict[str, Any]] = {
    # The recipe decides the number format, but a calling script may have turned autocast on.
    "autocast_cpu": False,
    "autocast_cuda": False,
    "cudnn_benchmark": False,
    "float32_matmul_precision": "highest",
    "cudnn_tf32": False,
    "matmul_precision": "ieee",
    "cudnn_conv_precision": "ieee",
    "cudnn_rnn_precision": "ieee",
    "onednn_matmul_precision": "ieee",
    "onednn_conv_precision": "ieee",
}
_STRICT: Final[dict[str, Any]] = {
    **_SEEDED,
    "cudnn_deterministic": True,
    "deterministic_algorithms": 2,  # 0 off, 1 warn, 2 raise
    "fill_uninitialized_memory": True,
}
_LEVELS: Final = {"off": {}, "seeded": _SEEDED, "strict": _STRICT}
_KERNELS: Final = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}

_Switch = tuple[Callable[[], Any], Callable[[Any], Any]]  # Reads and sets a global setting of torch


@contextmanager
def torch_settings(recipe: Recipe, placement: Placement) -> Iterator[None]:
    """Set switches, attention kernel and threads for a recipe and a placement in the block.

    Raises `attention_unknown`, and what `determinism` raises.
    """
    if (attention := placement.attention) not in ATTENTION_NAMES:
        choices = ", ".join(ATTENTION_NAMES)
        raise InputError("attention_unknown", field="attention", value=attention, choices=choices)
    threads = torch.get_num_threads()
    with (
        _switched(_values_of(dict(placement.switches))),
        determinism("off" if recipe.is_portable else recipe.determinism),
        sdpa_kernel(_KERNELS[attention]) if attention in _KERNELS else nullcontext(),
    ):
        torch.set_num_threads(placement.threads or even_threads(threads))
        try:
            yield
        finally:
            torch.set_num_threads(threads)


@contextmanager
def determinism(level: Determinism) -> Iterator[None]:
    """Set torch's switches to a level in the block; afterwards each is what it was before.

    Raises `cublas_too_late` for `strict` if CUDA was started without cuBLAS's workspace setting.
    """
    if level == "strict":
        _prepare_cublas()
    with _switched(_LEVELS[level]):
        yield


@contextmanager
def _switched(values: Mapping[str, Any]) -> Iterator[None]:
    """Set switches by their names in the block, then restore them; None changes nothing."""
    switches = {name: switch for name, switch in _switches().items() if name in values}
    before = {name: read() for name, (read, _) in switches.items()}
    try:
        for name, (_, write) in switches.items():
            if values[name] is not None:
                write(values[name])
        yield
    finally:
        for name, (_, write) in switches.items():
            if before[name] is not None:
                write(before[name])


def _values_of(texts: Mapping[str, str]) -> dict[str, Any]:
    """Return switches' values from a passport's texts; None if a text does not fit a switch."""
    current = {name: read() for name, (read, _) in _switches().items() if name in texts}
    values = {name: _SWITCH_VALUES.get(texts[name]) for name in current}
    return {name: v if type(v) is type(current[name]) else None for name, v in values.items()}


def current_switches() -> dict[str, str]:
    """Return the current text of every switch; with CUDA, also of cuBLAS's workspace setting."""
    states = {name: str(read()).lower() for name, (read, _) in _switches().items()}
    if torch.cuda.is_available():
        states["cublas_workspace"] = os.environ.get(CUBLAS_VARIABLE, "not set")
    return states


def _prepare_cublas() -> None:
    """Set cuBLAS's workspace for this process; raise if CUDA, which reads it once, has started."""
    if not torch.cuda.is_available() or os.environ.get(CUBLAS_VARIABLE) in _DETERMINISTIC_CUBLAS:
        return
    if torch.cuda.is_initialized():
        raise DeviceError("cublas_too_late", value=os.environ.get(CUBLAS_VARIABLE, "not set"))
    os.environ[CUBLAS_VARIABLE] = CUBLAS_VALUE


def _switches() -> dict[str, _Switch]:
    """Return how to read and set each switch, by name, in the order in which they must be set.

    Since torch 2.9 precisions have an older and a newer switch (`newer`). Setting the older one
    also sets the newer, so the older come first. Reading the older raises while the two differ.
    """
    backends: Any = torch.backends
    read_tf32, write_tf32 = _attribute(backends.cudnn, "allow_tf32")
    switches: dict[str, _Switch] = {
        "deterministic_algorithms": (
            torch.get_deterministic_debug_mode,
            torch.set_deterministic_debug_mode,
        ),
        "fill_uninitialized_memory": _attribute(
            torch.utils.deterministic, "fill_uninitialized_memory"
        ),
        "onednn": _attribute(backends.mkldnn, "enabled"),
        "autocast_cpu": _autocast("cpu"),
        "autocast_cuda": _autocast("cuda"),
        "cudnn_benchmark": _attribute(backends.cudnn, "benchmark"),
        "cudnn_deterministic": _attribute(backends.cudnn, "deterministic"),
        "float32_matmul_precision": (
            _quietly(torch.get_float32_matmul_precision),
            _quietly(torch.set_float32_matmul_precision),
        ),
        "cudnn_tf32": (_quietly(read_tf32), _quietly(write_tf32)),
    }
    if not hasattr(backends.cudnn, "conv"):
        return switches
    newer = {
        "matmul_precision": backends.cuda.matmul,
        "cudnn_conv_precision": backends.cudnn.conv,
        "cudnn_rnn_precision": backends.cudnn.rnn,
        "onednn_matmul_precision": backends.mkldnn.matmul,
        "onednn_conv_precision": backends.mkldnn.conv,
    }
    return switches | {name: _attribute(owner, "fp32_precision") for name, owner in newer.items()}


def _attribute(owner: Any, name: str) -> _Switch:
    return partial(getattr, owner, name), partial(setattr, owner, name)


def _autocast(device: str) -> _Switch:
    return partial(torch.is_autocast_enabled, device), partial(torch.set_autocast_enabled, device)


def _quietly(call: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a deprecated function of torch: no warnings, and None instead of a RuntimeError."""

    def quiet(*values: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return call(*values)
            except RuntimeError:
                return None

    return quiet


def current_passport(
    device: torch.device, placement: Placement, libraries: Iterable[str] = ()
) -> Passport:
    """Return the passport of a computation that begins now: the settings that may change bits.

    Call this in `torch_settings`. `libraries` are other libraries, whose versions are recorded.
    """
    switches = current_switches()
    precision = {name: state for name, state in switches.items() if "precision" in name}
    precision["cudnn_tf32"] = switches.pop("cudnn_tf32")
    device_name, driver = _name_and_driver(device)
    passport = Passport(
        seedgrid=seedgrid.__version__,
        python=platform.python_version(),
        torch=str(torch.__version__),
        diffusers=_version_of("diffusers"),
        transformers=_version_of("transformers"),
        device=str(device),
        device_name=device_name,
        driver=driver,
        cpu_capability=torch.backends.cpu.get_cpu_capability(),
        instruction_limits=_LIMITS_AT_START,
        threads=torch.get_num_threads(),
        precision=precision,
        attention=_attention(placement),
        memory_format="channels_last" if placement.channels_last else "contiguous",
        offload=placement.offload,
        vae_slicing=placement.vae_slicing,
        vae_tiling=placement.vae_tiling,
        determinism={name: state for name, state in switches.items() if name not in precision},
    )
    return passport.model_copy(update={name: _version_of(name) for name in libraries})


_version_of = cache(version)  # Without the cache each call reads files, for milliseconds


def _name_and_driver(device: torch.device) -> tuple[str, str]:
    """Return a device's name, and the versions of the libraries that compute on it."""
    match device.type:
        case "cuda":
            driver = f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
            return torch.cuda.get_device_name(device), driver
        case "xpu":
            return str(torch.xpu.get_device_name(device)), f"XPU {torch.version.xpu}"
        case "mps":
            return processor_name(), f"macOS {platform.mac_ver()[0]}"
    has_onednn = torch.backends.mkldnn.is_available()
    return processor_name(), "oneDNN on" if has_onednn else "oneDNN off"


def _attention(placement: Placement) -> str:
    """Return a placement's attention, followed by the kernels that torch may choose from."""
    cuda = torch.backends.cuda
    kernels = {
        "flash": cuda.flash_sdp_enabled(),
        "efficient": cuda.mem_efficient_sdp_enabled(),
        "math": cuda.math_sdp_enabled(),
        "cudnn": cuda.cudnn_sdp_enabled(),
    }
    enabled = "+".join(name for name, is_enabled in kernels.items() if is_enabled)
    return f"{placement.attention} ({enabled})"
