"""Flip every public switch of torch, oneDNN, MKL, OpenMP and diffusers, one at a time.

    python -m tests.switches [NAME…]

Each is set in a process of its own, before SeedGrid paints four pictures with each of three small
models; bits are compared before they are rounded. What changes a bit must be told by the passport,
or SeedGrid must force it: otherwise the program ends with 1. It writes its table into docs/lock.md.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

ROOT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

PAGE: Final = ROOT / "docs" / "lock.md"
MODELS: Final = ("bundled", "flux", "ddpm-cifar10")
STEPS: Final = 3
START: Final = "<!-- switches: written by `python -m tests.switches` -->"
END: Final = "<!-- end of switches -->"

_backends: Any = torch.backends


def _set(owner: Any, name: str, value: Any) -> Callable[[], None]:
    return lambda: setattr(owner, name, value)


FLIPS: Final[dict[str, Callable[[], Any]]] = {
    "set_anomaly_enabled": lambda: torch.autograd.set_detect_anomaly(mode=True),
    "set_autocast_cache_enabled": lambda: torch.set_autocast_cache_enabled(False),
    "set_autocast_cpu_dtype": lambda: torch.set_autocast_dtype("cpu", torch.float16),
    "set_autocast_enabled": lambda: torch.set_autocast_enabled("cpu", True),
    "set_default_device": lambda: torch.set_default_device("cpu"),
    "set_default_dtype": lambda: torch.set_default_dtype(torch.float64),
    "set_deterministic_debug_mode": lambda: torch.set_deterministic_debug_mode("warn"),
    "set_float32_matmul_precision": lambda: torch.set_float32_matmul_precision("medium"),
    "set_flush_denormal": lambda: torch.set_flush_denormal(True),
    "set_grad_enabled": lambda: torch.set_grad_enabled(False),
    "set_num_interop_threads": lambda: torch.set_num_interop_threads(2),
    "set_num_threads(1)": lambda: torch.set_num_threads(1),
    "set_rng_state": lambda: torch.set_rng_state(torch.Generator("cpu").get_state()),
    "set_warn_always": lambda: torch.set_warn_always(True),
    "use_deterministic_algorithms": lambda: torch.use_deterministic_algorithms(True),
    "utils.deterministic.fill_uninitialized_memory": _set(
        torch.utils.deterministic, "fill_uninitialized_memory", False
    ),
    "backends.fp32_precision": _set(_backends, "fp32_precision", "bf16"),
    "backends.cuda.matmul.allow_tf32": _set(_backends.cuda.matmul, "allow_tf32", True),
    "backends.cuda.matmul.allow_fp16_reduced_precision_reduction": _set(
        _backends.cuda.matmul, "allow_fp16_reduced_precision_reduction", False
    ),
    "backends.cuda.matmul.allow_bf16_reduced_precision_reduction": _set(
        _backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False
    ),
    "backends.cuda.allow_fp16_bf16_reduction_math_sdp": lambda: (
        _backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    ),
    "backends.cuda.enable_flash_sdp": lambda: _backends.cuda.enable_flash_sdp(False),
    "backends.cuda.enable_math_sdp": lambda: _backends.cuda.enable_math_sdp(False),
    "backends.cuda.enable_mem_efficient_sdp": lambda: _backends.cuda.enable_mem_efficient_sdp(
        False
    ),
    "backends.cuda.enable_cudnn_sdp": lambda: _backends.cuda.enable_cudnn_sdp(False),
    "backends.cudnn.enabled": _set(_backends.cudnn, "enabled", False),
    "backends.cudnn.benchmark": _set(_backends.cudnn, "benchmark", True),
    "backends.cudnn.deterministic": _set(_backends.cudnn, "deterministic", True),
    "backends.cudnn.allow_tf32": _set(_backends.cudnn, "allow_tf32", False),
    "backends.mha.set_fastpath_enabled": lambda: _backends.mha.set_fastpath_enabled(False),
    "backends.mkldnn.enabled": _set(_backends.mkldnn, "enabled", False),
    "backends.mkldnn.deterministic": _set(_backends.mkldnn, "deterministic", True),
    "backends.mkldnn.fp32_precision": _set(_backends.mkldnn, "fp32_precision", "bf16"),
    "backends.mkldnn.matmul.fp32_precision": _set(
        _backends.mkldnn.matmul, "fp32_precision", "bf16"
    ),
    "backends.mkldnn.conv.fp32_precision": _set(_backends.mkldnn.conv, "fp32_precision", "bf16"),
    "backends.mkldnn.rnn.fp32_precision": _set(_backends.mkldnn.rnn, "fp32_precision", "bf16"),
    "backends.nnpack.set_flags": lambda: _backends.nnpack.set_flags(False),
    "backends.opt_einsum.enabled": _set(_backends.opt_einsum, "enabled", False),
    "backends.quantized.engine": _set(_backends.quantized, "engine", "none"),
    "backends.mkl.verbose": lambda: None,
}
"""Switches of `torch`, each with what turns it to where it usually is not."""

ASIDE: Final[dict[str, str]] = {
    "set_autocast_cpu_enabled": "older name of set_autocast_enabled",
    "set_autocast_dtype": "as set_autocast_cpu_dtype",
    "set_autocast_gpu_dtype": "no such device",
    "set_autocast_ipu_dtype": "no such device",
    "set_autocast_ipu_enabled": "no such device",
    "set_autocast_xla_dtype": "no such device",
    "set_autocast_xla_enabled": "no such device",
    "set_default_tensor_type": "older name of set_default_dtype",
    "set_num_threads": "as set_num_threads(1)",
    "set_printoptions": "only prints",
}
"""`torch.set_…` that is not flipped, and why."""

ENVIRONMENT: Final[tuple[tuple[str, str], ...]] = (
    ("ATEN_CPU_CAPABILITY", "default"),
    ("ATEN_CPU_CAPABILITY", "avx2"),
    ("ONEDNN_MAX_CPU_ISA", "SSE41"),
    ("ONEDNN_MAX_CPU_ISA", "AVX2"),
    ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE"),
    ("DNNL_MAX_CPU_ISA", "AVX2"),
    ("ONEDNN_CPU_ISA_HINTS", "PREFER_YMM"),
    ("DNNL_CPU_ISA_HINTS", "PREFER_YMM"),
    ("ONEDNN_DEFAULT_FPMATH_MODE", "BF16"),
    ("DNNL_DEFAULT_FPMATH_MODE", "BF16"),
    ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "0"),
    ("ONEDNN_VERBOSE", "0"),
    ("LRU_CACHE_CAPACITY", "1"),
    ("MKL_CBWR", "COMPATIBLE"),
    ("MKL_CBWR", "AVX2"),
    ("MKL_ENABLE_INSTRUCTIONS", "AVX2"),
    ("MKL_DEBUG_CPU_TYPE", "5"),
    ("MKL_DYNAMIC", "FALSE"),
    ("MKL_NUM_THREADS", "1"),
    ("MKL_THREADING_LAYER", "SEQUENTIAL"),
    ("OMP_NUM_THREADS", "1"),
    ("OMP_DYNAMIC", "TRUE"),
    ("OMP_SCHEDULE", "dynamic,1"),
    ("OMP_PROC_BIND", "TRUE"),
    ("OMP_WAIT_POLICY", "PASSIVE"),
    ("OMP_THREAD_LIMIT", "1"),
    ("TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "1"),
    ("THP_MEM_ALLOC_ENABLE", "1"),
    ("PYTHONHASHSEED", "1"),
    ("NPY_DISABLE_CPU_FEATURES", "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"),
    ("DIFFUSERS_ATTN_BACKEND", "_native_math"),
    ("DIFFUSERS_ATTN_BACKEND", "flex"),
    ("DIFFUSERS_ATTN_CHECKS", "1"),
    ("DIFFUSERS_SLOW_IMPORT", "1"),
    ("HF_ENABLE_PARALLEL_LOADING", "1"),
    ("LRU_CACHE_CAPACITY", "0"),
    ("MKL_PROGRESS", "1"),
    ("MKL_MPI_PPN", "2"),
    ("MKL_DOMAIN_NUM_THREADS", "MKL_DOMAIN_ALL=1"),
    ("BLAS_INFH", "1"),
    ("DNNL_GRAPH_COMPILED_PARTITION_CACHE_CAPACITY", "0"),
    ("FBGEMM_ENABLE_AVX512_256", "1"),
    ("FBGEMM_FORCE_AUTOVEC", "1"),
    ("FBGEMM_NO_AUTOVEC", "1"),
    ("ONEDNN_CACHE_CONTEXT_UNSAFE", "1"),
    ("TORCHDYNAMO_DISABLE", "1"),
    ("TORCH_COMPILE_DISABLE", "1"),
    ("TORCHINDUCTOR_FREEZING", "1"),
    ("TORCHINDUCTOR_EMULATE_PRECISION_CASTS", "1"),
    ("TORCH_DEVICE_BACKEND_AUTOLOAD", "0"),
    ("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1"),
    ("TORCH_LOGS", "+dynamo"),
    ("PYTORCH_ENABLE_MPS_FALLBACK", "1"),
    ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
    ("OMP_WAIT_POLICY", "ACTIVE"),
    ("OMP_SCHEDULE", "static,1"),
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_TOP_PAD_", "65536"),
    ("MALLOC_PERTURB_", "165"),
    ("LD_BIND_NOW", "1"),
    ("NUMEXPR_NUM_THREADS", "1"),
    ("VECLIB_MAXIMUM_THREADS", "1"),
    ("OPENBLAS_CORETYPE", "Haswell"),
    ("LC_ALL", "de_DE.UTF-8"),
    ("TZ", "Asia/Tokyo"),
    ("PYTHONMALLOC", "malloc"),
    ("PYTHONOPTIMIZE", "1"),
    ("PYTHONOPTIMIZE", "2"),
)


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one process painted.

    Attributes:
        bits: By model: the SHA-256 of the pictures before they were rounded, or the error.
        sizes: By model, against the usual run: the largest difference of 255, and the share of
            pixels that differ at all.
        passports: By model.
    """

    bits: dict[str, str]
    passports: dict[str, dict[str, Any]]
    sizes: dict[str, tuple[int, float]] = field(default_factory=dict)


