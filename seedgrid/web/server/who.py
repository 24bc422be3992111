"""Who sends a request: the visitor, by a cookie that no script reads, and the network address.

A browser without cookies (another site's frame) sends an id in a header and in addresses of files.
"""

import ipaddress
import re
from dataclasses import dataclass
from typing import Annotated, Any, Final

from fastapi import Body, Depends
from starlette.requests import Request
from starlette.responses import Response

from seedgrid.core.picture import new_id
from seedgrid.core.variables import is_public, is_zero_gpu
from seedgrid.locales import ENGLISH
from seedgrid.web.texts import choose_language

COOKIE: Final = "seedgrid-visitor"
_HEADER: Final = "x-seedgrid-visitor"
_ID: Final = re.compile(r"[0-9a-f]{32}")
_YEAR_S: Final = 365 * 86400


@dataclass(frozen=True, kw_only=True)
class Who:
    """The sender of a request, from a `host`; `address` counts as one sender for bounds."""

    visitor: str
    host: str
    address: str
    language: str
    has_cookie: bool = True


NOBODY: Final = Who(visitor="", host="", address="", language=ENGLISH)


async def who(request: Request) -> Who:
    """Return the sender of a request."""
    if is_zero_gpu():
        _lend_to(request)
    host = request.client.host if request.client else ""
    cookie = request.cookies.get(COOKIE, "")
    named = cookie or request.headers.get(_HEADER, "") or request.query_params.get("by", "")
    return Who(
        visitor=named if _ID.fullmatch(named) else new_id(),
        host=host,
        address=network_of(host),
        language=choose_language(request.headers.get("x-seedgrid-language")),
        has_cookie=bool(_ID.fullmatch(cookie)),
    )


Asks = Annotated[Who, Depends(who)]  # A parameter of a route: the sender


async def _stands(asks: Asks, state: Annotated[dict[str, Any], Body(embed=True)] = {}) -> object:  # noqa: B006 (never changed)
    return {**state, "visitor": asks.visitor}


async def _address(asks: Asks) -> str:
    return asks.address


async def _language(asks: Asks) -> str:
    return asks.language


Kept = Annotated[object, Depends(_stands)]  # The sent page state, with its sender as visitor
Address = Annotated[str, Depends(_address)]
Language = Annotated[str, Depends(_language)]
Id = Annotated[str | None, Body(alias="id", max_length=2000)]  # Of a picture or a round


def welcome(request: Request, answer: Response) -> None:
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
    if is_framed:  # Without it browsers that partition cookies drop it in a frame.
        answer.headers["set-cookie"] += "; Partitioned"


def is_this_machine(address: str) -> bool:
    """Tell whether an address is this machine's own."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def network_of(address: str | None) -> str:
    """Return what counts as one address: every household has 2**64 of IPv6."""
    try:
        found = ipaddress.ip_address(address or "")
    except ValueError:
        return address or ""
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)


def _lend_to(request: Request) -> None:
    """Give `spaces` this request: it reads in its headers for whom a GPU is lent."""
    import gradio as gr
    from gradio.context import LocalContext

    LocalContext.request.set(gr.Request(request))
