"""What a browser is told of an answer: the page runs its own modules, everything else nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from servers import client_of
from starlette.testclient import TestClient

from seedgrid.storage.files import assets_folder
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.server.app import SPACE_FRAMES, page_policy
from seedgrid.web.server.page import version
from seedgrid.web.server.routes import PageServices


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("library")
    with Studio(library=folder, backend=FakeBackend()) as studio:
        yield client_of(PageServices(studio), folder)


def test_every_answer_is_hardened(client: TestClient) -> None:
    """Nothing but the page may run a script, whatever is in a file."""
    for path in ("/", f"/seedgrid/assets/{version()}/base.js", "/healthz", "/nowhere"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert headers["referrer-policy"] == "same-origin", path
        assert headers["x-frame-options"] == "SAMEORIGIN", path
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, path
        assert ("script-src" in policy) == (path == "/"), path


def test_nothing_stands_in_the_page_that_could_run(client: TestClient) -> None:
    """No script, no handler and no style in the document; the policy allows none."""
    page = client.get("/").text
    policy = client.get("/").headers["content-security-policy"]
    assert "unsafe" not in policy
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", page, re.DOTALL)
    assert all("src=" in told or "application/json" in told for told, _ in scripts)
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page)


def test_a_space_may_be_shown_by_hugging_face_only() -> None:
    """The page stands in a frame there."""
    assert page_policy(SPACE_FRAMES).endswith(f"frame-ancestors 'self' {SPACE_FRAMES}")
    assert page_policy().endswith("frame-ancestors 'self'")


def test_a_file_is_kept_for_ever_under_the_digest_of_all(client: TestClient) -> None:
    """An older page gets the newest file, which it does not keep."""
    newest = client.get(f"/seedgrid/assets/{version()}/base.js")
    assert "immutable" in newest.headers["cache-control"]
    assert newest.headers["content-encoding"] == "br"
    assert newest.content == (assets_folder() / "base.js").read_bytes()
    older = client.get("/seedgrid/assets/000000000000/base.js")
    assert older.headers["cache-control"] == "no-store"
    assert older.content == newest.content
    plain = client.get("/seedgrid/assets/0/base.js", headers={"Accept-Encoding": "identity"})
    assert plain.content == newest.content


@pytest.mark.parametrize("name", ["../app.py", "model/model_index.json", "page.html", "x" * 300])
def test_other_files_are_not_there(client: TestClient, name: str) -> None:
    """What a page asks for is read once, at the start; nothing else has an address."""
    assert client.get(f"/seedgrid/assets/0/{name}").status_code == 404


def test_a_visitor_has_a_cookie_that_no_script_reads(client: TestClient) -> None:
    """It comes with the page, once; nobody else's page sends it along."""
    client.cookies.clear()
    cookie = client.get("/").headers["set-cookie"]
    assert re.match(r"seedgrid-visitor=[0-9a-f]{32};", cookie)
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "set-cookie" not in client.get("/").headers


def test_the_page_asks_for_little(client: TestClient) -> None:
    """Its document, one style sheet, one typeface and its modules: no more than 150 KB packed."""
    page = client.get("/")
    named = re.findall(r'(?:href|src)="(seedgrid/[^"]+)"', page.text)
    assert len(named) < 15
    font = f"seedgrid/assets/{version()}/fonts/inter.woff2"
    sizes = [int(client.get(f"/{path}").headers["content-length"]) for path in [*named, font]]
    sizes.append(int(page.headers["content-length"]))
    assert sum(sizes) < 150_000


def test_each_language_is_a_document(client: TestClient) -> None:
    """The strongest wish counts: the address, then the browser's own."""
    korean = client.get("/", headers={"Accept-Language": "ko-KR,ko;q=0.9"}).text
    assert '<html lang="ko' in korean
    assert '<html lang="zh' in client.get("/?__lang=zh").text
    assert client.get("/").text == client.get("/?prompt=a+fox&seeds=1").text


def test_what_is_of_no_form_is_refused_in_a_line(client: TestClient) -> None:
    """Not with a traceback, and not with what was sent."""
    for body in (b"", b"{", b"\xff", b"[" * 100_000, b'{"fields": 7}', b'{"fields": {"steps": 1}}'):
        headers = {"Content-Type": "application/json"}
        answer = client.post("/seedgrid/do/generate", content=body, headers=headers)
        assert answer.status_code in (400, 422)
        assert len(answer.text) < 200


def test_a_round_has_no_more_variations_than_fields(client: TestClient) -> None:
    """Ten thousand variations in one click were once believed."""
    for vary in (["a"] * 5, "abc", [1]):
        told = {"state": {}, "around": {"vary": vary}}
        assert client.post("/seedgrid/do/refine", json=told).status_code == 422
