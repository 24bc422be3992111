"""Downloads models and LoRAs from the hub, one after the other, with progress, stop and resume.

The hub's client deletes a partial file when a download breaks off (huggingface_hub 2). So this
module downloads each file into the hub's cache under a temporary name, and renames the file when
its digest is right. Then the client makes the snapshot's links.
"""

import contextlib
import hashlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from io import FileIO
from pathlib import Path
from queue import SimpleQueue
from typing import Final, Literal

from filelock import FileLock, Timeout

from seedgrid.core.errors import ModelError, RunCancelled, SeedGridError
from seedgrid.models import hub
from seedgrid.models.catalogue import LICENCES
from seedgrid.models.files import SUFFIX
from seedgrid.models.hub import HubFile, HubModel, read_download, repository_folder
from seedgrid.models.loras import check_free, keep_lora
from seedgrid.models.shelf import delete_own, is_own
from seedgrid.storage.cache import cache_folder, recall, remember, remember_one
from seedgrid.storage.files import nearest_folder, size_of

State = Literal["waiting", "asking", "fetching", "done", "failed", "stopped"]
UNFINISHED: Final = ".seedgrid.incomplete"
RESERVE_BYTES: Final = 500_000_000  # Bytes that a download leaves free on the disk, for pictures

_UNFINISHED_DOWNLOADS: Final = "downloads"  # The cache of their total bytes, by hub id
_TRIES: Final = 5  # A download fails after so many breaks in a row without a new byte
_PAUSE_S: Final = 1.0  # Before the next try
_WAIT_S: Final = 30.0  # Timeout of the HTTP client

Watch = Callable[[int], None]  # Is given the downloaded bytes; if it raises, the download stops

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """The state of a download."""

    id: str
    state: State
    num_bytes: int = 0  # Downloaded bytes of `total`
    total: int = 0  # 0 until the hub has answered
    left_s: float | None = None  # Estimated seconds until the download is done; None if unknown
    error: SeedGridError | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the download waits or is running."""
        return self.state in ("waiting", "asking", "fetching")


class _Job:
    def __init__(self, hub_id: str) -> None:
        self.progress = Progress(id=hub_id, state="waiting")
        self.is_stopped = False
        self.began: tuple[float, int] | None = None  # Time and bytes of the first report
        self.ended = threading.Event()

    def watch(self, num_bytes: int) -> None:
        """Record the downloaded bytes; raise RunCancelled if the download was stopped."""
        if self.is_stopped:
            raise RunCancelled("run_cancelled")
        self.began = self.began or (time.monotonic(), num_bytes)
        elapsed_s, received = time.monotonic() - self.began[0], num_bytes - self.began[1]
        left_s = (self.progress.total - num_bytes) * elapsed_s / received if received > 0 else None
        self.progress = replace(self.progress, num_bytes=num_bytes, left_s=left_s)


class Downloads:
    """The downloads of this process, on one thread. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: dict[str, _Job] = {}
        self._queue = SimpleQueue[_Job | None]()
        self._thread: threading.Thread | None = None

    def start(self, hub_id: str) -> Progress:
        """Start or resume a download; raise `model_name` unless `read_download` reads its id."""
        if read_download(hub_id)[0] is None:
            raise ModelError("model_name", value=hub_id[:80])
        with self._lock:
            job = self._jobs.get(hub_id)
            if job is None or not job.progress.goes_on:
                self._jobs.pop(hub_id, None)
                job = self._jobs[hub_id] = _Job(hub_id)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._work, daemon=True)
                    self._thread.start()
                self._queue.put(job)
            return job.progress

    def known(self) -> tuple[Progress, ...]:
        """Return interrupted downloads of earlier processes, and all of this process."""
        known: dict[str, Progress] = {}
        for hub_id, total in recall(_UNFINISHED_DOWNLOADS).items():
            name = read_download(hub_id)[0]
            done = unfinished_bytes(name) if name else 0
            if done and isinstance(total, int):
                known[hub_id] = Progress(id=hub_id, state="stopped", num_bytes=done, total=total)
        with self._lock:
            known |= {hub_id: job.progress for hub_id, job in self._jobs.items()}
        return tuple(known.values())

    def stop(self, hub_id: str) -> None:
        """Stop a download; its bytes stay on the disk, and it can be resumed."""
        with self._lock:
            job = self._jobs.get(hub_id)
            if job is not None:
                job.is_stopped = True
                if job.progress.state == "waiting":
                    job.progress = replace(job.progress, state="stopped")
                    job.ended.set()

    def discard(self, hub_id: str) -> None:
        """Delete a download and its bytes; raise `download_busy` if it goes on, or `model_name`."""
        name = read_download(hub_id)[0]
        if name is None:
            raise ModelError("model_name", value=hub_id[:80])
        with self._lock:
            job = self._jobs.get(hub_id)
            if job is not None and job.progress.goes_on:
                raise ModelError("download_busy", value=hub_id[:80])
            self._jobs.pop(hub_id, None)
        discard_unfinished(name)
        _forget_unfinished(hub_id)

    def wait(self, hub_id: str, timeout_s: float | None = None) -> Progress:
        """Wait until a download ends, or for `timeout_s`."""
        job = self._jobs[hub_id]
        job.ended.wait(timeout_s)
        return job.progress

    def close(self) -> None:
        """Stop all downloads; they can be resumed."""
        for hub_id in list(self._jobs):
            self.stop(hub_id)
        self._queue.put(None)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if job.is_stopped:
                    continue
                job.progress = replace(job.progress, state="asking")
            state: State = "done"
            error: SeedGridError | None = None
            try:
                self._fetch(job)
            except RunCancelled:
                state = "stopped"
            except SeedGridError as caught:
                state, error = "failed", caught
            except Exception as caught:  # Any error: the thread continues with the next download.
                logger.exception("a download failed")
                data = {"value": job.progress.id, "reason": type(caught).__name__}
                state, error = "failed", ModelError("download_failed", **data)
            job.progress = replace(job.progress, state=state, error=error, left_s=None)
            job.ended.set()

    def _fetch(self, job: _Job) -> None:
        hub_id = job.progress.id
        model = hub.ask(hub_id)
        if model.lora:
            check_free(model)
        if job.is_stopped:
            raise RunCancelled("run_cancelled")
        job.progress = replace(job.progress, total=model.num_bytes, state="fetching")
        remember_one(_UNFINISHED_DOWNLOADS, hub_id, model.num_bytes)
        fetch(model, job.watch)
        _forget_unfinished(hub_id)
        if not model.lora:
            if model.licence:  # The model's card is not downloaded.
                remember_one(LICENCES, model.id, model.licence)
            return
        repository = repository_folder(model.id)
        keep_lora(model, repository / "blobs" / model.files[0].digest)
        for folder in (repository / "blobs", repository):
            with contextlib.suppress(OSError):  # The folder holds other files.
                folder.rmdir()


