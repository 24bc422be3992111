"""make_answers: the objects whose methods answer the page, for a studio.

answers = make_answers(studio)
"""

from dataclasses import dataclass

from seedgrid.core.errors import SeedGridError
from seedgrid.core.prompts import GUIDE_SUFFIXES
from seedgrid.studio import Studio
from seedgrid.web.actions.checks import Checks
from seedgrid.web.actions.library import LibraryActions
from seedgrid.web.actions.live import Live
from seedgrid.web.actions.painting import Handlers
from seedgrid.web.actions.selected import Selected
from seedgrid.web.serializers.answers import PageUpdate
from seedgrid.web.server.file_work import FileWork, FileWorkBounds
from seedgrid.web.server.who import Kept
from seedgrid.web.state.page_state import read_page_state
from seedgrid.web.state.snapshot import Snapshots
from seedgrid.web.state.visitor_libraries import Libraries, OneLibrary


@dataclass(frozen=True, kw_only=True)
class Answers:
    """The objects whose methods answer the page, and what other routes need."""

    studio: Studio
    libraries: Libraries
    file_work: FileWork
    handlers: Handlers
    live: Live
    checks: Checks
    library: LibraryActions
    selected: Selected

    def on_stop(self, kept: Kept) -> PageUpdate:
        """Stop a visitor's run and verifications; their streams end."""
        state = read_page_state(kept)
        self.handlers.stop(state)
        self.checks.stop(state.visitor)
        return PageUpdate()


def make_answers(
    studio: Studio,
    libraries: Libraries | None = None,
    bounds: FileWorkBounds = FileWorkBounds(),  # noqa: B008 - frozen
) -> Answers:
    """Make the objects for a studio; nothing runs or loads yet."""
    libraries, file_work = libraries or OneLibrary(studio), FileWork(bounds)
    snapshots = Snapshots(studio, libraries)
    handlers = Handlers(studio, snapshots)
    return Answers(
        studio=studio,
        libraries=libraries,
        file_work=file_work,
        handlers=handlers,
        live=Live(studio, snapshots, handlers),
        checks=Checks(studio, libraries, file_work),
        library=LibraryActions(studio, snapshots),
        selected=Selected(snapshots),
    )


def starting_suffixes(studio: Studio) -> tuple[str, ...]:
    """The default variations: the model's own, or the guide's."""
    try:
        found = studio.card().suffixes
    except SeedGridError:  # The page opens anyway and says what is wrong.
        return GUIDE_SUFFIXES
    return found if len(found) == len(GUIDE_SUFFIXES) else GUIDE_SUFFIXES
