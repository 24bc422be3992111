"""The environment of a computation: set as a recipe and a placement say, described by a passport.

The determinism levels set torch's switches and put every one of them back. `off` touches nothing.
`seeded` turns off what may change from run to run or rounds more coarsely: cuDNN's autotuning and
TensorFloat-32. `strict` also demands deterministic algorithms and cuBLAS's deterministic workspace;
an operation that has no deterministic form then fails. diffusers' `enable_full_determinism` sets
much of this for good, and its `disable` twin restores only a part.

    with computing(recipe, placement):
        passport = current_passport(device, placement)
"""

import os
import platform
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib.metadata import version
from typing import Any, Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

import seedgrid
from seedgrid.core.errors import DeviceError, InputError
from seedgrid.core.recipe import Determinism, Passport, Recipe
from seedgrid.diffusion.backend import ATTENTION_NAMES, Placement, even_threads
from seedgrid.diffusion.processor import limits_in_force, processor_name

# Libraries read them once, at their start.
_LIMITS_AT_START: Final = limits_in_force(os.environ)

CUBLAS_VARIABLE: Final = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_VALUE: Final = ":16:8"
_DETERMINISTIC_CUBLAS: Final = (":16:8", ":4096:8")
_PRECISIONS: Final = ("none", "ieee", "tf32", "bf16", "highest", "high", "medium")
_SEEDED: Final[dict[str, Any]] = {
    # A recipe names its number format; autocast that a script around us has turned on does not.
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
_LEVELS: Final[dict[Determinism, dict[str, Any]]] = {
    "off": {},
    "seeded": _SEEDED,
    "strict": _SEEDED
    | {
        "cudnn_deterministic": True,
        "deterministic_algorithms": 2,  # 0 off, 1 warn, 2 raise
        "fill_uninitialized_memory": True,
    },
}
_KERNELS: Final = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}

_Switch = tuple[Callable[[], Any], Callable[[Any], Any]]  # How to read and set a switch of torch


@contextmanager
def computing(recipe: Recipe, placement: Placement) -> Iterator[None]:
    """Compute in the block with the recipe's and placement's switches, attention and threads.

    Raises `attention_unknown`, or as `determinism`.
    """
    if placement.attention not in ATTENTION_NAMES:
        choices = ", ".join(ATTENTION_NAMES)
        raise InputError(
            "attention_unknown", field="attention", value=placement.attention, choices=choices
        )
    kernel = _KERNELS.get(placement.attention)
    threads = torch.get_num_threads()
    with ExitStack() as stack:
        stack.enter_context(_restored(dict(placement.switches)))
        stack.enter_context(determinism("off" if recipe.is_portable else recipe.determinism))
        if kernel is not None:
            stack.enter_context(sdpa_kernel(kernel))
        stack.callback(torch.set_num_threads, threads)
        torch.set_num_threads(placement.threads or even_threads(threads))
        yield


@contextmanager
def determinism(level: Determinism) -> Iterator[None]:
    """Hold torch's switches at a level; afterwards each is what it was before.

    Raises `cublas_too_late`: `strict`, but CUDA was started without its workspace setting.
    """
    if level == "strict":
        _prepare_cublas()
    with _held(_LEVELS[level]):
        yield


@contextmanager
def _restored(texts: Mapping[str, str]) -> Iterator[None]:
    """Set switches to values that `in_force` returned once; unknown ones are left out."""
    now = {name: read() for name, (read, _) in _switches().items() if name in texts}
    with _held({name: _parsed(texts[name], like=value) for name, value in now.items()}):
        yield


@contextmanager
def _held(values: Mapping[str, Any]) -> Iterator[None]:
    """Set switches by their names, and put them back; None leaves one as it is."""
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


def _parsed(text: str, *, like: object) -> Any:
    """Return a switch's value from its text; its present value if the text is no such value."""
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(text, like)
    if isinstance(like, int):
        return int(text) if text in {"0", "1", "2"} else like
    return text if text in _PRECISIONS else like