def _forget_unfinished(hub_id: str) -> None:
    known = recall(_UNFINISHED_DOWNLOADS)
    if known.pop(hub_id, None) is not None:
        remember(_UNFINISHED_DOWNLOADS, known)


def delete(hub_id: str, path: Path) -> int:
    """Delete a model of `own_folder` or the hub's cache; refuse others; return the freed bytes."""
    if is_own(path):
        return delete_own(path)
    repository = path.parent.parent
    if repository != repository_folder(hub_id) or path.parent.name != "snapshots":
        raise ModelError("model_kept", value=hub_id, folder=path.parent)
    discard_unfinished(hub_id)
    freed = size_of(path)
    shutil.rmtree(repository)
    return freed


def fetch(model: HubModel, watch: Watch) -> None:
    """Download the missing files of a model.

    Raises `download_room` beforehand, `download_digest`, `download_busy`; also as `hub.translated`.
    """
    with _lock_download(model.id), hub.translated(model.id):
        blobs = repository_folder(model.id) / "blobs"
        missing = [file for file in model.files if not (blobs / file.digest).is_file()]
        partly = sum(size_of(blobs / f"{file.digest}{UNFINISHED}") for file in missing)
        done = model.num_bytes - sum(file.size for file in missing)
        check_room(model.id, blobs, model.num_bytes - done - partly)
        watch(done + partly)
        blobs.mkdir(parents=True, exist_ok=True)

        def watch_all(num_bytes: int) -> None:
            watch(done + num_bytes)

        for file in missing:
            if not (blobs / file.digest).is_file():  # Two files may have the same content.
                _fetch_file(model, file, blobs, watch_all)
                done += file.size
        if not model.lora:
            _link(model)


