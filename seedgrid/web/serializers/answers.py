"""What handlers answer with: parts of the page as values. Knows no component."""

from dataclasses import dataclass

from seedgrid.web.serializers.stage import Json
from seedgrid.web.state.page_state import PageState


@dataclass(frozen=True, kw_only=True)
class PageUpdate:
    """What a handler changes on the page; None leaves a part as it is.

    Attributes:
        place: Where the browser is then; told before what is shown there.
        advice: What is to know of the fields before anything is painted.
        fields: What the fields shall show, by name, of a dropped picture or a link.
    """

    state: PageState | None = None
    place: Json | None = None
    fields: Json | None = None
    advice: list[Json] | None = None
    stage: Json | None = None
    status: Json | None = None
    rail: Json | None = None
    picked: Json | None = None


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How a run goes: what changes on the page while it goes on; empty when nothing did."""

    stage: Json | None = None
    status: Json | None = None
    rail: Json | None = None