def paint(folder: Path, flip: str | None, into: Path) -> None:
    """Paint with every model in this process, with one switch flipped; write what came out."""
    from painting import SilentWatch, recipes_for

    from seedgrid.core.errors import SeedGridError
    from seedgrid.diffusion import diffusers_backend, pipeline_call
    from seedgrid.diffusion.backend import Placement

    if flip is not None:
        FLIPS[flip]()
    raw: list[bytes] = []
    rounded = pipeline_call.to_pixels

    def listening(images: torch.Tensor) -> Any:
        raw.append(images.detach().float().cpu().numpy().tobytes())
        return rounded(images)

    pipeline_call.to_pixels = listening
    bits, passports = {}, {}
    for name in MODELS:
        backend = diffusers_backend.DiffusersBackend()
        raw.clear()
        try:
            model = Path(name) if name == "bundled" else folder / name
            recipes = recipes_for(backend, model, num_inference_steps=STEPS)
            placement = Placement(previews=False)
            passports[name] = backend.prepare(recipes[0], placement).model_dump(mode="json")
            pictures = backend.paint(recipes, placement, SilentWatch())
        except (SeedGridError, RuntimeError, ValueError, TypeError) as error:
            bits[name] = f"error: {type(error).__name__}: {str(error).splitlines()[0][:80]}"
            continue
        bits[name] = hashlib.sha256(b"".join(raw)).hexdigest()
        np.save(into / f"{name}.npy", np.stack(pictures))
        backend.close()
    (into / "found.json").write_text(json.dumps({"bits": bits, "passports": passports}))


