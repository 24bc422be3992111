"""Two visitors of a public page: what one can name and the other owns stays the other's.

A published picture tells everybody its id, its work's, its parent's, and the digest of what it
began from. Bert has Anna's published picture in his own library, and asks for everything else.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast
from zipfile import ZipFile

import pytest
from PIL import Image
from servers import client_of
from starlette.applications import Starlette
from starlette.testclient import TestClient
from test_file_work import ROUTES, paths_of

from seedgrid.core.picture import Entry, new_id
from seedgrid.diffusion.backend import Placement
from seedgrid.library.visitor_libraries import VisitorLibraries
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web.server.routes import PageServices
from seedgrid.web.state.page_state import COOKIE, PageState
from seedgrid.web.state.snapshot import Snapshot, Snapshots

ANNA, BERT = "a" * 32, "b" * 32
FIELDS = {"prompt": "a red fox", "seeds": "5-6", "steps": "2", "size": "64x64"}
OF_NOBODY = (
    *("/", "/healthz", "/seedgrid/assets/{version}/{name:path}"),
    *("/seedgrid/opening/{number}.webp", "/seedgrid/models", "/seedgrid/models/{action}"),
    *("/seedgrid/models/file/{name}", "/seedgrid/drop"),
    *(f"/seedgrid/do/{each}" for each in ("offer", "advise", "example", "empty")),
    *(f"/seedgrid/do/{each}" for each in ("search", "stop", "queue")),
)
"""Addresses at which nobody's picture can be named."""


@dataclass
class Page:
    """The page of two, and what Anna published of hers."""

    client: TestClient
    libraries: VisitorLibraries
    photo: str
    published: Entry
    parent: Entry
    runs: tuple[Snapshot, Snapshot] | None = None

    def as_(self, visitor: str) -> TestClient:
        self.client.cookies.clear()
        self.client.cookies.set(COOKIE, visitor)
        return self.client

    def do(self, visitor: str, action: str, **told: Any) -> dict[str, Any]:
        answer = self.as_(visitor).post(f"/seedgrid/do/{action}", json=told)
        assert answer.status_code == 200, answer.text
        return cast("dict[str, Any]", answer.json())

    def do_to_its_end(self, visitor: str, place: dict[str, Any]) -> None:
        """Listen to a run until it ends."""
        answer = self.as_(visitor).post("/seedgrid/do/follow", json={"state": place})
        assert answer.status_code == 200

    def state(self, **more: str) -> dict[str, str]:
        lineage = self.published.lineage
        found = {"work": lineage.work_id, "round": lineage.round_id, "picked": self.parent.id}
        return found | more


def kept(answer: dict[str, Any]) -> dict[str, Any]:
    """What a browser keeps of its place."""
    return {name: answer["place"][name] for name in ("work", "round", "picked", "run", "epoch")}


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("public")
    libraries = VisitorLibraries(folder / "visitors")
    placement = Placement()
    with Studio(library=folder / "own", backend=FakeBackend(), placement=placement) as studio:
        client = client_of(PageServices(studio, libraries), folder / "uploads")
        page = Page(client, libraries, "", cast("Entry", None), cast("Entry", None))
        photo = io.BytesIO()
        Image.linear_gradient("L").convert("RGB").save(photo, "JPEG")
        files = {"files": ("me.jpg", photo.getvalue())}
        answer = page.as_(ANNA).post("/seedgrid/drop", data={"state": "{}"}, files=files)
        page.photo = answer.json()["fields"]["start"]
        fields = FIELDS | {"start": page.photo}
        begun = kept(page.do(ANNA, "generate", fields=fields))
        library = libraries.of(ANNA)
        page.do_to_its_end(ANNA, begun)
        page.parent = library.work(begun["work"])[0]
        around = {"state": begun | {"picked": page.parent.id}, "around": {"vary": [", artsy"]}}
        refined = kept(page.do(ANNA, "refine", **around))
        page.do_to_its_end(ANNA, refined)
        page.published = library.round(refined["round"])[0]
        dropped = {"files": ("她" * 99 + ".png", page.published.path.read_bytes())}
        answer = page.as_(BERT).post("/seedgrid/drop", data={"state": "{}"}, files=dropped)
        assert answer.json()["status"]["key"] == "status_taken_in"
        snapshots = Snapshots(studio, libraries)
        page.runs = tuple(  # type: ignore[assignment] # two
            snapshots.of(PageState(visitor=each, run=refined["run"])) for each in (ANNA, BERT)
        )
        yield page


