"""What Gradio keeps of browser sessions and uploads: no values, few messages, no long fields.

Any request may name a new session. For each, of up to 10,000, Gradio copies the configuration of
the whole page, 185 KB, and with it the last value of every component, whoever sent it; and what is
told of queued events is kept until somebody listens. Our events say themselves all there is to
know, so each gets a session that lasts as long, which costs the copy of two dictionaries. Knows no
component.

    demo.launch(prevent_thread_lock=True, state_session_capacity=NUM_KEPT)
    keep_no_sessions(demo)
"""

import asyncio
import logging
from collections import OrderedDict, deque
from copy import copy
from typing import Any, Final, Generic, TypeVar

import gradio as gr
from gradio import route_utils, routes
from gradio.state_holder import SessionState, StateHolder
from starlette.formparsers import MultiPartException

from seedgrid.web.server.uploads import file_arrives

logger = logging.getLogger(__name__)

NUM_KEPT: Final = 64
"""How many sessions another Gradio may keep, where it cannot be told to keep none."""
NUM_UNHEARD: Final = 500
"""Of so many sessions there may be messages to which nobody has listened yet."""
MAX_FIELD_BYTES: Final = 10_000
"""Of what stands beside the files of an upload: it is kept in memory, and Gradio's has none."""
NUM_MESSAGES: Final = 100
"""So many of each; the oldest go."""

Value = TypeVar("Value")


class PassingState(SessionState):  # type: ignore[misc] # Gradio's insides are untyped
    """A session for one event: the page as it was built, and no values."""

    def __init__(self, blocks: gr.Blocks) -> None:
        # Not `super().__init__`: it writes down the configuration of every component.
        self.blocks_config = copy(blocks.default_config)
        self.config_values: dict[int, object] = {}
        self.state_data: dict[int, object] = {}
        self._state_ttl: dict[int, object] = {}
        self.is_closed = False

    def _update_config(self, key: int) -> None:
        """Write nothing down."""

    def _update_value_in_config(self, key: int, value: object) -> None:
        """Write nothing down."""


class NoSessions(StateHolder):  # type: ignore[misc] # as above
    """Makes a session whenever one is asked for, and knows none."""

    def __getitem__(self, session_id: str) -> PassingState:
        """Return a new session."""
        return PassingState(self.blocks)


class Recent(OrderedDict[str, Value], Generic[Value]):
    """Keeps what was used last, `NUM_UNHEARD` at most."""

    def __setitem__(self, key: str, value: Value) -> None:
        """Keep it, and let go of what was not used longest."""
        super().__setitem__(key, value)
        while len(self) > NUM_UNHEARD:
            self.popitem(last=False)

    def __getitem__(self, key: str) -> Value:
        """Return it; whoever listens looks it up at least every ten seconds."""
        found = super().__getitem__(key)
        self.move_to_end(key)
        return found


class LastMessages(asyncio.Queue[Any]):
    """A queue that forgets the oldest."""

    def _init(self, maxsize: int) -> None:  # noqa: ARG002 (overridable, says asyncio's source)
        self._queue: deque[Any] = deque(maxlen=NUM_MESSAGES)


class Unheard(Recent[asyncio.Queue[Any]]):
    """The messages of sessions to which nobody has listened yet."""

    def __setitem__(self, key: str, value: asyncio.Queue[Any]) -> None:
        """Keep an empty queue of our own; Gradio's has no end."""
        super().__setitem__(key, LastMessages())


class Signals(Recent[asyncio.Event]):
    """What tells that an upload has begun; anybody may ask for any name, of any length."""

    def __missing__(self, key: str) -> asyncio.Event:
        """Return a new one."""
        self[key] = signal = asyncio.Event()
        return signal


class BoundedParts(route_utils.GradioMultiPartParser):  # type: ignore[misc] # as above
    """Reads an upload; files go to the disk, and nothing else is long."""

    def on_headers_finished(self) -> None:
        """Begin a part."""
        super().on_headers_finished()
        if self._current_part.file is not None:
            file_arrives()

    def on_part_data(self, data: bytes, start: int, end: int) -> None:
        """Take a piece of a file, or of a short field."""
        part = self._current_part
        if part.file is None:
            if len(part.data) + end - start > MAX_FIELD_BYTES:
                raise MultiPartException(
                    f"a field exceeded the maximum allowed size: {end - start}"
                )
            part.data += data[start:end]
            return
        super().on_part_data(data, start, end)


def keep_no_sessions(demo: gr.Blocks) -> None:
    """Let a page that is being served keep nothing of its sessions, and few messages.

    The attributes are private to Gradio; its public number of sessions cannot be 0.
    """
    app: Any = getattr(demo, "app", None)
    queue: Any = getattr(demo, "_queue", None)
    kept = ("pending_messages_per_session", "pending_event_ids_session")
    if not isinstance(getattr(app, "state_holder", None), StateHolder) or not all(
        isinstance(getattr(queue, name, None), dict) for name in kept
    ):
        logger.warning("gradio %s: it keeps what it keeps of sessions", gr.__version__)
        return
    app.state_holder = NoSessions()
    app.state_holder.set_blocks(demo)
    queue.pending_messages_per_session = Unheard()
    queue.pending_event_ids_session = Recent[set[str]]()
    _bound_what_has_no_session()


def _bound_what_has_no_session() -> None:
    """Let a request without a session cost as little as one with, and bound what uploads leave."""
    for module, name, ours in (
        (route_utils, "SessionState", PassingState),
        (route_utils, "GradioMultiPartParser", BoundedParts),
    ):
        if isinstance(getattr(module, name, None), type):
            setattr(module, name, ours)
    progress: Any = getattr(routes, "file_upload_statuses", None)
    if all(isinstance(getattr(progress, name, None), dict) for name in ("_statuses", "_signals")):
        progress._statuses, progress._signals = Recent[Any](), Signals()
