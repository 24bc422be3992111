"""The hub's information on a model before its download: files, sizes, digests, licence.

All requests go through the hub's own client, with its login, cache folder and mirror
(`HF_ENDPOINT`). The client's errors become ours here. `download.py` downloads the files.

    ask("google/ddpm-cifar10-32").num_bytes
"""

import contextlib
import errno
import json
import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from seedgrid.core.errors import ModelError, SeedGridError
from seedgrid.core.text import is_folder_name, is_hub_id, is_revision
from seedgrid.models.files import (
    INDEX,
    SUFFIX,
    VARIANT,
    WITHOUT_WEIGHTS,
    components_of,
    family_in,
    is_lora,
)

logger = logging.getLogger(__name__)

DEFAULT_REVISION: Final = "main"

_WANTED: Final = re.compile(r"([a-z][a-z0-9_]*)/[\w.-]+\.(?:json|txt|model|safetensors)")
TINY_FILES: Final = ("config.json", "diffusion_pytorch_model.safetensors")
"""The files of a tiny decoder (`tiny_decoders.py`), which has no index."""
_UNNAMED: Final = ("pytorch_lora_weights", "adapter_model", "model", "lora")
"""Generic file names of LoRAs: such a LoRA is named after its repository."""
_ASK_S: Final = 20.0
"""Timeout of the hub's answer, in seconds."""
_MAX_INDEX_BYTES: Final = 1_000_000


@dataclass(frozen=True, kw_only=True)
class HubFile:
    """One file of a repository."""

    name: str  # With its folder
    size: int  # In bytes
    digest: str  # The SHA-256 of its content; for a small file its git SHA-1


@dataclass(frozen=True, kw_only=True)
class HubModel:
    """The files of a model that are downloaded."""

    id: str
    asked: str  # The requested branch, tag or commit
    revision: str  # The commit it stands for now
    files: tuple[HubFile, ...]
    licence: str = ""  # From the model's card; empty if it names none
    lora: str = ""  # The LoRA's name; empty for a whole model
    words: str = ""  # A LoRA's trigger words, from its card

    @property
    def num_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)


def read_name(text: str) -> tuple[str | None, str | None]:
    """Read `org/name` or `org/name@revision`, where a branch may have slashes; None for others."""
    hub_id, at, revision = text.partition("@")
    if not is_hub_id(hub_id) or (at and not all(map(is_revision, revision.split("/")))):
        return None, None
    return hub_id, revision or None


def read_download(text: str) -> tuple[str | None, str | None, str]:
    """Read `org/name`, its revision, and a file: `org/name/fox.safetensors`.

    Returns:
        Id, revision and file, which may be empty; the id is None for other texts.
    """
    named, at, revision = text.partition("@")
    owner, name, *folders = [*named.split("/"), ""]
    file = "/".join(folders)[:-1]
    hub_id, commit = read_name(f"{owner}/{name}{at}{revision}")
    is_file = not file or (file.endswith(SUFFIX) and all(map(is_folder_name, file.split("/"))))
    return (hub_id, commit, file) if is_file else (None, None, "")


def ask(hub_id: str) -> HubModel:
    """Ask the hub for the files of a model or a LoRA.

    Raises:
        ModelError: `model_name`; `model_not_one`, `model_family`, `model_code`, `model_part` or
            `model_pickle` for what cannot be loaded; `lora_which` if there are several LoRAs;
            `download_…` for errors of the hub's client.
    """
    name, revision, file = read_download(hub_id)
    if name is None:
        raise ModelError("model_name", value=hub_id[:80])
    from huggingface_hub import HfApi

    with translated(name):
        # Without retries: an offline machine gets its error at once.
        info = HfApi().model_info(name, revision=revision, timeout=_ASK_S, files_metadata=True)
        there = {each.rfilename: each for each in info.siblings or ()}
        if file or INDEX not in there:
            if file or not _is_tiny_decoder(name, info, there):
                return _lora(name, revision or DEFAULT_REVISION, info, file)
            names = list(TINY_FILES)
        else:
            index = _read_json(name, str(info.sha), there[INDEX])
            names = files_to_fetch(list(there), _folders(name, index, list(there)))
    files = (_file(name, there[each]) for each in names)
    return HubModel(
        id=name,
        asked=revision or DEFAULT_REVISION,
        revision=str(info.sha),
        files=tuple(files),
        licence=_licence(info),
    )


def _lora(hub_id: str, asked: str, info: Any, file: str) -> HubModel:  # noqa: ANN401 (the client's)
    """Return the only LoRA of a repository, or the one of that file name."""
    there = {each.rfilename: each for each in info.siblings or ()}
    found = [name for name in there if name.endswith(SUFFIX) and file in ("", name)]
    if len(found) > 1:
        raise ModelError("lora_which", value=hub_id, choices=", ".join(found)[:400])
    if not found or not _says_lora(hub_id, str(info.sha), found[0]):
        raise ModelError("model_not_one", value=hub_id)
    stem = found[0].rpartition("/")[2].removesuffix(SUFFIX)
    words = (info.card_data or {}).get("instance_prompt")
    return HubModel(
        id=hub_id,
        asked=asked,
        revision=str(info.sha),
        files=(_file(hub_id, there[found[0]]),),
        licence=_licence(info),
        lora=hub_id.partition("/")[2] if stem in _UNNAMED or not is_folder_name(stem) else stem,
        words=words if isinstance(words, str) else "",
    )


