"""Signed pictures: by C2PA where there is a certificate; nothing else of them changes."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from pictures import make_lineage, make_picture
from refusing import refused

from seedgrid.core.errors import LibraryError
from seedgrid.formats import png, png_chunks
from seedgrid.formats.own_texts import SIGNING_VARIABLE, check_signing
from seedgrid.library import Library
from seedgrid.verify.claim import read_claim

LEAF = """basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=emailProtection
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
"""


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PEM file as an owner has one, of an authority that nobody knows."""
    pytest.importorskip("c2pa", reason="c2pa-python is not here: pip install c2pa-python")
    if shutil.which("openssl") is None:
        pytest.skip("no openssl, which makes a certificate; apt-get install openssl")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "leaf.cnf").write_text(LEAF)
    for name in ("root", "leaf"):
        curve = ("-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
        openssl("genpkey", *curve, "-out", f"{name}.key")
    root = ("-subj", "/O=Test/CN=root", "-days", "2", "-addext", "keyUsage=critical,keyCertSign")
    openssl("req", "-x509", "-new", "-key", "root.key", *root, "-out", "root.pem")
    openssl("req", "-new", "-key", "leaf.key", "-subj", "/O=Test/CN=leaf", "-out", "leaf.csr")
    signers = ("-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial", "-days", "2")
    openssl("x509", "-req", "-in", "leaf.csr", *signers, "-extfile", "leaf.cnf", "-out", "leaf.pem")
    parts = ("leaf.pem", "root.pem", "leaf.key")
    whole = tmp_path / "signer.pem"
    whole.write_text("".join((tmp_path / part).read_text() for part in parts))
    monkeypatch.setenv(SIGNING_VARIABLE, str(whole))
    return whole


def told(data: bytes) -> dict[str, object]:
    """What a reader of others says of a signed file."""
    import c2pa

    return dict(json.loads(c2pa.Reader("image/png", io.BytesIO(data)).json()))


def kinds(data: bytes) -> list[bytes]:
    return [chunk.kind for chunk in png_chunks.split(data)]


@pytest.mark.usefixtures("certificate")
def test_what_is_painted_is_signed_and_nothing_else_of_it_changes(tmp_path: Path) -> None:
    """Another reader finds it valid, and what made the picture; copies are signed anew."""
    picture = make_picture()
    plain = png.encode(picture)
    library = Library(tmp_path / "library")
    entry = library.add(picture)
    data = entry.path.read_bytes()
    assert b"caBX" in kinds(data)
    assert [k for k in kinds(data) if k != b"caBX"] == kinds(plain)
    assert png.read(data) == png.read(plain)
    assert (png.read_pixels(data) == picture.pixels).all()
    (copy,) = library.add_again((entry, make_lineage(picture_id="12" * 16)))
    for each in (data, copy.path.read_bytes()):
        found = told(each)
        assert found["validation_state"] == "Valid"
        assert "trainedAlgorithmicMedia" in json.dumps(found)
    assert read_claim(entry.path).pixels_sha256 == picture.pixels_sha256


def test_without_a_certificate_nothing_is_signed(tmp_path: Path) -> None:
    """The file is what it always was."""
    picture = make_picture()
    assert Library(tmp_path).add(picture).path.read_bytes() == png.encode(picture)


def test_a_certificate_that_is_none_is_said_at_the_start(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is wrong with it, in one sentence, and before anything is painted."""
    check_signing()
    whole = certificate.read_text()
    for wrong in ("", whole.replace("PRIVATE KEY", "PUBLIC KEY"), whole.replace("MII", "AAA")):
        certificate.write_text(wrong)
        with refused(LibraryError, "c2pa_refused"):
            check_signing()
    monkeypatch.setenv(SIGNING_VARIABLE, "/nowhere/signer.pem")
    with refused(LibraryError, "c2pa_refused"):
        check_signing()


def test_another_place_in_a_tree_loses_a_strangers_signature() -> None:
    """It would not be true of the file any more."""
    data = png.encode(make_picture())
    first, *rest = png_chunks.split(data)
    chunks = [first, png_chunks.Chunk(kind=b"caBX", data=b"signed"), *rest]
    signed = png_chunks.SIGNATURE + b"".join(map(png_chunks.packed, chunks))
    assert kinds(png.rewrite(signed, lineage=make_lineage(picture_id="12" * 16))) == kinds(data)
