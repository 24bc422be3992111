"""`Who` sends a request; `PageState`: what a page shows; `PageUpdate`: its parts that change.

A cookie that no script reads names the visitor. A browser without cookies (in another site's frame)
sends an id in a header and in addresses of files. Neither ids nor page states are trusted.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from ipaddress import IPv6Address, ip_network
from itertools import count
from typing import Annotated, Any, Final, ParamSpec, Self, TypeVar

from fastapi import Body, Depends
from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from seedgrid.core.errors import SeedGridError, as_ours
from seedgrid.core.picture import PictureId, new_id
from seedgrid.core.recipe import Value
from seedgrid.core.variables import is_public, is_zero_gpu
from seedgrid.locales import ENGLISH
from seedgrid.web.serializers.stage import Json, complain
from seedgrid.web.server.calls import ip_of
from seedgrid.web.server.page import choose_language

COOKIE: Final = "seedgrid-visitor"
_HEADER: Final = "x-seedgrid-visitor"
_ID: Final = re.compile(r"[0-9a-f]{32}")
_YEAR_S: Final = 365 * 86400
_MAX_EPOCH: Final = 2**53 - 2**20  # JavaScript's numbers are exact up to 2**53


@dataclass(frozen=True, kw_only=True)
class Who:
    """The sender of a request. `host` is its IP; `address`, for bounds, an IPv4 or IPv6 /64."""

    visitor: str
    host: str
    address: str
    language: str
    has_cookie: bool = True


NOBODY: Final = Who(visitor="", host="", address="", language=ENGLISH)


async def who(request: Request) -> Who:
    """Return the sender of a request."""
    if is_zero_gpu():  # `spaces` reads from the request's headers who is lent a GPU.
        import gradio as gr
        from gradio.context import LocalContext

        LocalContext.request.set(gr.Request(request))
    host = request.client.host if request.client else ""
    cookie = request.cookies.get(COOKIE, "")
    named = cookie or request.headers.get(_HEADER, "") or request.query_params.get("by", "")
    return Who(
        visitor=named if _ID.fullmatch(named) else new_id(),
        host=host,
        address=network_of(host),
        language=choose_language(
            request.headers.get("x-seedgrid-language"), request.query_params.get("lang")
        ),
        has_cookie=bool(_ID.fullmatch(cookie)),
    )


Asks = Annotated[Who, Depends(who)]  # A parameter of a route: the sender


Id = Annotated[str | None, Body(alias="id", max_length=2000)]  # Of a picture or a round


def set_visitor(request: Request, answer: Response) -> None:
    """Set a cookie for a new visitor."""
    if _ID.fullmatch(request.cookies.get(COOKIE, "")):
        return
    is_framed = is_public() and request.headers.get("host", "").endswith(".hf.space")
    answer.set_cookie(
        COOKIE,
        new_id(),
        max_age=_YEAR_S,
        httponly=True,
        secure=is_framed,
        samesite="none" if is_framed else "lax",
    )
    if is_framed:  # Browsers that partition cookies need this in a frame.
        answer.headers["set-cookie"] += "; Partitioned"


def network_of(address: str) -> str:
    """Return what counts as one address: of IPv6 the first 64 bits, which one household shares."""
    parsed = ip_of(address)
    if isinstance(parsed, IPv6Address) and parsed.ipv4_mapped is None:
        return str(ip_network((parsed, 64), strict=False))
    return str(getattr(parsed, "ipv4_mapped", None) or parsed or address)


class PageState(Value):
    """Ids of the work and the round on the stage, the picture in the card, and the last run.

    `visitor`, the name of this browser in the queue, and `address` come from the request itself.
    `epoch` grows with every update; the browser shows only the greatest, so that a late answer
    does not overwrite a newer one.
    """

    visitor: PictureId
    address: str = ""
    work: PictureId | None = None
    round: PictureId | None = None
    picked: PictureId | None = None
    run: PictureId | None = None
    epoch: Annotated[int, Field(ge=0, le=_MAX_EPOCH)] = 0

    def move(self, **changes: str | None) -> Self:
        """Return a copy with other ids and a new epoch."""
        return self.model_copy(update={**changes, "epoch": next_epoch(self.epoch)})

    def to_browser(self) -> dict[str, Any]:
        """Return the state that the browser stores; every request has visitor and address."""
        return self.model_dump(mode="json", exclude={"visitor", "address"})


_epochs: Final = count(time.time_ns() // 1_000_000)  # From the clock, to grow over restarts


def next_epoch(epoch: int = 0) -> int:
    """Return a number above `epoch`, and above those that the counter gave before."""
    return max(next(_epochs), epoch + 1)


def read_state(sent: object, sender: Who) -> PageState:
    """Return the page state that a sender's browser sent; a new one where it cannot be read."""
    own = {"visitor": sender.visitor, "address": sender.address}
    try:
        return PageState.model_validate((sent if isinstance(sent, dict) else {}) | own)
    except ValidationError:
        return PageState.model_validate(own)


async def _sent_state(
    sender: Asks,
    state: Annotated[dict[str, Any], Body(embed=True)] = {},  # noqa: B006 (never changed)
) -> PageState:
    return read_state(state, sender)


State = Annotated[PageState, Depends(_sent_state)]  # A parameter of a route: the page state


@dataclass(frozen=True, kw_only=True)
class PageUpdate:
    """The parts of the page that change; None leaves a part as it is."""

    state: PageState | None = None  # For callers in this process; the browser gets `place`
    keyed: bool | None = None  # Whether addresses must name the visitor, as there is no cookie
    offer: Json | None = None  # What each setting offers with the chosen model
    place: Json | None = None  # The ids of what the page shows, and what can be done with it
    fields: Json | None = None  # Values for the fields, by name, of a dropped picture or a link
    advice: list[Json] | None = None  # Notices at fields, before anything is painted
    stage: Json | None = None
    status: Json | None = None
    rail: Json | None = None
    picked: Json | None = None
    library: Json | None = None
    verdict: Json | None = None
    live: Json | None = None  # The answer to a live request, or how long four pictures take
    queue: list[Json] | None = None  # The visitor's other runs

    def parts(self) -> dict[str, Any]:
        """Return the parts that change, by name."""
        return {k: v for k, v in vars(self).items() if v is not None and k != "state"}


P = ParamSpec("P")
Actions = TypeVar("Actions")


def reports_errors(actions: type[Actions]) -> type[Actions]:
    """Let each `on_...` method defined in a class answer an error with a status line alone."""

    def reporting(action: Callable[P, PageUpdate]) -> Callable[P, PageUpdate]:
        @wraps(action)
        def answer(*args: P.args, **kwargs: P.kwargs) -> PageUpdate:
            try:
                return action(*args, **kwargs)
            except (SeedGridError, MemoryError) as error:
                # With a new epoch, so that no older update replaces the error.
                return PageUpdate(status=complain(next_epoch(), as_ours(error)))

        return answer

    for name, action in tuple(vars(actions).items()):
        if name.startswith("on_"):
            setattr(actions, name, reporting(action))
    return actions