def test_a_run_is_shown_to_its_owner_only(page: Page) -> None:
    """What forms in it is a picture too, and its words are hers."""
    assert page.runs is not None
    assert [each.run is not None for each in page.runs] == [True, False]


def test_every_address_at_which_a_picture_can_be_named_is_tried_here(page: Page) -> None:
    """A new route has no place in this file: think of the other visitor first."""
    tried = {*OF_NOBODY, *FILES, LIVE, *(f"/seedgrid/do/{each}" for each in ACTIONS)}
    assert tried == ROUTES.keys() == set(paths_of(cast("Starlette", page.client.app).routes))


LIVE = "/seedgrid/live/{recipe_id}.png"


def test_a_live_picture_is_shown_to_its_owner_alone(page: Page) -> None:
    """By its recipe, which says what somebody types at this moment."""
    told = {"number": 1, "fields": FIELDS}
    answer = page.as_(ANNA).post("/seedgrid/do/live-generate", json=told)
    sources = set(re.findall(r"live/[0-9a-f]{64}\.png", answer.text))
    assert len(sources) == 2
    for source in sources:
        assert page.as_(ANNA).get(f"/seedgrid/{source}").status_code == 200
        assert page.as_(BERT).get(f"/seedgrid/{source}").status_code == 404


FILES = {
    "/seedgrid/pictures/{picture_id}.png": "pictures/{id}.png",
    "/seedgrid/thumbs/{picture_id}.jpg": "thumbs/{id}.jpg",
    "/seedgrid/download/selected.zip": "download/selected.zip?ids={id}*",
    "/seedgrid/download/{picture_id}/{scope}.zip": "download/{id}/work.zip",
    "/seedgrid/export/{picture_id}/{scope}.{kind}": "export/{id}/picture.py",
}


@pytest.mark.parametrize("path", FILES.values())
def test_a_file_goes_to_its_owner_alone(page: Page, path: str) -> None:
    """By its id, which every picture that was begun from it names."""
    asked = f"/seedgrid/{path.format(id=page.parent.id)}"
    assert page.as_(ANNA).get(asked).status_code == 200
    answer = page.as_(BERT).get(asked)
    assert answer.status_code == 404 or answer.json() == []


def test_a_browser_without_cookies_says_who_it_is_in_the_address(page: Page) -> None:
    """In another site's frame no cookie is kept."""
    page.client.cookies.clear()
    asked = f"/seedgrid/pictures/{page.parent.id}.png"
    assert page.client.get(asked, params={"by": ANNA}).status_code == 200
    assert page.client.get(asked).status_code == 404


def test_the_library_remembers_nothing_for_another_visitor(page: Page) -> None:
    """How quickly a grid comes would tell what others painted."""
    begun = kept(page.do(BERT, "generate", fields=FIELDS | {"prompt": "Bert's own fox"}))
    page.do_to_its_end(BERT, begun)
    library = page.libraries.of(BERT)
    ids = [entry.id for entry in library.work(begun["work"])]
    assert len(ids) == 2
    again = page.do(ANNA, "generate", fields=FIELDS | {"prompt": "Bert's own fox"})
    page.do_to_its_end(ANNA, kept(again))
    shown = page.do(ANNA, "load", state=kept(again))
    assert shown["status"]["key"] == "status_done"
    library.trash(*ids)
    library.empty_trash()


def test_a_work_holds_only_what_its_asker_has(page: Page) -> None:
    """Bert has one picture of Anna's work, and no more of it comes to him."""
    found = page.as_(BERT).get(f"/seedgrid/download/{page.published.id}/work.zip")
    with ZipFile(io.BytesIO(found.content)) as archive:
        assert len(archive.namelist()) == 1


