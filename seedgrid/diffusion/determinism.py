"""The determinism levels as a context that sets torch's switches and puts every one of them back.

`off` touches nothing. `seeded` turns off what may change from run to run or rounds more coarsely:
cuDNN's autotuning and TensorFloat-32. `strict` also demands deterministic algorithms and the
workspace that makes cuBLAS deterministic; an operation that has no deterministic form then fails
rather than differ. Seeds are honoured at every level. diffusers' own `enable_full_determinism`
sets much of this for good, and its `disable` twin restores only a part.

`computing` does all that a recipe and a placement ask for: this, threads, torch's attention.

    with determinism("strict"):
        ...
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from seedgrid.core.errors import DeviceError, InputError
from seedgrid.core.recipe import Determinism, Recipe
from seedgrid.diffusion.backend import ATTENTION_NAMES, Placement, even_threads

CUBLAS_VARIABLE: Final = "CUBLAS_WORKSPACE_CONFIG"
CUBLAS_VALUE: Final = ":16:8"
_PRECISIONS: Final = ("none", "ieee", "tf32", "bf16", "highest", "high", "medium")
_CUBLAS_HOLDS: Final = (":16:8", ":4096:8")


@dataclass(frozen=True, kw_only=True)
class Switch:
    """One of torch's global switches, by name, with the way to read and to set it."""

    name: str
    read: Callable[[], Any]
    set: Callable[[Any], None]


@contextmanager
def determinism(level: Determinism) -> Iterator[None]:
    """Hold torch's switches at a level; on the way out each is what it was before.

    Raises:
        DeviceError: `cublas_too_late`: strict on a GPU was asked for when CUDA had been started
            already without the workspace setting that strict needs.
    """
    if level == "strict":
        prepare_cublas()
    with _held(_LEVELS[level]):
        yield


@contextmanager
def restored(states: Sequence[tuple[str, str]]) -> Iterator[None]:
    """Set switches as `in_force` once told them, and put them back; strange ones are left out."""
    texts = dict(states)
    now = {switch.name: switch.read() for switch in _switches() if switch.name in texts}
    with _held({name: _parsed(texts[name], like=value) for name, value in now.items()}):
        yield


@contextmanager
def _held(values: Mapping[str, Any]) -> Iterator[None]:
    """Set switches by their names, and put them back; None leaves one as it is."""
    before = [(switch, switch.read()) for switch in _switches() if switch.name in values]
    try:
        for switch, _ in before:
            if values[switch.name] is not None:
                switch.set(values[switch.name])
        yield
    finally:
        for switch, value in before:
            if value is not None:
                switch.set(value)


def _parsed(text: str, *, like: object) -> Any:
    """Return a switch's value from its text; the one it has where that is none of its kind."""
    if isinstance(like, bool):
        return {"true": True, "false": False}.get(text, like)
    if isinstance(like, int):
        return int(text) if text in {"0", "1", "2"} else like
    return text if text in _PRECISIONS else like


def in_force() -> dict[str, str]:
    """Return every switch as it is at this moment; with CUDA, what cuBLAS was started with too."""
    states = {switch.name: str(switch.read()).lower() for switch in _switches()}
    if torch.cuda.is_available():
        states["cublas_workspace"] = os.environ.get(CUBLAS_VARIABLE, "not set")
    return states


def prepare_cublas() -> None:
    """Set the workspace of cuBLAS that deterministic algorithms need, if it is not too late.

    cuBLAS reads it once, when CUDA starts, so it belongs to the process and is not put back.
    """
    if not torch.cuda.is_available() or os.environ.get(CUBLAS_VARIABLE) in _CUBLAS_HOLDS:
        return
    if torch.cuda.is_initialized():
        raise DeviceError("cublas_too_late", value=os.environ.get(CUBLAS_VARIABLE, "not set"))
    os.environ[CUBLAS_VARIABLE] = CUBLAS_VALUE


