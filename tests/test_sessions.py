"""Whoever names a session costs the server nothing that stays; counted, in a child.

Of each of 10,000 sessions Gradio kept 185 KB and whatever was sent: a quarter of an hour with ten
rude visitors took 170 MB. What a request leaves behind is counted here, not measured.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest

from seedgrid.web.server import sessions

ROOT = Path(__file__).parent.parent
NUM_REQUESTS = 40

_PAGE = """
import gc, json, sys
import gradio, httpx
from gradio.state_holder import SessionState
from seedgrid.core.errors import InputError
from seedgrid.studio import Studio
from seedgrid.testing.fake import FakeBackend
from seedgrid.web import launch
from seedgrid.web.page import build_app, make_answers

answers = make_answers(Studio(library=sys.argv[1], backend=FakeBackend()))
demo = build_app(answers)
try:  # With IPv6, where there is any: an address like another.
    host, port = "::1", launch.find_port("::1", 0)
except InputError:
    host, port = "127.0.0.1", launch.find_port("127.0.0.1", 0)
options = launch.launch_options(answers, language=None, host=host)
launch.serve(demo, server_port=port, **options)
events = {fn.fn.__name__: number for number, fn in demo.fns.items() if fn.fn is not None}
kept = lambda: sum(isinstance(each, SessionState) for each in gc.get_objects())
made = []
write_all_down = SessionState.__init__
SessionState.__init__ = lambda self, blocks: (made.append(1), write_all_down(self, blocks))[1]
with httpx.Client(base_url=demo.local_url, timeout=120.0) as client:
    def ask(route, event, data, session):
        asked = {"fn_index": events[event], "data": data, "session_hash": session}
        return client.post(f"gradio_api/{route}", json=asked).raise_for_status().json()
    shown = [ask("run/predict", "on_load", [{}, "x" * 1000], f"s{n}")["data"][0]["visitor"]
             for n in range(int(sys.argv[2]))]
    for n in range(3):
        ask("queue/join", "on_verify", [{"visitor": "0" * 32}], "listened to by nobody")
    for n in range(3):
        asked = {"fn_index": events["on_load"], "data": [{}, ""]}
        client.post("gradio_api/run/predict", json=asked).raise_for_status()
    part = "--b\\r\\nContent-Disposition: form-data; name=\\"files\\""
    upload = lambda head, size: client.post("gradio_api/upload?upload_id=u",
        content=f"{part}{head}\\r\\n\\r\\n{'x' * size}\\r\\n--b--\\r\\n",
        headers={"content-type": "multipart/form-data; boundary=b"}).status_code
    uploads = [upload("; filename=\\"a.png\\"", 50_000), upload("", 50_000)]
from gradio.routes import file_upload_statuses
gc.collect()
queue = demo._queue
print(json.dumps({
    "visitors": len(shown),
    "sessions": kept(),
    "written_down": len(made),
    "uploads": uploads,
    "progress": [type(file_upload_statuses._statuses).__name__,
                 type(file_upload_statuses._signals).__name__],
    "known": len(demo.app.state_holder.session_data),
    "unheard": [type(queue.pending_messages_per_session).__name__,
                type(queue.pending_messages_per_session["listened to by nobody"]).__name__,
                type(queue.pending_event_ids_session).__name__],
}))
answers.studio.close()
demo.close(verbose=False)
"""


def test_a_session_leaves_nothing_behind(tmp_path: Path) -> None:
    """As many sessions as requests: each is answered, and none is known afterwards."""
    command = [sys.executable, "-W", "ignore", "-c", _PAGE, str(tmp_path), str(NUM_REQUESTS)]
    told = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    found = json.loads(told.splitlines()[-1])
    where = f"gradio {gr.__version__}"
    assert found["visitors"] == NUM_REQUESTS
    assert found["known"] == 0, where
    assert found["written_down"] == 0, where  # Nor where a request names none.
    assert found["uploads"] == [200, 413], where  # A field once lay in memory, 60 MB of it.
    assert found["progress"] == ["Recent", "Signals"], where
    assert found["sessions"] < NUM_REQUESTS / 2, where  # A few threads hold their last one.
    assert found["unheard"] == ["Unheard", "LastMessages", "Recent"], where


def test_messages_nobody_listens_to_are_bounded() -> None:
    """Of few sessions, and the last ones of each; whoever listens keeps the place."""
    unheard = sessions.Unheard()
    for number in range(sessions.NUM_UNHEARD + 10):
        unheard[f"s{number}"] = asyncio.Queue()
        assert unheard["s0"] is not None
    assert len(unheard) == sessions.NUM_UNHEARD
    assert "s0" in unheard
    assert "s1" not in unheard
    for number in range(sessions.NUM_MESSAGES + 10):
        unheard["s0"].put_nowait(number)
    assert unheard["s0"].qsize() == sessions.NUM_MESSAGES
    assert unheard["s0"].get_nowait() == 10


def test_uploads_that_are_only_asked_about_are_forgotten() -> None:
    """Each name that anybody asked for was kept, and a name may be 60 KB long."""
    signals = sessions.Signals()
    for number in range(sessions.NUM_UNHEARD + 10):
        assert not signals[f"u{number}"].is_set()
    assert len(signals) == sessions.NUM_UNHEARD
    signals["u100"].set()
    assert signals["u100"].is_set()


def test_messages_are_heard_in_order() -> None:
    """Gradio waits for them with `get`, and sends with both kinds of `put`."""

    async def hear() -> list[int]:
        queue = sessions.LastMessages()
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0)
        queue.put_nowait(1)
        await queue.put(2)
        return [await waiting, await queue.get()]

    assert asyncio.run(hear()) == [1, 2]


def test_another_gradio_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    """One that keeps its sessions elsewhere serves the page all the same, and the log says so."""
    sessions.keep_no_sessions(SimpleNamespace())  # type: ignore[arg-type]
    assert gr.__version__ in caplog.text