ACTIONS: dict[str, dict[str, Any]] = {
    "load": {},
    "generate": {"fields": FIELDS | {"start": "PARENT"}},
    "again": {},
    "back": {},
    "go": {"id": "ROUND"},
    **{
        each: {"around": {"vary": [", artsy"]}}
        for each in ("refine", "subtle", "strong", "final", "final-4")
    },
    **{each: {"id": "PARENT"} for each in ("pick", "open")},
    "favourite": {"id": "PARENT", "favourite": True},
    "note": {"id": "PARENT", "note": "mine"},
    "trash": {"asked": {"pictures": ["PARENT"], "trashed": True}},
    "mark": {"asked": {"pictures": ["PARENT"], "favourite": True}},
    "verify": {"id": "PARENT"},
    "follow": {},
    "live-generate": {"number": 1, "fields": FIELDS | {"start": "PARENT"}},
    "live-refine": {"number": 1, "around": {"vary": [", artsy"]}},
}


@pytest.mark.parametrize("action", ACTIONS)
def test_an_action_reaches_no_picture_of_another_visitor(page: Page, action: str) -> None:
    """Whatever state a browser tells: no answer shows Anna's picture, and nothing is changed."""
    told = json.dumps(ACTIONS[action] | {"state": page.state()})
    named = told.replace("PARENT", page.parent.id).replace("ROUND", page.parent.lineage.round_id)
    answer = page.as_(BERT).post(f"/seedgrid/do/{action}", json=json.loads(named))
    assert answer.status_code == 200
    if action == "verify":  # which says first of which picture it tells
        assert "picture_unknown" in answer.text
    else:
        assert f'"id": "{page.parent.id}"' not in answer.text
    assert page.libraries.of(ANNA).get(page.parent.id) == page.parent
    assert {each.id for each in page.libraries.of(BERT).search("").entries} == {page.published.id}


def test_what_is_refined_together_is_all_the_askers_own(page: Page) -> None:
    """Bert's own picture does not take Anna's along."""
    around = {"vary": [", artsy"], "also": [page.parent.id]}
    answer = page.do(BERT, "refine", around=around, state=page.state(picked=page.published.id))
    assert answer["status"]["key"] == "error_picture_unknown"
    assert {each.id for each in page.libraries.of(BERT).search("").entries} == {page.published.id}


@pytest.mark.parametrize("action", ["again", "refine", "subtle"])
def test_nobody_paints_from_a_photograph_by_its_digest(page: Page, action: str) -> None:
    """A published picture names it; only the library that holds it may begin from it."""
    told = {"state": page.state(picked=page.published.id), "around": {"vary": [", artsy"]}}
    assert page.do(BERT, action, **told)["status"]["key"] == "error_start_missing"


def test_a_photograph_is_no_start_by_its_digest(page: Page) -> None:
    """Neither typed as a start nor in a line of a refinement, nor as a thumbnail."""
    fields = FIELDS | {"start": page.photo}
    assert page.do(BERT, "generate", fields=fields)["status"]["key"] == "error_start_unknown"
    asked = f"/seedgrid/thumbs/{page.photo}.jpg"
    assert page.as_(ANNA).get(asked).status_code == 200
    assert page.as_(BERT).get(asked).status_code == 404


def test_no_verdict_shows_a_photograph(page: Page) -> None:
    """A forged picture that names the digest would show it in its difference."""
    with page.as_(BERT).stream(
        "POST", "/seedgrid/do/verify", json={"id": page.published.id}
    ) as told:
        assert "error_start_missing" in "".join(told.iter_text())


@pytest.mark.parametrize("kind", ["py", "zip"])
def test_an_export_holds_the_photograph_only_when_its_owner_asks(page: Page, kind: str) -> None:
    """Else it says where it would go; somebody else is refused."""
    asked = f"/seedgrid/export/{page.published.id}/picture.{kind}"
    plain = page.as_(ANNA).get(asked).content
    full = page.as_(ANNA).get(asked, params={"starts": True}).content
    size = (page.libraries.of(ANNA).starts / f"{page.photo}.png").stat().st_size
    assert len(full) - len(plain) > size / 2
    assert page.as_(BERT).get(asked).status_code == 200
    assert page.as_(BERT).get(asked, params={"starts": True}).status_code == 409


def test_an_unknown_visitor_is_a_new_one(page: Page) -> None:
    """What is no cookie of ours names nobody."""
    page.client.cookies.clear()
    page.client.cookies.set(COOKIE, f"{new_id()}x")
    assert page.client.get(f"/seedgrid/pictures/{page.parent.id}.png").status_code == 404
