"""The routes of the models panel: installed models, downloads, and actions.

Only this machine's user may change models; a public page's visitors may download listed models.
"""

import re
from functools import partial
from typing import Annotated, Any, Final, Literal

from anyio import to_thread
from fastapi import APIRouter
from pydantic import BaseModel, StringConstraints
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from seedgrid.core.errors import ModelError, RunError, SeedGridError
from seedgrid.core.text import expanded
from seedgrid.core.variables import is_public
from seedgrid.models.cards import first_fitting, size_text
from seedgrid.models.catalogue import FirstModel
from seedgrid.models.download import check_room
from seedgrid.models.hub import host, read_download
from seedgrid.models.loras import may_be_lora
from seedgrid.models.shelf import own_folder
from seedgrid.studio import Studio
from seedgrid.studio.model_manager import ManagedModel, ModelManager
from seedgrid.web.server.calls import ip_of
from seedgrid.web.server.page import json_answer, say, sentence
from seedgrid.web.server.waiting import FileWork
from seedgrid.web.state.page_state import Asks, Who

Json = dict[str, Any]

Action = Literal["download", "stop", "discard", "configure", "delete", "add"]
_FILE_PAGE: Final = re.compile(r"([^/]+/[^/]+)/(?:blob|resolve)/([^/]+)/([^?]+)(?:\?.*)?")


class ModelAction(BaseModel):
    """The model that an action is for."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=1000, strip_whitespace=True)]


def model_routes(studio: Studio, file_work: FileWork) -> APIRouter:
    """Return the routes `models`, `models/ACTION`, and `models/file/NAME` for a dropped file.

    Refused actions have status 200: browsers log other statuses as errors in their console.
    """
    router, manager = APIRouter(prefix="/seedgrid"), studio.model_manager

    @router.get("/models")
    async def models(who: Asks, moving: bool = False) -> Response:
        if moving:  # The page asks for the progress of downloads alone
            return json_answer({"downloads": _downloads(manager, who.language)})
        listed = partial(_listed, manager, who.language, _may_change(who))
        try:
            return json_answer(await file_work.do(who.address, listed))
        except RunError as error:
            return json_answer(_refusal(error, who.language), 429)

    @router.post("/models/{action}")
    def act(action: Action, body: ModelAction, who: Asks) -> Response:
        try:
            if action != "download" and not _may_change(who):  # `manager.download` checks.
                raise ModelError("download_forbidden", value=body.name)
            result = _act(manager, action, body.name, who.language)
            return json_answer({"said": result, "wrong": False})
        except (SeedGridError, OSError) as error:
            return json_answer(_refusal(error, who.language))

    @router.put("/models/file/{name}")
    async def take(name: str, request: Request, who: Asks) -> Response:
        try:
            if not _may_change(who):
                raise ModelError("download_forbidden", value=name)
            check_room(name, own_folder(), int(request.headers.get("content-length", 0)))
            with manager.receiving(name) as path, path.open("wb") as file:
                async for piece in request.stream():
                    await to_thread.run_sync(file.write, piece)
        except (SeedGridError, OSError) as error:
            return json_answer(_refusal(error, who.language))
        except ClientDisconnect:
            return json_answer({"said": "", "wrong": True}, 400)
        return json_answer({"said": say("models_added", who.language, name=name), "wrong": False})

    return router


def _may_change(who: Who) -> bool:
    """Tell whether a request may change models: from this machine, and not on a public page."""
    ip = ip_of(who.host)
    return not is_public() and ip is not None and ip.is_loopback


def _listed(manager: ModelManager, language: str, may_change: bool) -> Json:
    first = [_recommended(each) for each in manager.recommended()]
    loras = ("id", "num_bytes", "hub_id", "made_for", "words", "licence", "deletable")
    return {
        "may": {"change": may_change, "download": may_change or (is_public() and bool(first))},
        "items": [_item(managed, language) for managed in manager.items()],
        "loras": [{name: getattr(each, name) for name in loras} for each in manager.loras()],
        "first": first,
        "downloads": _downloads(manager, language),
    }


def _item(managed: ManagedModel, language: str) -> Json:
    item, lock = managed.item, managed.probe
    names = ("id", "kind", "is_tested", "formats", "num_bytes", "licence", "fitting", "deletable")
    return {name: getattr(item, name) for name in names} | {
        "family": item.family.removesuffix("Pipeline"),
        "size": f"{item.width}×{item.height}",
        "needs": dict(item.needs),
        "fits": managed.fits,
        "lacks": item.problem is not None and item.problem.code == "model_configs",
        "problem": item.problem and sentence(item.problem, language),
        "lock": lock
        and {"holds": lock.holds, "width": lock.asked_width, "date": lock.tested_at[:10]},
    }


def _recommended(model: FirstModel) -> Json:
    shown = {"family": model.family.removesuffix("Pipeline"), "size": model.size.replace("x", "×")}
    fitting = first_fitting(model.needs)
    sizes = {"needs": model.needs, "fits": fitting == "bfloat16", "fitting": fitting}
    return model.model_dump() | shown | sizes


def _downloads(manager: ModelManager, language: str) -> list[Json]:
    return [
        vars(each) | {"error": each.error and sentence(each.error, language)}
        for each in manager.downloads.known()
    ]


def _refusal(error: Exception, language: str) -> Json:
    text = sentence(error, language) if isinstance(error, SeedGridError) else type(error).__name__
    return {"said": text, "wrong": True}


def _act(manager: ModelManager, action: Action, name: str, language: str) -> str:
    """Perform an action on a model; return a sentence to show, empty where the list shows it."""
    if action == "add":
        return _add(manager, name, language)
    if action == "delete":
        return say("models_deleted", language, name=name, size=size_text(manager.delete(name)))
    acts = {
        "download": manager.download,
        "stop": manager.downloads.stop,
        "discard": manager.discard,
        "configure": manager.configure,
    }
    acts[action](name)
    return ""


def _add(manager: ModelManager, name: str, language: str) -> str:
    """Add a folder or a file, or start the download of a hub id or of a hub page's address."""
    hub_id, path = hub_name(name), expanded(name)
    if read_download(hub_id)[0] is not None and not path.exists():
        manager.download(hub_id)
        return ""
    added = manager.add_lora(name) if may_be_lora(path) else manager.add(name)
    return say("models_added", language, name=added.id)


def hub_name(text: str) -> str:
    """Return the hub id that the address of a hub page names; other texts without a last `/`."""
    name = text.removeprefix(f"{host()}/").removeprefix("https://huggingface.co/").rstrip("/")
    page = _FILE_PAGE.fullmatch(name)
    return f"{page[1]}/{page[3]}@{page[2]}" if page else name
