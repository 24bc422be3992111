"""Digests of weights: read once, and again whenever anything about the file has changed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from seedgrid.storage.cache import files_digest

pytestmark = pytest.mark.usefixtures("forgetful")

SIZE = (1 << 20) + 8


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "weights.safetensors"
    path.write_bytes(bytes(SIZE))
    return path


def flip(path: Path) -> None:
    """Change one bit and put the time of the writing back."""
    before = path.stat()
    with path.open("r+b") as file:
        file.seek(SIZE // 2)
        file.write(b"\1")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (SIZE, before.st_mtime_ns)


def test_a_changed_bit_with_the_old_time_restored_is_another_model(weights: Path) -> None:
    """The same name, size and time gave the same digest, and one recipe id meant two models."""
    before = files_digest({"w": weights})
    flip(weights)
    assert files_digest({"w": weights}) != before


def test_a_file_is_read_once(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gigabytes are not hashed at every start, also not under another name."""
    before = files_digest({"w": weights})
    link = weights.with_name("another.safetensors")
    monkeypatch.setattr("hashlib.file_digest", None)
    assert files_digest({"w": weights}) == before
    link.symlink_to(weights)
    assert files_digest({"w": link}) == before
