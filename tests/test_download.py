"""Downloads, by the hub's real client from a small hub of our own: broken, resumed, refused."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command import ROOT, run_python
from hub import COMMIT, Hub
from serving import listening

from seedgrid.core.errors import ModelError
from seedgrid.models import download as downloading
from seedgrid.models import registry
from seedgrid.models.hub import ask, repository_folder

WEIGHTS = "unet/diffusion_pytorch_model.safetensors"


def download(name: str, watch: downloading.Watch = lambda _: None) -> registry.Model:
    """Fetch a model and find it."""
    there = ask(name)
    downloading.fetch(there, watch)
    return registry.find_in_hub_cache(there.id, there.revision)


def refusal(name: str = "someone/foxes") -> str:
    """Return the sentence of a download that does not succeed."""
    with pytest.raises(ModelError) as caught:
        download(name)
    return str(caught.value)


def at_a_terminal(hub: str, home: Path, *, code: int = 0, **more: str) -> str:
    """Fetch the foxes as somebody at a terminal does, which ends with this code; its errors."""
    command = ("-m", "seedgrid", "models", "--download", "someone/foxes")
    environment = os.environ | {"HF_ENDPOINT": hub, "HF_HOME": str(home)} | more
    return run_python(*command, code=code, env=environment).stderr


def fetched(home: Path) -> Path:
    return home / "hub" / "models--someone--foxes" / "snapshots" / COMMIT


def test_a_download_is_a_model_and_only_what_is_loaded(hub: Hub, hub_home: Path) -> None:
    """The hub's client once called a snapshot without the README no model at all."""
    told: list[int] = []
    hub.repositories["someone/foxes"].files["tokenizer/chat_template.jinja"] = b"{{ messages }}"
    model = download("someone/foxes", told.append)
    assert (model.revision, model.path) == (COMMIT, fetched(hub_home))
    assert registry.find("someone/foxes").card == model.card
    there = {p.relative_to(fetched(hub_home)).as_posix() for p in fetched(hub_home).rglob("*.*")}
    assert {"model_index.json", "tokenizer/chat_template.jinja", WEIGHTS} <= there
    assert not [name for name in there if name.startswith(("README", "whole", "vae_other"))]
    assert not [name for name in there if name.endswith(".bin") or "fp16" in name]
    assert told == sorted(told)
    assert told[-1] == sum(len(hub.repositories["someone/foxes"].files[name]) for name in there)


def test_the_token_stays_with_the_hub(hub: Hub, hub_home: Path) -> None:  # noqa: ARG001 (the cache)
    """Large files lie with somebody else, who must not hear the hub's token."""
    download("someone/foxes")
    told = {path.startswith("/storage/"): token for path, _, token in hub.asked}
    assert told == {False: "Bearer hf_secret", True: None}


def test_a_download_broken_five_times_is_resumed(hub: Hub, hub_home: Path) -> None:
    """Each time it goes on at the byte where the answer ended."""
    hub.breaks = [10_000] * 5
    download("someone/foxes")
    assert sum(hub.starts()) >= sum(hub.starts()[:1]) + 4 * 10_000
    whole = hub.repositories["someone/foxes"].files[WEIGHTS]
    assert (fetched(hub_home) / WEIGHTS).read_bytes() == whole
    assert not list((hub_home / "hub").rglob("*.incomplete"))


def test_a_download_that_ended_goes_on_where_it_was(hub: Hub, hub_home: Path) -> None:
    """What had come is on the disk, and no model yet."""
    hub.breaks = [20_000, 0, 0, 0, 0, 0]
    assert "--download someone/foxes" in refusal()
    assert not fetched(hub_home).exists()
    assert downloading.unfinished_bytes("someone/foxes") == 20_000
    hub.asked.clear()
    download("someone/foxes")
    assert hub.starts()[0] == 20_000


def test_a_killed_download_goes_on_where_it_was(hub: Hub, tmp_path: Path) -> None:
    """`kill -9` in the middle of a file, at a terminal."""
    hub.may_go.clear()
    environment = os.environ | {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "seedgrid", "models", "--download", "someone/foxes"]
    with subprocess.Popen(command, cwd=ROOT, env=environment) as process:
        weights = "?" * 64 + downloading.UNFINISHED  # named by their SHA-256
        while not any(each.stat().st_size for each in tmp_path.rglob(weights)):
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    hub.may_go.set()
    hub.asked.clear()
    at_a_terminal(hub.address, tmp_path)
    assert hub.starts()[0] > 0
    assert fetched(tmp_path).is_dir()


def test_a_file_that_is_finished_while_others_are_counted_counts_nothing(hub_home: Path) -> None:  # noqa: ARG001
    """Its name is gone before it is looked at, as that of a link to nothing is."""
    blobs = repository_folder("someone/foxes") / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"gone{downloading.UNFINISHED}").symlink_to(blobs / "finished")
    assert downloading.unfinished_bytes("someone/foxes") == 0


def test_other_bytes_than_the_hub_says_are_thrown_away(hub: Hub, hub_home: Path) -> None:
    """One changed bit: it is refused, and nothing of it lies around."""
    hub.spoils = True
    assert "another SHA-256" in refusal()
    assert not [path for path in (hub_home / "hub").rglob("*") if path.stat().st_size > 100_000]
    hub.spoils = False
    assert download("someone/foxes").card


def test_a_disk_without_room_is_told_before(hub: Hub, hub_home: Path) -> None:  # noqa: ARG001
    """Nothing is fetched that will not fit."""
    hub.repositories["someone/foxes"].announced = {WEIGHTS: 10**18}
    assert "needs 1000000000.0 GB" in refusal()
    assert hub.starts() == []


def test_a_folder_that_refuses_is_not_the_hub(hub: Hub, hub_home: Path) -> None:  # noqa: ARG001
    """It was said that the hub does not answer."""
    (hub_home / "hub").write_bytes(b"")
    assert str(hub_home / "hub") in refusal()


def test_a_gated_model_says_where_to_agree(hub: Hub, hub_home: Path) -> None:  # noqa: ARG001
    """The login is the hub's own."""
    hub.repositories["someone/foxes"].gated = True
    assert f"open {hub.address}/someone/foxes" in refusal()
    assert "hf auth login" in refusal()


def test_a_name_or_version_that_is_not_there_is_told(hub: Hub, hub_home: Path) -> None:  # noqa: ARG001
    """Each in one sentence."""
    assert "There is no model “someone/wolves”" in refusal("someone/wolves")
    assert "has no such version" in refusal("someone/foxes@nothing")


def test_a_hub_that_hangs_up_is_asked_no_five_times(tmp_path: Path) -> None:
    """A hundred lines of traceback once came after five retries."""
    with listening() as (address, asked):
        said = at_a_terminal(address, tmp_path, code=2)
    assert len(said.splitlines()) == 1
    assert "“someone/foxes” could not be downloaded" in said
    assert len(asked) <= 2  # The client itself tries a connection that broke once more.


def test_a_hub_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    """Offline on purpose, or by accident."""
    for more in ({}, {"HF_HUB_OFFLINE": "1"}):
        said = at_a_terminal("http://127.0.0.1:9", tmp_path, code=2, **more)
        assert len(said.splitlines()) == 1
        assert "“someone/foxes” could not be downloaded" in said
