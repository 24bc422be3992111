"""Fetch the files of a model into the hub's own cache, piece by piece, and go on after a break.

The hub's client throws away what it had when a download breaks off (huggingface_hub 2), which is
hours for some. So each file is fetched here into an unfinished one beside the cache's blobs, its
digest compared, and only then is it called what the cache calls it; the client links the rest.
What is unfinished is no model: the snapshot appears when everything is there.

    fetch(ask("org/name"), lambda num_bytes: None)
"""

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from io import FileIO
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from seedgrid.core.errors import ModelError, SeedGridError
from seedgrid.models.hub import HubFile, HubModel, refused, translated
from seedgrid.storage.cache import cache_folder
from seedgrid.storage.files import nearest_folder

UNFINISHED: Final = ".seedgrid.incomplete"
RESERVE_BYTES: Final = 500_000_000
"""What is left free on the disk: pictures are kept there, too."""

_TRIES: Final = 5
"""How often an answer may break off without one new byte."""
_PAUSE_S: Final = 1.0
_WAIT_S: Final = 30.0

Watch = Callable[[int], None]
"""Is told how many bytes are there; what it raises stops the download."""


def fetch(model: HubModel, watch: Watch) -> None:
    """Fetch what is missing of a model; what is there already is not fetched again.

    Raises:
        ModelError: `download_room` before anything is fetched; `download_digest` when other bytes
            came than the hub says; `download_busy`; as `hub.refused`.
    """
    with _alone(model.id), translated(model.id):
        blobs = repository_folder(model.id) / "blobs"
        missing = _missing_bytes(model, blobs)
        check_room(model.id, blobs, missing)
        watch(model.num_bytes - missing)
        there = sum(file.size for file in model.files if (blobs / file.digest).is_file())
        blobs.mkdir(parents=True, exist_ok=True)
        for file in model.files:
            if not (blobs / file.digest).is_file():
                _fetch_file(model, file, blobs, _beyond(there, watch))
                there += file.size
        if not model.lora:
            _link(model)


def fetched_file(model: HubModel) -> Path:
    """Return where the one file of a LoRA lies when it is fetched, and not yet kept."""
    return repository_folder(model.id) / "blobs" / model.files[0].digest


def _beyond(num_bytes: int, watch: Watch) -> Watch:
    return lambda count: watch(num_bytes + count)


def fetch_configurations(model: HubModel, folder: Path) -> None:
    """Fetch what a single file lacks: its family's configurations and tokenizer, a few MB."""
    aside = folder.with_name(f".{folder.name}{UNFINISHED}")
    small = [file for file in model.files if not file.name.endswith(".safetensors")]
    with _alone(model.id), translated(model.id):
        shutil.rmtree(aside, ignore_errors=True)
        try:
            for file in small:
                place = aside / file.name
                place.parent.mkdir(parents=True, exist_ok=True)
                _fetch_file(model, file, aside, lambda _: None)
                (aside / file.digest).replace(place)
            aside.replace(folder)
        finally:
            shutil.rmtree(aside, ignore_errors=True)


def hub_cache() -> Path:
    """Return the folder in which the hub's client keeps what it fetched."""
    from huggingface_hub import constants

    return Path(constants.HF_HUB_CACHE)


def repository_folder(hub_id: str) -> Path:
    """Return where the hub's cache keeps a model."""
    return hub_cache() / f"models--{hub_id.replace('/', '--')}"


def unfinished_bytes(hub_id: str) -> int:
    """Return how much of a model was fetched when its download broke off."""
    blobs = repository_folder(hub_id) / "blobs"
    return sum(path.stat().st_size for path in blobs.glob(f"*{UNFINISHED}"))


