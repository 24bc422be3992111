"""The hub's information on a model before its download: files, sizes, digests, licence.

The hub's client makes all requests, with its login, cache and mirror (`HF_ENDPOINT`).
"""

import contextlib
import errno
import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from seedgrid.core.errors import ModelError, SeedGridError
from seedgrid.core.text import is_folder_name, is_hub_id, is_revision
from seedgrid.models import files as model_files
from seedgrid.models.files import INDEX, SUFFIX, VARIANT, is_lora, parse_object

logger = logging.getLogger(__name__)

_LOADABLE: Final = re.compile(r"([a-z][a-z0-9_]*)/[\w.-]+\.(?:json|txt|model|jinja|safetensors)")
_TINY_FILES: Final = ("config.json", "diffusion_pytorch_model.safetensors")
_TINY_DECODERS: Final = {
    (4, 0.18215): "madebyollin/taesd",
    (4, 0.13025): "madebyollin/taesdxl",
    (16, 1.5305): "madebyollin/taesd3",
    (16, 0.3611): "madebyollin/taef1",
}
"""Small networks that replace a model's own decoder in live pictures, by a VAE's latent channels
and scaling factor: Stable Diffusion, SDXL, SD 3, FLUX.1.

Source: https://github.com/madebyollin/taesd
"""
_UNNAMED: Final = ("pytorch_lora_weights", "adapter_model", "model", "lora")
"""Generic file names of LoRAs: such a LoRA is named after its repository."""
_CONNECTION: Final = re.compile(r"Connect|Timeout|Protocol|ReadError|Network")
"""Class names of errors of the connection; the client's HTTP library differs between releases."""
_ASK_S: Final = 20.0  # Timeout of the hub's answer, in seconds
_MAX_INDEX_BYTES: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """One file of a repository."""

    name: str  # The path in the repository
    size: int  # In bytes
    digest: str  # The SHA-256 of its content; for a small file its git SHA-1


@dataclass(frozen=True, kw_only=True)
class HubModel:
    """A model or LoRA on the hub, with the files that a download needs."""

    id: str
    branch: str  # The requested branch, tag or commit
    revision: str  # The commit that `branch` names
    files: tuple[HubFile, ...]
    licence: str  # From the model's card; empty if it names none
    lora: str = ""  # The LoRA's name; empty for a whole model
    words: str = ""  # A LoRA's trigger words, from its card

    @property
    def num_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)


def read_download(text: str) -> tuple[str | None, str | None, str]:
    """Read hub id, revision, file of `org/name/fox.safetensors@main`; None, None, "" if wrong."""
    path, at, revision = text.partition("@")
    owner, name, *folders = [*path.split("/"), ""]
    hub_id, file = f"{owner}/{name}", "/".join(folders)[:-1]
    is_path = not file or (file.endswith(SUFFIX) and all(map(is_folder_name, file.split("/"))))
    is_ref = not at or all(map(is_revision, revision.split("/")))  # Branches may have slashes.
    if not (is_hub_id(hub_id) and is_path and is_ref):
        return None, None, ""
    return hub_id, revision or None, file


def ask(hub_id: str) -> HubModel:
    """Ask the hub for the files of a model or a LoRA.

    Raises `model_name`; `model_not_one`, `model_pickle`, or as `files.family_in` and
    `files.components_of`; `lora_which` for several .safetensors files; or as `translated`.
    """
    name, revision, file = read_download(hub_id)
    if name is None:
        raise ModelError("model_name", value=hub_id[:80])
    from huggingface_hub import HfApi

    lora = words = ""
    with translated(name):
        # Without retries: an offline machine gets its error at once.
        info = HfApi().model_info(name, revision=revision, timeout=_ASK_S, files_metadata=True)
        siblings = {each.rfilename: each for each in info.siblings or ()}
        if INDEX in siblings and not file:
            names = _loaded_files(name, _read_json(name, info, siblings[INDEX]), list(siblings))
        elif name in _TINY_DECODERS.values() and siblings.keys() >= {*_TINY_FILES} and not file:
            names = list(_TINY_FILES)
        else:
            names = [_lora_file(name, info, file)]
            card: Any = info.card_data or {}
            words = card.get("instance_prompt")
            stem = names[0].rpartition("/")[2].removesuffix(SUFFIX)
            is_named = stem not in _UNNAMED and is_folder_name(stem)
            lora = stem if is_named else name.partition("/")[2]
    return HubModel(
        id=name,
        branch=revision or "main",
        revision=str(info.sha),
        files=tuple(_file(name, siblings[each]) for each in names),
        licence=_licence(info),
        lora=lora,
        words=words if isinstance(words, str) else "",
    )