def _switches() -> list[Switch]:
    backends: Any = torch.backends
    return [
        Switch(
            name="deterministic_algorithms",
            read=torch.get_deterministic_debug_mode,
            set=torch.set_deterministic_debug_mode,
        ),
        _attribute(
            "fill_uninitialized_memory", torch.utils.deterministic, "fill_uninitialized_memory"
        ),
        # What chooses other code: oneDNN or torch's own kernels, autocast to another format.
        _attribute("onednn", backends.mkldnn, "enabled"),
        *map(_autocast, _AUTOCAST),
        _attribute("cudnn_benchmark", backends.cudnn, "benchmark"),
        _attribute("cudnn_deterministic", backends.cudnn, "deterministic"),
        *_precision_switches(backends),
    ]


def _precision_switches(backends: Any) -> list[Switch]:
    """Return the precision of float32 arithmetic: the older names first, then the newer.

    torch 2.9 and newer have `fp32_precision` for each backend and operation, and raise when the
    older names are read while the two contradict each other; so both are set, and put back, in
    this order, because setting an older one also sets the newer.
    """
    older = [
        Switch(
            name="float32_matmul_precision",
            read=_quietly(torch.get_float32_matmul_precision),
            set=_quietly(torch.set_float32_matmul_precision),
        ),
        Switch(
            name="cudnn_tf32",
            read=_quietly(lambda: backends.cudnn.allow_tf32),
            set=_quietly(lambda value: setattr(backends.cudnn, "allow_tf32", value)),
        ),
    ]
    if not hasattr(backends.cudnn, "conv"):
        return older
    newer = {
        "matmul_precision": backends.cuda.matmul,
        "cudnn_conv_precision": backends.cudnn.conv,
        "cudnn_rnn_precision": backends.cudnn.rnn,
        "onednn_matmul_precision": backends.mkldnn.matmul,
        "onednn_conv_precision": backends.mkldnn.conv,
    }
    return older + [_attribute(name, owner, "fp32_precision") for name, owner in newer.items()]


def _attribute(name: str, owner: Any, attribute: str) -> Switch:
    return Switch(
        name=name,
        read=lambda: getattr(owner, attribute),
        set=lambda value: setattr(owner, attribute, value),
    )


def _autocast(device: str) -> Switch:
    return Switch(
        name=f"autocast_{device}",
        read=lambda: torch.is_autocast_enabled(device),
        set=lambda value: torch.set_autocast_enabled(device, value),
    )


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


_AUTOCAST: Final = ("cpu", "cuda")
_SEEDED: Final[dict[str, Any]] = {
    # A recipe names its number format; what a script around us has turned on is not in it.
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
_STRICT: Final[dict[str, Any]] = _SEEDED | {
    "cudnn_deterministic": True,
    "deterministic_algorithms": 2,  # 0 off, 1 warn, 2 raise
    "fill_uninitialized_memory": True,
}
_LEVELS: Final[dict[Determinism, dict[str, Any]]] = {
    "off": {},
    "seeded": _SEEDED,
    "strict": _STRICT,
}
_KERNELS: Final = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@contextmanager
def computing(recipe: Recipe, placement: Placement) -> Iterator[None]:
    """Compute in the block as a recipe and a placement say.

    Raises:
        InputError: `attention_unknown`.
        DeviceError: As `determinism`.
    """
    if placement.attention not in ATTENTION_NAMES:
        choices = ", ".join(ATTENTION_NAMES)
        raise InputError(
            "attention_unknown", field="attention", value=placement.attention, choices=choices
        )
    kernel = _KERNELS.get(placement.attention)
    threads = torch.get_num_threads()
    with ExitStack() as stack:
        stack.enter_context(restored(placement.switches))
        stack.enter_context(determinism("off" if recipe.is_portable else recipe.determinism))
        if kernel is not None:
            stack.enter_context(sdpa_kernel(kernel))
        stack.callback(torch.set_num_threads, threads)
        torch.set_num_threads(placement.threads or even_threads(threads))
        yield
