"""One hostile visitor: does one rude thing after the other, and expects to be refused or answered.

Whatever it does, an answer of 500 or more that is no plain refusal (503, 507) is a fault of ours.
"""

from __future__ import annotations

import io
import json
import random
import secrets
import socket
import time
import zipfile
from collections import Counter
from functools import cache
from typing import Any
from urllib.parse import urlsplit

import httpx
from foreign_files import blank_png
from PIL import Image

from tools.load.visitor import Tally

_REFUSED = (503, 507)
_PATIENCE_S = 20.0


@cache
def _huge_pictures() -> list[tuple[str, bytes]]:
    """Pictures just below what may be unpacked, and far above."""
    photo, web = io.BytesIO(), io.BytesIO()
    Image.new("RGB", (9000, 9000)).save(photo, "JPEG", progressive=True)
    Image.new("RGB", (3900, 3900)).save(web, "WEBP", quality=1, method=0)
    return [
        ("huge.png", blank_png(8000, 7900, colour=2)),
        ("clear.png", blank_png(8000, 8000, colour=6)),
        ("photo.jpg", photo.getvalue()),
        ("web.webp", web.getvalue()),
    ]


class Hostile:
    """Attacks until it is told to stop.

    Attributes:
        done: How often it did what.
    """

    def __init__(self, address: str, seed: int) -> None:
        self.tally = Tally()
        self.done: Counter[str] = Counter()
        self._address = address
        self._random = random.Random(seed)  # noqa: S311 (a crowd, no secret)
        self._client = httpx.Client(base_url=address, timeout=_PATIENCE_S)
        self._open: list[socket.socket] = []

    @property
    def num_requests(self) -> int:
        """How much was tried so far."""
        return self.done.total()

    def live(self, until_s: float) -> None:
        """Do one rude thing after the other until this time."""
        kinds = [
            *(self._forged, self._oversized, self._backtracking, self._broken_upload),
            *(self._abandoned, self._slow_reader, self._left_open, self._nested, self._many_ids),
            *(self._verify_flood, self._odd_paths, self._huge_picture, self._bad_zip),
            self._long_state,
        ]
        while time.monotonic() < until_s:
            kind = self._random.choice(kinds)
            self.done[kind.__name__.removeprefix("_")] += 1
            try:
                kind()
            except (httpx.TimeoutException, TimeoutError) as error:
                self.tally.errors.append(f"{kind.__name__}: {type(error).__name__}")
            except (httpx.HTTPError, OSError, ValueError, KeyError):
                self.tally.refused += 1
            time.sleep(self._random.uniform(0.1, 0.8))
        for each in self._open:
            each.close()
        self._client.close()

    def _judge(self, answer: httpx.Response, what: str) -> None:
        if answer.status_code >= 400:
            self.tally.refused += 1
        if answer.status_code >= 500 and answer.status_code not in _REFUSED:
            said = answer.text[:80]
            self.tally.errors.append(f"{what}: {answer.status_code} {said}")

    def _ask(self, action: str, **told: object) -> None:
        body = {"state": self._state()} | told
        headers = {"X-SeedGrid-Visitor": secrets.token_hex(16)}
        answer = self._client.post(f"/seedgrid/do/{action}", json=body, headers=headers)
        self._judge(answer, action)

    def _state(self) -> dict[str, Any]:
        return {"round": secrets.token_hex(16), "epoch": 1}

    def _forged(self) -> None:
        asked = {"prompt": "hostile", "seeds": "0-255", "size": "2048x2048", "steps": "150"}
        self._ask("generate", fields=asked)
        self._ask("pick", id="../" * 20)

    def _oversized(self) -> None:
        body = b"[" + b"{}," * 700_000 + b"{}]"
        self._judge(self._client.post("/gradio_api/queue/join", content=body), "oversized")

    def _nested(self) -> None:
        body = b'{"data":' + b"[" * 5000
        self._judge(self._client.post("/seedgrid/do/generate", content=body), "nested")
        self._judge(self._client.post("/seedgrid/do/follow", content=b"[" * 30), "nested")

    def _backtracking(self) -> None:
        asked = {"prompt": "hostile", "seeds": "1   " * 400 + "x", "size": "9" * 200 + "x"}
        self._ask("generate", fields=asked)
        self._ask("load", link="prompt=a&seeds=" + "1+++" * 200 + "x&mix=" + "1:" * 99)

    def _upload(self, name: str, data: bytes) -> None:
        for path in ("/gradio_api/upload", "/seedgrid/drop"):
            form = {"state": json.dumps(self._state())}
            self._judge(self._client.post(path, data=form, files={"files": (name, data)}), path)

    def _broken_upload(self) -> None:
        with self._raw() as raw:
            raw.sendall(
                b"POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data;"
                b" boundary=b\r\nContent-Length: 200000\r\n\r\n--b\r\nContent-Disposition: "
                b'form-data; name="files"; filename="a.png"\r\n\r\n' + bytes(50_000)
            )

    def _huge_picture(self) -> None:
        self._upload(*self._random.choice(_huge_pictures()))

    def _bad_zip(self) -> None:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as bundle:
            for number in range(50):
                bundle.writestr(f"../../{number}.png", bytes(1_000_000))
        data = bytearray(buffer.getvalue())
        for _ in range(20):
            data[self._random.randrange(len(data))] ^= 255
        self._upload("bad.zip", bytes(data))

    def _abandoned(self) -> None:
        with self._client.stream(
            "POST", "/seedgrid/do/follow", json={"state": self._state()}
        ) as news:
            self._judge_head(news)

    def _judge_head(self, answer: httpx.Response) -> None:
        if answer.status_code >= 500 and answer.status_code not in _REFUSED:
            self.tally.errors.append(f"stream: {answer.status_code}")

    def _slow_reader(self) -> None:
        self._hold(b"GET /gradio_api/info HTTP/1.1\r\nHost: x\r\n\r\n")

    def _left_open(self) -> None:
        session = secrets.token_hex(5)
        paths = (
            f"/gradio_api/heartbeat/{session}",
            f"/gradio_api/queue/data?session_hash={session}",
        )
        self._hold(f"GET {self._random.choice(paths)} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        self._hold(
            b"GET /gradio_api/queue/data HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Key: AAAA\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )

    def _hold(self, request: bytes) -> None:
        """Leave a connection open, a few at once; the oldest goes."""
        raw = self._raw()
        raw.sendall(request)
        self._open.append(raw)
        if len(self._open) > 10:
            self._open.pop(0).close()

    def _raw(self) -> socket.socket:
        where = urlsplit(self._address)
        return socket.create_connection((where.hostname, where.port), timeout=_PATIENCE_S)

    def _many_ids(self) -> None:
        ids = ",".join(f"{secrets.token_hex(16)}*" for _ in range(150))
        self._judge(self._client.get(f"/seedgrid/download/selected.zip?ids={ids}"), "many ids")
        for _ in range(20):
            self._judge(self._client.get(f"/seedgrid/pictures/{secrets.token_hex(16)}.png"), "ids")

    def _verify_flood(self) -> None:
        for _ in range(10):
            self._ask("verify", id="0" * 32)

    def _long_state(self) -> None:
        """Leave as much as one request may hold with each of many visitors."""
        for _ in range(3):
            self._ask("stop", more="x" * 290_000)

    def _odd_paths(self) -> None:
        for path in (
            "/seedgrid/assets/../../../etc/passwd",
            "/seedgrid/assets/%2e%2e/%2e%2e/app.py",
            "/seedgrid/assets/%00",
            "/seedgrid/pictures/%00.png",
            "/seedgrid/pictures/..%2f..%2fx.png",
            f"/seedgrid/pictures/{'a' * 5000}.png",
            "/seedgrid/thumbs/\u0131\u0307.jpg",
            "/seedgrid/opening/99999999999999999999.webp",
            "/seedgrid/export/%ff/work.png",
            "/gradio_api/file=/etc/passwd",
            "/gradio_api/file=http://127.0.0.1:1/",
        ):
            self._judge(self._client.get(path), path)