def in_force() -> dict[str, str]:
    """Return every switch as it is now; with CUDA, also what cuBLAS was started with."""
    states = {name: str(read()).lower() for name, (read, _) in _switches().items()}
    if torch.cuda.is_available():
        states["cublas_workspace"] = os.environ.get(CUBLAS_VARIABLE, "not set")
    return states


def _prepare_cublas() -> None:
    """Set cuBLAS's workspace for good, if it is not too late: it is read once, when CUDA starts."""
    if not torch.cuda.is_available() or os.environ.get(CUBLAS_VARIABLE) in _DETERMINISTIC_CUBLAS:
        return
    if torch.cuda.is_initialized():
        raise DeviceError("cublas_too_late", value=os.environ.get(CUBLAS_VARIABLE, "not set"))
    os.environ[CUBLAS_VARIABLE] = CUBLAS_VALUE


def _switches() -> dict[str, _Switch]:
    """Return the switches by name; of float32's precision the older names before the newer.

    Since torch 2.9 (`fp32_precision`) reading older names raises while the two contradict each
    other; both are set, and put back, in this order, as setting an older one sets the newer, too.
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
        # These choose other code: oneDNN or torch's own kernels, autocast to another format.
        "onednn": _attribute(backends.mkldnn, "enabled"),
        **{
            f"autocast_{device}": (
                partial(torch.is_autocast_enabled, device),
                partial(torch.set_autocast_enabled, device),
            )
            for device in ("cpu", "cuda")
        },
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


def _quietly(call: Callable[..., Any]) -> Callable[..., Any]:
    """Call an older name of torch's, deprecated in 2.9; None where it contradicts the newer."""

    def quiet(*values: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return call(*values)
            except RuntimeError:
                return None

    return quiet


def current_passport(
    device: torch.device, placement: Placement, has_loras: bool = False, quantiser: str = ""
) -> Passport:
    """Describe the computation that would run now, inside `computing`: all that changes bits.

    `quantiser` is the library that keeps weights in fewer bits. Measured in docs/log.md.
    """
    switches = in_force()
    precision = {name: state for name, state in switches.items() if "precision" in name}
    precision["cudnn_tf32"] = switches.pop("cudnn_tf32")
    passport = Passport(
        seedgrid=seedgrid.__version__,
        python=platform.python_version(),
        torch=str(torch.__version__),
        diffusers=_version_of("diffusers"),
        transformers=_version_of("transformers"),
        device=str(device),
        device_name=_device_name(device),
        driver=_driver(device),
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
    extras = {"peft": _version_of("peft")} if has_loras else {}
    extras |= {quantiser: _version_of(quantiser)} if quantiser else {}
    return passport.model_copy(update=extras)


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    if device.type == "xpu":
        return str(torch.xpu.get_device_name(device))
    return processor_name()


@cache
def _version_of(library: str) -> str:
    """Read it once: each time takes milliseconds, of the fifty in which a known grid is shown."""
    return version(library)


def _driver(device: torch.device) -> str:
    """Return what the device's own libraries are: CUDA and cuDNN, or the CPU's oneDNN."""
    if device.type == "cuda":
        return f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"
    if device.type == "xpu":
        return f"XPU {torch.version.xpu}"
    if device.type == "mps":
        return f"macOS {platform.mac_ver()[0]}"
    return "oneDNN on" if torch.backends.mkldnn.is_available() else "oneDNN off"


def _attention(placement: Placement) -> str:
    """Return the attention of a placement, and which of torch's kernels it may use."""
    cuda = torch.backends.cuda
    kernels = {
        "flash": cuda.flash_sdp_enabled(),
        "efficient": cuda.mem_efficient_sdp_enabled(),
        "math": cuda.math_sdp_enabled(),
        "cudnn": cuda.cudnn_sdp_enabled(),
    }
    enabled = "+".join(name for name, on in kernels.items() if on)
    return f"{placement.attention} ({enabled})"
