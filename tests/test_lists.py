"""Lists: `__name__` in a prompt or a variation opens a text file of the artist's own."""

from __future__ import annotations

import pytest
from following import nowhere
from refusing import refused

from seedgrid.core.errors import InputError
from seedgrid.core.prompts import alternatives
from seedgrid.core.request import Request, advise
from seedgrid.models import registry
from seedgrid.studio import Studio
from seedgrid.studio.resolving import MAX_LIST_KB
from seedgrid.web.serializers.form import FormPayload, RoundPayload
from seedgrid.web.server.routes import PageServices


def write(studio: Studio, name: str, content: bytes) -> None:
    folder = studio.library_folder / "styles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.txt").write_bytes(content)


def refusal(studio: Studio, text: str) -> InputError:
    with pytest.raises(InputError) as caught:
        studio.with_lists([text])
    return caught.value


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a __coat__ fox", ["a red fox", "a dark sea fox", "a dark sky fox"]),
        ("{a __coat__|no} fox", ["a red fox", "no fox", "a dark sea fox", "a dark sky fox"]),
        ("__coat____size__", ["redbig", "redsmall", "dark seabig", "dark seasmall"]),
        ("__x-1_ä__", ["it"]),
        ("a_b __ c __ d, __, ____", ["a_b __ c __ d, __, ____"]),
        (f"__{'n' * 65}__", [f"__{'n' * 65}__"]),
    ],
)
def test_a_name_stands_for_each_line_of_its_file(
    studio: Studio, text: str, found: list[str]
) -> None:
    """Empty lines and notes are left out; braces open as anywhere; what is no name is words."""
    write(studio, "coat", b"\xef\xbb\xbf# coats\r\n\r\n red \r\ndark {sea|sky}\r\n")
    write(studio, "size", b"{big|small}")
    write(studio, "x-1_ä", b"it")
    opened = dict.fromkeys(x for each in studio.with_lists([text]) for x in alternatives(each))
    assert list(opened)[: len(found)] == found


def test_the_page_opens_lists_and_counts_their_pictures(studio: Studio) -> None:
    """In the prompt, the lines beside it and a variation; the bound stands and says its number."""
    handlers = PageServices(studio).handlers
    write(studio, "coat", b"red\nblue\n")
    write(studio, "many", b"\n".join(b"%d" % number for number in range(65)))
    asked = {"prompt": "a __coat__ fox", "seeds": "0-3", "size": "64x64", "steps": "1"}
    shown = handlers.on_generate(FormPayload(**asked, more_prompts="a __coat__ owl"), nowhere())
    assert len(shown.stage["cells"]) == 16
    run = studio.engine.run(shown.state.run or "")
    place = shown.state.move(picked=run.result()[0].id)
    varied = handlers.on_refine(RoundPayload(vary=(", __coat__ hat", "", "", "")), place)
    assert len(varied.stage["cells"]) == 2
    refused = handlers.on_generate(FormPayload(**(asked | {"prompt": "__many__"})), nowhere())
    assert (refused.status["key"], refused.status["data"]["value"]) == (
        "error_pictures_count",
        "260",
    )


def test_an_unknown_list_is_told_with_its_place(studio: Studio) -> None:
    """Nothing is painted, nothing is lost; a name is never a path."""
    error = refusal(studio, "def __init__(fox)")
    assert (error.code, error.field) == ("list_unknown", "prompt")
    assert str(studio.library_folder / "styles" / "init.txt") in str(error)
    for hostile in ("__../x__", "__a/b__", "__a\\b__", "__a.txt__", "__/etc/passwd__", "__a\0b__"):
        assert studio.with_lists([hostile]) == (hostile,)
    with refused(InputError, field="vary"):
        studio.start_refine(studio.grid("a fox", "1")[0], [", __init__"])


@pytest.mark.parametrize(
    "content",
    [b"", b"# notes alone\n", b"\xff\xfe", b"x\n" * (MAX_LIST_KB * 501), b"red\n__coat__\n"],
    ids=["empty", "notes", "not UTF-8", "large", "another list"],
)
def test_a_file_that_is_no_list_is_refused(studio: Studio, content: bytes) -> None:
    """In one sentence that says what a list is."""
    write(studio, "coat", content)
    error = refusal(studio, "a __coat__ fox")
    assert error.code == "list_file"
    assert "coat.txt" in str(error)


def test_a_visitor_of_a_public_page_has_no_lists(
    studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the owner's lines nor a path of the server go out."""
    write(studio, "coat", b"red\n")
    monkeypatch.setenv("SEEDGRID_PUBLIC", "1")
    error = refusal(studio, "a __coat__ fox")
    assert error.code == "list_public"
    assert str(studio.library_folder) not in str(error)


def test_too_many_lines_are_refused_before_they_are_opened(studio: Studio) -> None:
    """The number of pictures stands in the sentence."""
    write(studio, "coat", b"a\nb\nc\nd\n")
    error = refusal(studio, "__coat__ " * 5)
    assert (error.code, error.field, error.data["value"]) == ("pictures_count", "prompt", 1024)
    picture = studio.grid("a fox", "1", width=64, height=64)[0]
    for many in ("__coat__ " * 5, "{a|b|c|d}" * 5):
        with refused(InputError, "pictures_count", field="vary"):
            studio.start_refine(picture, [", artsy", f", {many}"])


def test_the_name_of_a_list_is_no_unknown_word() -> None:
    """What it holds is looked at when it is opened."""
    card = registry.find("bundled").card
    assert advise(Request(prompt="a __coat__ cat"), card, suffixes=[", __light__"]) == ()