def _loaded_files(hub_id: str, index: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Return the names of the files to download; refuse models that cannot be loaded."""
    model = hub_id.rpartition("/")[2]
    components = model_files.components_of(index, model, model_files.family_in(index, model))
    for folder, class_name in components.items():
        own = [name for name in names if name.startswith(f"{folder}/")]
        is_safe = any(name.endswith(SUFFIX) for name in own)
        if own and not is_safe and not model_files.WITHOUT_WEIGHTS.search(class_name):
            raise ModelError("model_pickle", value=hub_id, file=f"{folder}/")
    loaded = [name for name in names if (m := _LOADABLE.fullmatch(name)) and m[1] in components]
    plain = set(names)  # A variant's file, as of fp16, is left out if the plain one exists.
    return [INDEX] + [
        name
        for name in loaded
        if not ((m := VARIANT.search(name)) and name.replace(f".{m[1]}", "") in plain)
    ]


def _lora_file(hub_id: str, info: Any, file: str) -> str:  # noqa: ANN401 (the client's)
    """Return `file`, or the repository's only .safetensors file; refuse all but LoRAs."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import SafetensorsParsingError

    names: list[str] = [each.rfilename for each in info.siblings or ()]
    fitting = [name for name in names if name.endswith(SUFFIX) and file in ("", name)]
    if len(fitting) > 1:
        raise ModelError("lora_which", value=hub_id, choices=", ".join(fitting)[:400])
    for name in fitting:
        with contextlib.suppress(SafetensorsParsingError):
            header = HfApi().parse_safetensors_file_metadata(hub_id, name, revision=str(info.sha))
            if is_lora(header.tensors):
                return name
    raise ModelError("model_not_one", value=hub_id)


def decoder_for(configs: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the hub id of the tiny decoder for a model; empty if there is none."""
    vae = configs.get("vae", {})
    if vae.get("_class_name") != "AutoencoderKL":
        return ""
    kind = vae.get("latent_channels", 4), vae.get("scaling_factor", 0.18215)
    return _TINY_DECODERS.get(kind, "")


def decoder_folder(name: str) -> Path | None:
    """Return the newest folder of a tiny decoder; None if it is not downloaded."""
    return next(reversed(snapshots(repository_folder(name), _TINY_FILES)), None)


def host() -> str:
    """Return the address of the hub, or of its mirror."""
    from huggingface_hub.constants import ENDPOINT

    return str(ENDPOINT)


def hub_cache() -> Path:
    """Return the cache folder of the hub's client."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def repository_folder(hub_id: str) -> Path:
    """Return the folder of a model in the hub's cache."""
    return hub_cache() / f"models--{hub_id.replace('/', '--')}"


def snapshots(repository: Path, names: Sequence[str] = (INDEX,)) -> list[Path]:
    """Return the snapshots of a repository's folder that have these files, the newest last."""
    folders = repository.glob("snapshots/*")
    whole = [path for path in folders if all((path / name).is_file() for name in names)]
    return sorted(whole, key=lambda path: path.stat().st_mtime)


@contextlib.contextmanager
def translated(hub_id: str) -> Iterator[None]:
    """Raise errors of the hub's client in the block as ModelErrors; log unknown ones."""
    try:
        yield
    except SeedGridError:
        raise
    except Exception as error:  # Of any type: see `_CONNECTION`.
        raise _as_model_error(hub_id, error) from error


def _as_model_error(hub_id: str, error: Exception) -> ModelError:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return ModelError("download_gated", value=hub_id, host=host())
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelError("download_revision", value=hub_id, host=host())
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelError("download_unknown", value=hub_id, host=host())
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ModelError("download_full", value=hub_id)
    if isinstance(error, OSError) and error.filename is not None:  # Of the disk, not the network
        reason = f"{error.filename}: {error.strerror}"
        return ModelError("download_failed", value=hub_id, reason=reason)
    is_offline = isinstance(error, errors.OfflineModeIsEnabled | OSError)
    if is_offline or _CONNECTION.search(type(error).__name__):
        return ModelError("download_offline", value=hub_id, host=host())
    logger.warning("the hub's client refused", exc_info=error)
    reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
    return ModelError("download_failed", value=hub_id, reason=reason)


def _read_json(hub_id: str, info: Any, sibling: Any) -> dict[str, Any]:  # noqa: ANN401 (the client's)
    """Read a JSON file of a repository, without storing it."""
    from huggingface_hub import get_session, hf_hub_url, hf_raise_for_status
    from huggingface_hub.utils import build_hf_headers

    if (sibling.size or 0) > _MAX_INDEX_BYTES:
        raise ModelError("model_damaged", value=hub_id, file=sibling.rfilename)
    url = hf_hub_url(hub_id, sibling.rfilename, revision=str(info.sha))
    answer = get_session().get(url, headers=build_hf_headers(), timeout=_ASK_S)
    hf_raise_for_status(answer)
    return parse_object(answer.content, hub_id, sibling.rfilename)


def _file(hub_id: str, sibling: Any) -> HubFile:  # noqa: ANN401 (the client's)
    digest = sibling.lfs.sha256 if sibling.lfs else sibling.blob_id
    size = sibling.lfs.size if sibling.lfs else sibling.size
    is_digest = re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", digest or "")
    if not isinstance(size, int) or not is_digest:
        raise ModelError("download_failed", value=hub_id, reason="the hub names no digests")
    return HubFile(name=sibling.rfilename, size=size, digest=digest)


def _licence(info: Any) -> str:  # noqa: ANN401 (the client's)
    card = info.card_data or {}
    tags = [tag.partition(":")[2] for tag in info.tags or () if tag.startswith("license:")]
    named = [card.get("license_name"), card.get("license"), *tags]
    return next((each[:80] for each in named if isinstance(each, str) and each != "other"), "")
