"""The API's OpenAPI document, and a page that shows it: written from `calls.py`, by nobody's hand.

A call is two requests, as Gradio has them: one begins it and gives an id, the other tells how it
goes (server-sent events) and ends with the answer. The page has no script and loads nothing.
"""

import html
import json
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

import seedgrid
from seedgrid.web.calls import CALLS, Call

Json = dict[str, Any]

_SCHEMAS: Final = "#/components/schemas/{model}"
_FILE: Final[Json] = {
    "type": "object",
    "description": "A file that /gradio_api/upload took: the path that it answered with.",
    "required": ["path", "meta"],
    "properties": {
        "path": {"type": "string"},
        "meta": {"type": "object", "example": {"_type": "gradio.FileData"}},
    },
}
_REFUSAL: Final = {"description": "What cannot be, in a sentence.", "content": {"text/plain": {}}}
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
_STYLE: Final = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light dark;overflow-wrap:anywhere}pre{overflow:auto;padding:.75rem;"
    "border:1px solid #8886;border-radius:.5rem}td,th{text-align:left;vertical-align:top;"
    "padding:.2rem 1rem .2rem 0}code{font-size:.95em}h2{margin-top:2.5rem}"
)


def api_routes() -> list[Route]:
    """Return the addresses of the document and of the page that shows it."""
    return [
        Route("/seedgrid/openapi.json", lambda _: JSONResponse(document())),
        Route("/seedgrid/api", _page),
    ]


@cache
def document() -> Json:
    """Return the OpenAPI 3.1 document of the public functions."""
    schemas: Json = {"File": _FILE}
    paths: Json = {"/gradio_api/upload": {"post": _upload()}}
    for call in CALLS:
        paths[f"/gradio_api/call/v2/{call.name}"] = {"post": _begin(call, schemas)}
        paths[f"/gradio_api/call/{call.name}/{{event_id}}"] = {"get": _follow(call, schemas)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "SeedGrid",
            "version": seedgrid.__version__,
            "description": (
                "Begin a call, then read its events: `generating` with what is finished so far,"
                " `complete` with everything, `error` with a sentence. Who goes away stops it."
            ),
        },
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _upload() -> Json:
    files = {"type": "array", "items": {"type": "string", "format": "binary"}}
    schema = {"type": "object", "properties": {"files": files}, "required": ["files"]}
    paths = {"type": "array", "items": {"type": "string"}}
    return {
        "operationId": "upload",
        "summary": "Upload a PNG file for verify or recipe.",
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}},
        "responses": {
            "200": _json("The paths to name in a call.", paths),
            "413": _REFUSAL,
        },
    }


def _begin(call: Call, schemas: Json) -> Json:
    told = _schema(call.told, schemas)
    if call.told.__name__ == "PictureCall":
        schemas["PictureCall"]["properties"]["picture"] = {"$ref": "#/components/schemas/File"}
    event = {"type": "object", "properties": {"event_id": {"type": "string"}}}
    return {
        "operationId": call.name,
        "summary": call.summary,
        "requestBody": {"required": True, "content": {"application/json": {"schema": told}}},
        "responses": {"200": _json("It has begun.", event), "413": _REFUSAL, "503": _REFUSAL},
    }


def _follow(call: Call, schemas: Json) -> Json:
    record = _schema(call.answer, schemas)
    answers: list[Json] = [record]
    if call.gives_pictures:
        pictures = {"type": "array", "description": "The PNG files.", "items": {"type": "object"}}
        answers = [pictures, {"type": "array", "items": record}]
    data = {"type": "array", "prefixItems": answers}
    return {
        "operationId": f"{call.name}_events",
        "summary": f"How {call.name} goes, and what it answers.",
        "parameters": [
            {"name": "event_id", "in": "path", "required": True, "schema": {"type": "string"}}
        ],
        "responses": {
            "200": {
                "description": "Events; the data of `complete` is this.",
                "content": {"text/event-stream": {"schema": data}},
            }
        },
    }


def _json(description: str, schema: Json) -> Json:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _schema(model: Any, schemas: Json) -> Json:  # noqa: ANN401 (a class of pydantic's)
    """Put a class and what it is made of among the schemas; return where it is."""
    schema = model.model_json_schema(ref_template=_SCHEMAS, mode="validation")
    schemas |= schema.pop("$defs", {})
    schemas[model.__name__] = schema
    return {"$ref": _SCHEMAS.format(model=model.__name__)}


def _page(request: Request) -> Response:
    root = str(request.base_url).rstrip("/")
    body = "".join(_sections(root))
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>SeedGrid API</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>"
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": _POLICY})


def _sections(root: str) -> Iterator[str]:
    about = document()["info"]
    where = html.escape(root)
    yield f"<h1>{about['title']} API</h1><p>{html.escape(about['description'])}</p>"
    yield (
        f'<p><a href="openapi.json">OpenAPI document</a>. For agents: the same four as MCP tools'
        f" at <code>{where}/gradio_api/mcp</code>. From Python:</p>"
        f"<pre>from gradio_client import Client\n\nclient = Client({html.escape(repr(root))})\n"
        'pictures, records = client.predict("a red fox", "0-3", api_name="/grid")</pre>'
    )
    for call in CALLS:
        begin = f"/gradio_api/call/v2/{call.name}"
        yield f"<h2>{call.name}</h2><p>{html.escape(call.summary)}</p><p><code>POST {begin}</code>"
        yield f"<br><code>GET /gradio_api/call/{call.name}/EVENT_ID</code></p><table>"
        for name, said in call.told.model_json_schema()["properties"].items():
            kinds = [said.get("type"), *(each.get("type") for each in said.get("anyOf", ()))]
            kind = " or ".join(each for each in kinds if each and each != "null")
            words = html.escape(said.get("description", ""))
            yield f"<tr><td><code>{name}</code></td><td>{kind}</td><td>{words}</td></tr>"
        answers = call.answer.model_json_schema()["properties"]
        what = "the PNG files, and a record of each: " if call.gives_pictures else ""
        yield f"</table><p>Answers {what}<code>{html.escape(', '.join(answers))}</code></p>"
    example = json.dumps({"prompt": "a red fox", "seeds": "0-3"})
    yield "<h2>From a shell</h2>"
    yield (
        f"<pre>curl {where}/gradio_api/call/v2/grid -H 'Content-Type: application/json'"
        f" -d '{html.escape(example)}'\ncurl -N {where}/gradio_api/call/grid/EVENT_ID</pre>"
    )