def _says_lora(hub_id: str, revision: str, name: str) -> bool:
    """Tell by a file's header, before its download, whether it is a LoRA."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import SafetensorsParsingError

    try:
        header = HfApi().parse_safetensors_file_metadata(hub_id, name, revision=revision)
    except SafetensorsParsingError:
        return False
    return is_lora(header.tensors)


def files_to_fetch(names: Sequence[str], folders: Sequence[str] | None = None) -> list[str]:
    """Return the files of a repository to download: no pickles and no second copies.

    Args:
        names: All files of the repository, with their folders.
        folders: The components of the model's index; None takes every folder.

    Returns:
        The index, configurations, tokenizers and weights; of a variant such as fp16 only what has
        no plain counterpart.
    """
    plain = set(names)
    wanted = {name: found[1] for name in names if (found := _WANTED.fullmatch(name))}
    return [
        name
        for name in names
        if (name == INDEX or (name in wanted and (folders is None or wanted[name] in folders)))
        and not ((variant := VARIANT.search(name)) and name.replace(f".{variant[1]}", "") in plain)
    ]


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


@contextlib.contextmanager
def translated(hub_id: str) -> Iterator[None]:
    """Raise errors of the hub's client in the block as ours."""
    try:
        yield
    except SeedGridError:
        raise
    except Exception as error:
        # Of any type: the client's HTTP library differs between releases.
        raise refused(hub_id, error) from error


def refused(hub_id: str, error: Exception) -> ModelError:
    """Return our error for one of the hub's client; unknown ones are logged."""
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return ModelError("download_gated", value=hub_id, host=host())
    if isinstance(error, errors.RevisionNotFoundError):
        return ModelError("download_revision", value=hub_id, host=host())
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelError("download_unknown", value=hub_id, host=host())
    reason = str(error).strip().split("\n")[0][:200] or type(error).__name__
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ModelError("download_full", value=hub_id)
    if isinstance(error, errors.OfflineModeIsEnabled | OSError) or _is_connection(error):
        return ModelError("download_offline", value=hub_id, host=host())
    logger.warning("the hub's client refused", exc_info=error)
    return ModelError("download_failed", value=hub_id, reason=reason)


def _is_connection(error: Exception) -> bool:
    """Tell by an error's class name whether the connection failed."""
    return bool(re.search(r"Connect|Timeout|Protocol|ReadError|Network", type(error).__name__))


def _is_tiny_decoder(hub_id: str, info: Any, there: dict[str, Any]) -> bool:  # noqa: ANN401 (the client's)
    if not there.keys() >= set(TINY_FILES):
        return False
    config = _read_json(hub_id, str(info.sha), there[TINY_FILES[0]])
    return config.get("_class_name") == "AutoencoderTiny"


def _read_json(hub_id: str, revision: str, sibling: Any) -> dict[str, Any]:  # noqa: ANN401 (the client's)
    """Read a JSON file of a repository, without storing it."""
    from huggingface_hub import get_session, hf_hub_url, hf_raise_for_status
    from huggingface_hub.utils import build_hf_headers

    damaged = ModelError("model_damaged", value=hub_id, file=sibling.rfilename)
    if (sibling.size or 0) > _MAX_INDEX_BYTES:
        raise damaged
    url = hf_hub_url(hub_id, sibling.rfilename, revision=revision)
    answer = get_session().get(url, headers=build_hf_headers(), timeout=_ASK_S)
    hf_raise_for_status(answer)
    try:
        index = json.loads(answer.content)
    except (ValueError, RecursionError) as error:
        raise damaged from error
    if not isinstance(index, dict):
        raise damaged
    return index


def _folders(hub_id: str, index: dict[str, Any], names: Sequence[str]) -> list[str]:
    """Return the folders to download, and refuse models that cannot be loaded."""
    components = components_of(index, Path(hub_id), family_in(index, Path(hub_id)))
    for folder, class_name in components.items():
        own = [name for name in names if name.startswith(f"{folder}/")]
        is_safe = any(name.endswith(".safetensors") for name in own)
        if own and not is_safe and not WITHOUT_WEIGHTS.search(class_name):
            raise ModelError("model_pickle", value=hub_id, file=f"{folder}/")
    return list(components)


def _file(hub_id: str, sibling: Any) -> HubFile:  # noqa: ANN401 (of the hub's client)
    digest = sibling.lfs.sha256 if sibling.lfs else sibling.blob_id
    size = sibling.lfs.size if sibling.lfs else sibling.size
    is_told = isinstance(size, int) and re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", digest or "")
    if not is_told:
        raise ModelError("download_failed", value=hub_id, reason="the hub names no digests")
    return HubFile(name=sibling.rfilename, size=size, digest=digest)


def _licence(info: Any) -> str:  # noqa: ANN401 (of the hub's client)
    card = info.card_data or {}
    named = [card.get("license_name"), card.get("license")]
    tags = [tag.partition(":")[2] for tag in info.tags or () if tag.startswith("license:")]
    found = [each for each in (*named, *tags) if isinstance(each, str) and each != "other"]
    return found[0][:80] if found else ""
