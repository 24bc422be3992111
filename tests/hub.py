"""A small hub on loopback, for the real client of the real one: models, ranges, redirects, faults.

    with Hub() as hub:
        hub.add("someone/foxes", folder)
        hub.breaks = [1000, 5000]      # the next two answers end after so many bytes
        environment = {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path)}

Large files come from another host name, as from the hub's storage: a token must not follow there.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = ".safetensors"


@dataclass
class Repository:
    """One model on the hub.

    Attributes:
        announced: Sizes other than those of the content.
        card: More of what its card says.
    """

    files: dict[str, bytes]
    licence: str = "apache-2.0"
    gated: bool = False
    announced: dict[str, int] = field(default_factory=dict)
    card: dict[str, str] = field(default_factory=dict)

    def sibling(self, name: str) -> dict[str, Any]:
        content = self.files[name]
        size = self.announced.get(name, len(content))
        told: dict[str, Any] = {"size": size, "oid": _git_sha1(content)}
        if name.endswith(LARGE):
            told["lfs"] = {"oid": sha256(content), "size": size, "pointerSize": 134}
        return told


def _git_sha1(content: bytes) -> str:
    head = f"blob {len(content)}\0".encode()
    return hashlib.sha1(head + content, usedforsecurity=False).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Hub:
    """The server, and what it shall do wrong.

    Attributes:
        breaks: The next answers with large files end after so many bytes, without a goodbye.
        spoils: Large files are sent with one bit changed.
        may_go: While it is not set, large files stop after their first piece.
        asked: Path, `Range` and `Authorization` of every request so far.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.breaks: list[int] = []
        self.spoils = False
        self.may_go = threading.Event()
        self.may_go.set()
        self.asked: list[tuple[str, str | None, str | None]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.port = self._server.server_address[1]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.may_go.set()
        self._server.shutdown()
        self._server.server_close()

    def add(self, hub_id: str, folder: Path, more: Mapping[str, bytes] | None = None) -> Repository:
        """Publish a folder, and more files beside."""
        files = {
            path.relative_to(folder).as_posix(): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        self.repositories[hub_id] = Repository(files | dict(more or {}))
        return self.repositories[hub_id]

    def starts(self) -> list[int]:
        """Where every request for a large file begins."""
        asked = [asked for path, asked, _ in self.asked if path.startswith("/storage/")]
        return [int((each or "bytes=0-").removeprefix("bytes=").split("-")[0]) for each in asked]

    def _handler(hub) -> type[BaseHTTPRequestHandler]:  # noqa: N805 (the handler has a self)
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_GET(self) -> None:
                path = unquote(urlsplit(self.path).path)
                headers = self.headers
                hub.asked.append((path, headers.get("Range"), headers.get("Authorization")))
                if path.startswith("/storage/"):
                    self.large(*path.removeprefix("/storage/").split("/", 2))
                elif path.startswith("/api/models/"):
                    self.about(path.removeprefix("/api/models/").split("/"))
                else:
                    self.file(*path.removeprefix("/").split("/", 4))

            def about(self, parts: list[str]) -> None:
                hub_id, what, revision = "/".join(parts[:2]), *(*parts[2:4], "", "")[:2]
                found = hub.repositories.get(hub_id)
                if found is None:
                    self.refuse(401, "RepoNotFound")
                elif revision not in ("", "main", COMMIT):
                    self.refuse(404, "RevisionNotFound")
                elif what == "tree":
                    self.say([{"type": "file", "path": n} | found.sibling(n) for n in found.files])
                else:
                    self.say(self.info(hub_id, found))

            def info(self, hub_id: str, found: Repository) -> dict[str, Any]:
                siblings = []
                for name in found.files:
                    told = found.sibling(name)
                    lfs = told.get("lfs")
                    if lfs:
                        lfs = {**lfs, "sha256": lfs["oid"]}
                    blob = {"rfilename": name, "size": told["size"], "blobId": told["oid"]}
                    siblings.append(blob | ({"lfs": lfs} if lfs else {}))
                return {
                    "id": hub_id,
                    "sha": COMMIT,
                    "gated": "manual" if found.gated else False,
                    "tags": [f"license:{found.licence}"],
                    "cardData": {"license": found.licence} | found.card,
                    "siblings": siblings,
                }

            def file(self, owner: str, name: str = "", *rest_of_path: str) -> None:
                found = hub.repositories.get(f"{owner}/{name}")
                rest = "".join(rest_of_path[2:])
                if found is None:
                    self.refuse(404, "RepoNotFound")
                elif found.gated:
                    self.refuse(403, "GatedRepo")
                elif rest not in found.files:
                    self.refuse(404, "EntryNotFound")
                elif rest.endswith(LARGE):
                    where = f"http://localhost:{hub.port}/storage/{owner}/{name}/{rest}"
                    told = found.sibling(rest)["lfs"]
                    linked = {"X-Linked-ETag": told["oid"], "X-Linked-Size": str(told["size"])}
                    self.answer(302, b"", {"Location": where, "X-Repo-Commit": COMMIT} | linked)
                else:
                    told = found.sibling(rest)
                    headers = {"ETag": f'"{told["oid"]}"', "X-Repo-Commit": COMMIT}
                    self.answer(200, found.files[rest], headers)

            def large(self, owner: str, name: str, rest: str) -> None:
                content = hub.repositories[f"{owner}/{name}"].files[rest]
                if hub.spoils:
                    content = content[:-1] + bytes([content[-1] ^ 1])
                asked = self.headers.get("Range", "bytes=0-")
                start = int(asked.removeprefix("bytes=").split("-")[0])
                part = content[start:]
                self.send_response(206)
                self.send_header("Content-Length", str(len(part)))
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
                self.end_headers()
                end = hub.breaks.pop(0) if hub.breaks else len(part)
                for at in range(0, min(end, len(part)), 4096):
                    if at and not hub.may_go.is_set():
                        hub.may_go.wait()
                    self.wfile.write(part[at : min(at + 4096, end)])
                if end < len(part):
                    self.wfile.flush()
                    self.close_connection = True

            def say(self, data: object) -> None:
                self.answer(200, json.dumps(data).encode(), {"Content-Type": "application/json"})

            def refuse(self, code: int, reason: str) -> None:
                self.answer(code, b"{}", {"X-Error-Code": reason})

            def answer(self, code: int, body: bytes, headers: Mapping[str, str]) -> None:
                self.send_response(code)
                for each in headers.items():
                    self.send_header(*each)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

        return Handler
