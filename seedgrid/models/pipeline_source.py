"""Reads a pipeline class of diffusers from its source, without importing it.

The parameters of `__call__`, the components of `__init__` and the returned fields nearly suffice to
call a pipeline that `_ROWS` of `families.py` does not list.
"""

import ast
import contextlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

_CLASS: Final = re.compile(r"^class (\w+)\(", re.MULTILINE)
_SAMPLE_SIZE: Final = re.compile(r"self\.default_sample_size = (\d+)$", re.MULTILINE)
_SETS_SIGMAS: Final = re.compile(r"^\s+sigmas = ", re.MULTILINE)
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class PipelineSource:
    """One pipeline class."""

    parameters: Mapping[str, Any]  # Of `__call__`, with their literal defaults, else None
    required: tuple[str, ...]  # Parameters without a default
    components: Mapping[str, tuple[str, ...]]  # Of `__init__`, with the names of their classes
    outputs: frozenset[str]  # The fields that the call returns: `images`, `frames`, `audios`
    default_sample_size: int | None  # Set by `__init__`, in latent pixels
    needs_own_scheduler: bool  # Whether it passes noise levels, which only its own scheduler takes
    can_mix_noise: bool  # Whether it draws its noise in `prepare_latents`
    passes_mu: bool  # Whether it passes a shift, `mu`, which some models' other schedulers refuse


@cache
def read_pipeline(name: str) -> PipelineSource | None:
    """Read a pipeline class by its name; None if the installed diffusers has no such pipeline."""
    path = _source_files().get(name)
    if path is None:
        return None
    tree = ast.parse(path.read_text(encoding="utf-8"))
    owner = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    methods = {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}
    call, init = methods.get("__call__"), methods.get("__init__")
    if call is None or init is None:
        return None
    arguments = [each.arg for each in call.args.args[1:]]
    required = arguments[: len(arguments) - len(call.args.defaults)]
    defaults = zip(arguments[len(required) :], map(_value, call.args.defaults), strict=True)
    code = ast.unparse(call)
    returned = [node.value for node in ast.walk(call) if isinstance(node, ast.Return)]
    calls = [value for value in returned if isinstance(value, ast.Call)]
    sample_size = _SAMPLE_SIZE.search(ast.unparse(init))
    return PipelineSource(
        parameters=dict.fromkeys(required) | dict(defaults),
        required=tuple(required),
        components={
            each.arg: tuple(_WORD.findall(ast.unparse(each.annotation) if each.annotation else ""))
            for each in init.args.args[1:]
        },
        outputs=frozenset(each.arg for call in calls for each in call.keywords if each.arg),
        default_sample_size=int(sample_size[1]) if sample_size else None,
        needs_own_scheduler=bool(_SETS_SIGMAS.search(code)) and "use_flow_sigmas" not in code,
        can_mix_noise="prepare_latents" in methods,
        passes_mu="mu=mu" in code,
    )


@cache
def begins_from_picture(name: str) -> str:
    """Return the name of diffusers' image-to-image form of a pipeline; empty if there is none."""
    path = package_folder() / "pipelines" / "auto_pipeline.py"
    table = path.read_text(encoding="utf-8")
    renamed = name.replace("Pipeline", "Img2ImgPipeline")
    entries = table.partition("AUTO_IMAGE2IMAGE_PIPELINES_MAPPING =")[2].partition("\n)\n")[0]
    optional = re.findall(r'IMAGE2IMAGE_PIPELINES_MAPPING\["\w+"\] = (\w+)', table)
    return renamed if renamed in re.findall(r"\b(\w++)\)", entries) + optional else ""


@cache
def package_folder() -> Path:
    """Return the folder of diffusers, without importing it."""
    spec = find_spec("diffusers")
    assert spec
    assert spec.origin
    return Path(spec.origin).parent


@cache
def _source_files() -> dict[str, Path]:
    """Return the file of each pipeline class."""
    paths = (package_folder() / "pipelines").rglob("pipeline_*.py")
    return {
        name: path
        for path in sorted(paths)
        for name in _CLASS.findall(path.read_text(encoding="utf-8"))
        if name.endswith("Pipeline")
    }


def _value(node: ast.expr) -> Any:  # noqa: ANN401 (a default of any type)
    with contextlib.suppress(ValueError):
        return ast.literal_eval(node)
    return None