def discard_unfinished(hub_id: str) -> None:
    """Delete what was fetched of a download that broke off."""
    with _alone(hub_id):
        for path in (repository_folder(hub_id) / "blobs").glob(f"*{UNFINISHED}"):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(hub_id: str) -> Iterator[None]:
    """Let nobody else fetch or delete the same model, in this process or another."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    lock = FileLock(cache_folder() / f"download {hub_id.replace('/', '--')}.lock", timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise ModelError("download_busy", value=hub_id) from error
    try:
        yield
    finally:
        lock.release()


def check_room(model: str, folder: Path, wanted: int) -> None:
    """Make sure that so many bytes of a model find room where they will lie."""
    there = nearest_folder(folder)
    free = shutil.disk_usage(there).free
    if wanted and wanted + RESERVE_BYTES > free:
        sizes = {"wanted": f"{wanted / 1e9:.1f}", "free": f"{free / 1e9:.1f}"}
        raise ModelError("download_room", value=model, folder=there, **sizes)


def _missing_bytes(model: HubModel, blobs: Path) -> int:
    missing = [file for file in model.files if not (blobs / file.digest).is_file()]
    partly = [blobs / f"{file.digest}{UNFINISHED}" for file in missing]
    had = sum(path.stat().st_size for path in partly if path.is_file())
    return sum(file.size for file in missing) - had


def _fetch_file(model: HubModel, file: HubFile, blobs: Path, watch: Watch) -> None:
    """Fetch one file, going on where an answer broke off, and give it its name when it is whole."""
    unfinished = blobs / f"{file.digest}{UNFINISHED}"
    tries = _TRIES
    with unfinished.open("ab", buffering=0) as target:
        while (had := target.tell()) < file.size:
            try:
                _append(model, file, target, watch)
            except SeedGridError:
                raise
            except Exception as error:  # As in `translated`; who is offline may come back.
                refusal = refused(model.id, error)
                tries = _TRIES if target.tell() > had else tries - 1
                if refusal.code != "download_offline":
                    raise refusal from error
                if not tries:
                    raise refusal from error
                time.sleep(_PAUSE_S)
                watch(target.tell())
        os.fsync(target.fileno())
    if unfinished.stat().st_size != file.size or _digest(unfinished, file) != file.digest:
        unfinished.unlink()
        raise ModelError("download_digest", value=model.id, file=file.name)
    unfinished.replace(blobs / file.digest)


def _append(model: HubModel, file: HubFile, target: FileIO, watch: Watch) -> None:
    """Write what one answer brings behind what is there."""
    from huggingface_hub import get_session, hf_hub_url, hf_raise_for_status
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(model.id, file.name, revision=model.revision)
    headers = build_hf_headers() | {
        "Accept-Encoding": "identity",
        "Range": f"bytes={target.tell()}-",
    }
    with get_session().stream(
        "GET", url, headers=headers, timeout=_WAIT_S, follow_redirects=True
    ) as answer:
        hf_raise_for_status(answer)
        if answer.status_code != 206:  # A server without ranges begins at the beginning.
            target.seek(0)
            target.truncate()
        for piece in answer.iter_bytes():  # As they come: no byte is lost when it breaks off.
            target.write(piece)
            watch(target.tell())
            if target.tell() > file.size:
                return  # More than was said: the digest will tell.


def _digest(path: Path, file: HubFile) -> str:
    """Return what the hub would call this content."""
    with path.open("rb") as content:
        if len(file.digest) == 64:
            return hashlib.file_digest(content, "sha256").hexdigest()
        head = f"blob {file.size}\0".encode()
        return hashlib.sha1(head + content.read(), usedforsecurity=False).hexdigest()


def _link(model: HubModel) -> None:
    """Have the hub's client make the snapshot of what is there."""
    from huggingface_hub import snapshot_download

    names = [file.name for file in model.files]
    with quiet():
        folder = snapshot_download(model.id, revision=model.asked, allow_patterns=names)
    if Path(folder).name != model.revision:
        raise ModelError("download_moved", value=model.id)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep the client's own progress bars from the terminal: we have ours."""
    from huggingface_hub.utils import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    was_quiet = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not was_quiet:
            enable_progress_bars()
