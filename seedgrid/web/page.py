"""make_answers and build_app: the page for a studio. Neither runs or loads anything by itself.

answers = make_answers(studio)
demo = build_app(answers)
"""

import logging
from dataclasses import dataclass

import gradio as gr

from seedgrid.core.errors import SeedGridError
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.core.variables import is_public
from seedgrid.studio import Studio
from seedgrid.web.actions.checks import Checks
from seedgrid.web.actions.library import LibraryActions
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.actions.selected import Selected
from seedgrid.web.api import publish
from seedgrid.web.components.layout import build_view
from seedgrid.web.library_wiring import wire_library
from seedgrid.web.server.file_work import FileWork, FileWorkBounds
from seedgrid.web.server.unreadable import ReadingBlocks
from seedgrid.web.settings_wiring import wire_settings
from seedgrid.web.state.snapshot import Snapshots
from seedgrid.web.state.visitor_libraries import Libraries, OneLibrary
from seedgrid.web.texts import labels
from seedgrid.web.wiring import wire

logger = logging.getLogger(__name__)

_CACHE_S = (3600, 86400)
_MAX_WAITING = 100
_LOOK_S = 0.02


@dataclass(frozen=True, kw_only=True)
class Answers:
    """What answers the page: its events, and the web server's own addresses.

    Attributes:
        libraries: Whose pictures are whose.
        file_work: Where work with files is done.
        handlers: For stage, rail and card.
        checks: For the Verify button.
        library: For the library page.
        selected: For what is selected there.
    """

    studio: Studio
    libraries: Libraries
    file_work: FileWork
    handlers: Handlers
    checks: Checks
    library: LibraryActions
    selected: Selected


def make_answers(
    studio: Studio,
    libraries: Libraries | None = None,
    bounds: FileWorkBounds = FileWorkBounds(),  # noqa: B008 - frozen
) -> Answers:
    """Put together what answers the page."""
    libraries, file_work = libraries or OneLibrary(studio), FileWork(bounds)
    snapshots = Snapshots(studio, libraries)
    return Answers(
        studio=studio,
        libraries=libraries,
        file_work=file_work,
        handlers=Handlers(studio, snapshots, paints_links=not is_public()),
        checks=Checks(studio, libraries, file_work),
        library=LibraryActions(studio, snapshots),
        selected=Selected(snapshots),
    )


def build_app(answers: Answers, *, language: str | None = None) -> gr.Blocks:
    """Build the page."""
    with ReadingBlocks(
        title="SeedGrid", analytics_enabled=False, delete_cache=_CACHE_S, fill_width=True
    ) as demo:
        view = build_view(make_i18n(), starting_suffixes(answers.studio))
        wire(view, answers.handlers, answers.checks, demo)
        wire_settings(view, answers.handlers, demo, language=language)
        wire_library(view, answers.library, answers.selected, answers.file_work)
        publish(answers.studio, answers.libraries, answers.file_work)
    demo.queue(max_size=_MAX_WAITING, default_concurrency_limit=None)
    _look_seldom(demo)
    return demo


def starting_suffixes(studio: Studio) -> tuple[str, ...]:
    """What the four variations begin with: where the model shines, or the guide's."""
    try:
        found = studio.card().suffixes
    except SeedGridError:  # The page opens all the same, and says what is wrong with the model.
        return GUIDE_SUFFIXES
    return found if len(found) == len(GUIDE_SUFFIXES) else GUIDE_SUFFIXES


def _look_seldom(demo: gr.Blocks) -> None:
    """Let Gradio look into its queue less often: it does a thousand times a second, where we paint.

    The attribute is private to Gradio, and nothing public sets it.
    """
    queue = getattr(demo, "_queue", None)
    if queue is not None and hasattr(queue, "sleep_when_free"):
        queue.sleep_when_free = _LOOK_S
    else:
        logger.warning("gradio %s: its queue is looked into at its own pace", gr.__version__)


def make_i18n() -> gr.I18n:
    """Return the translations of the labels."""
    return gr.I18n(**labels())