def run(folder: Path, what: str, flip: str | None, environment: dict[str, str]) -> Found:
    """Paint in a new process: another one reads its environment anew."""
    into = folder / "out" / hashlib.sha256(what.encode()).hexdigest()[:12]
    into.mkdir(parents=True)
    command = [sys.executable, "-W", "ignore", "-m", "tests.switches", "--paint"]
    done = subprocess.run(
        [*command, str(folder), flip or "-", str(into)],
        cwd=ROOT,
        env={**os.environ, "SEEDGRID_CACHE": str(folder / "cache"), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1][:80]
        return Found(bits=dict.fromkeys(MODELS, f"error: {said}"), passports={})
    data = json.loads((into / "found.json").read_text())
    usual = folder / "out" / hashlib.sha256(b"usual").hexdigest()[:12]
    sizes = {name: _size(usual / f"{name}.npy", into / f"{name}.npy") for name in MODELS}
    return Found(**data, sizes={name: size for name, size in sizes.items() if size})


def _size(one: Path, other: Path) -> tuple[int, float] | None:
    if not (one.exists() and other.exists()):
        return None
    before, after = (np.load(path, allow_pickle=False).astype(int) for path in (one, other))
    distance = np.abs(before - after)
    return int(distance.max()), float(distance.any(axis=-1).mean())


def told(usual: Found, other: Found) -> list[str]:
    """Return the fields of the passport that differ."""
    names: set[str] = set()
    for model, passport in other.passports.items():
        before = usual.passports.get(model, {})
        names |= {name for name in before | passport if before.get(name) != passport.get(name)}
    return sorted(names)


def row(what: str, usual: Found, other: Found) -> tuple[str, bool]:
    """Return a line of the table, and whether the switch changed a bit without being told."""
    cells = []
    changed = False
    for name in MODELS:
        bits = other.bits.get(name, "error")
        if bits.startswith("error"):
            cells.append("refused")
        elif bits == usual.bits[name]:
            cells.append("0")
        else:
            changed = True
            largest, share = other.sizes[name]
            cells.append(f"{largest} in {share:.2%}")
    names = told(usual, other)
    said = ", ".join(f"`{name}`" for name in names) or ("**not told**" if changed else "·")
    return f"| {what} | {' | '.join(cells)} | {said} |", changed and not names


def main(wanted: list[str]) -> int:
    """Flip all, or those whose names hold one of these words; return the exit status."""
    from pipelines import save

    with tempfile.TemporaryDirectory(prefix="seedgrid-switches-") as root:
        folder = Path(root)
        for name in MODELS[1:]:
            save(name, folder / name)
        usual = run(folder, "usual", None, {})
        lines, missed = [], []
        work = [(f"`torch.{name}`", name, {}) for name in FLIPS]
        work += [(f"`{name}={value}`", None, {name: value}) for name, value in ENVIRONMENT]
        again: tuple[str, None, dict[str, str]] = ("the same again", None, {})
        for what, flip, environment in [again, *work]:
            if wanted and not any(word in what for word in wanted):
                continue
            line, is_missed = row(what, usual, run(folder, what, flip, environment))
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            lines.append(line)
            missed += [what] if is_missed else []
    if not wanted:
        write(lines)
    sys.stdout.write(f"changed bits and are not told: {', '.join(missed) or 'none'}\n")
    return 1 if missed else 0


def write(lines: list[str]) -> None:
    """Put the table into docs/lock.md, in place of the one before, and name what does nothing."""
    silent = f"{' | 0' * len(MODELS)} | · |"
    harmless = [line.removesuffix(silent)[2:] for line in lines if line.endswith(silent)]
    lines = [line for line in lines if not line.endswith(silent)]
    head = ["| switch | " + " | ".join(MODELS) + " | told by |", "|---" * (len(MODELS) + 2) + "|"]
    lines += ["", f"No bit, and told nowhere ({len(harmless)}): {', '.join(harmless)}."]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(START)
    after = rest.partition(END)[2]
    table = "\n".join([START, "", *head, *lines, "", END])
    PAGE.write_text(before + table + after, encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--paint"]:
        paint(Path(sys.argv[2]), None if sys.argv[3] == "-" else sys.argv[3], Path(sys.argv[4]))
    else:
        sys.exit(main(sys.argv[1:]))