def fetch_configurations(model: HubModel, folder: Path) -> None:
    """Download a single file's configurations and tokenizer, a few MB, into a folder."""
    temporary = folder.with_name(f".{folder.name}{UNFINISHED}")
    with _lock_download(model.id), hub.translated(model.id):
        shutil.rmtree(temporary, ignore_errors=True)
        try:
            for file in (each for each in model.files if not each.name.endswith(SUFFIX)):
                target = temporary / file.name
                target.parent.mkdir(parents=True, exist_ok=True)
                _fetch_file(model, file, temporary, lambda _: None)
                (temporary / file.digest).replace(target)
            temporary.replace(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


def unfinished_bytes(hub_id: str) -> int:
    """Return the bytes of a model's interrupted download."""
    blobs = repository_folder(hub_id) / "blobs"
    return sum(map(size_of, blobs.glob(f"*{UNFINISHED}")))


def discard_unfinished(hub_id: str) -> None:
    """Delete the files of an interrupted download."""
    with _lock_download(hub_id):
        for path in (repository_folder(hub_id) / "blobs").glob(f"*{UNFINISHED}"):
            path.unlink(missing_ok=True)


def _lock_download(hub_id: str) -> contextlib.AbstractContextManager[object]:
    """Lock a model's download until the block ends; raise `download_busy` if it is locked."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    lock = FileLock(cache_folder() / f"download {hub_id.replace('/', '--')}.lock", timeout=0)
    try:
        return lock.acquire()
    except Timeout as error:
        raise ModelError("download_busy", value=hub_id) from error


def check_room(model: str, folder: Path, num_bytes: int) -> None:
    """Raise `download_room` if a folder's disk has no room for so many bytes of a model."""
    folder = nearest_folder(folder)
    free = shutil.disk_usage(folder).free
    if num_bytes and num_bytes + RESERVE_BYTES > free:
        sizes = {"wanted": f"{num_bytes / 1e9:.1f}", "free": f"{free / 1e9:.1f}"}
        raise ModelError("download_room", value=model, folder=folder, **sizes)


def _fetch_file(model: HubModel, file: HubFile, blobs: Path, watch: Watch) -> None:
    """Download or resume one file, and rename it when it is complete."""
    unfinished = blobs / f"{file.digest}{UNFINISHED}"
    tries = _TRIES
    with unfinished.open("ab", buffering=0) as target:
        while (before := target.tell()) < file.size:
            try:
                with hub.translated(model.id):
                    _append(model, file, target, watch)
            except ModelError as refusal:
                tries = _TRIES if target.tell() > before else tries - 1
                if refusal.code != "download_offline" or not tries:
                    raise
                time.sleep(_PAUSE_S)
                watch(target.tell())
        os.fsync(target.fileno())
    if unfinished.stat().st_size != file.size or _digest(unfinished, file) != file.digest:
        unfinished.unlink()
        raise ModelError("download_digest", value=model.id, file=file.name)
    unfinished.replace(blobs / file.digest)


def _append(model: HubModel, file: HubFile, target: FileIO, watch: Watch) -> None:
    from huggingface_hub import get_session, hf_hub_url, hf_raise_for_status
    from huggingface_hub.utils import build_hf_headers

    url = hf_hub_url(model.id, file.name, revision=model.revision)
    extra_headers = {"Accept-Encoding": "identity", "Range": f"bytes={target.tell()}-"}
    headers = build_hf_headers() | extra_headers
    with get_session().stream(
        "GET", url, headers=headers, timeout=_WAIT_S, follow_redirects=True
    ) as answer:
        hf_raise_for_status(answer)
        if answer.status_code != 206:  # The server ignored `Range` and sends the whole file.
            target.seek(0)
            target.truncate()
        for piece in answer.iter_bytes():  # Each is written at once: none is lost at a break.
            target.write(piece)
            watch(target.tell())
            if target.tell() > file.size:
                return  # The file is too long: `_fetch_file` refuses it.


def _digest(path: Path, file: HubFile) -> str:
    """Return a file's digest as the hub computes it: SHA-256, or for a small file git's SHA-1."""
    with path.open("rb") as content:
        if len(file.digest) == 64:
            return hashlib.file_digest(content, "sha256").hexdigest()
        head = f"blob {file.size}\0".encode()
        return hashlib.sha1(head + content.read(), usedforsecurity=False).hexdigest()


def _link(model: HubModel) -> None:
    """Let the hub's client make the snapshot from the downloaded files."""
    from huggingface_hub import snapshot_download, utils

    names = [file.name for file in model.files]
    was_quiet = utils.are_progress_bars_disabled()
    utils.disable_progress_bars()  # SeedGrid shows its own progress.
    try:
        folder = snapshot_download(model.id, revision=model.branch, allow_patterns=names)
    finally:
        if not was_quiet:
            utils.enable_progress_bars()
    if Path(folder).name != model.revision:
        raise ModelError("download_moved", value=model.id)
