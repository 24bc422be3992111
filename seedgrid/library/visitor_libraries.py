"""A library for each visitor of a public page, within bounds."""

from __future__ import annotations

import math
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from seedgrid.core.errors import LibraryError
from seedgrid.library import Library
from seedgrid.storage import starts
from seedgrid.storage.files import delete_aside, size_of

AWAY_S: Final = 6 * 3600.0  # After so long without a request a library is deleted
_KEPT_S: Final = 1800.0  # A library that was used so recently is not deleted to make room


@dataclass(eq=False)
class _Visit:
    """The quota of a visitor's library, which asks for room and reports additions and deletions."""

    name: str
    folder: Path
    owner: VisitorLibraries
    address: str = ""
    used_at_s: float = 0.0
    num_bytes: int = 0

    def may_grow(self) -> None:
        """Make room; raise LibraryError if there is none, or the visitor has used their share."""
        self.owner.admit(self)

    def added(self, _picture_ids: Sequence[str], num_bytes: int) -> None:
        self.owner.note(self, num_bytes)

    def deleted(self, _picture_ids: Sequence[str]) -> None:
        self.num_bytes = sum(size_of(self.folder / name) for name in ("objects", "starts"))


class VisitorLibraries:
    """A library for each visitor, in a subfolder of `folder`, deleted after `away_s` seconds away.

    Above `max_visitors` libraries or `max_bytes` together (None is no limit) the least recently
    used one is deleted; if all were used within half an hour, one of the address that has too many,
    and without such an address new pictures are refused. A visitor may use an equal share of the
    bytes, or all free ones; ids of one address count as one visitor.
    """

    def __init__(
        self,
        folder: Path,
        *,
        away_s: float = AWAY_S,
        max_visitors: int | None = None,
        max_bytes: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._away_s = away_s
        self._max_visitors = max_visitors
        self._max_bytes = max_bytes
        self._clock = clock
        self._lock = threading.RLock()
        self._in_use: WeakValueDictionary[str, Library] = WeakValueDictionary()
        self._newcomers: WeakValueDictionary[str, _Visit] = WeakValueDictionary()  # Without files
        self._visits: OrderedDict[str, _Visit] = OrderedDict()  # By last use, oldest first

    def of(self, visitor: str, address: str = "") -> Library:
        """Return the visitor's library; its folder is made with their first picture."""
        with self._lock:
            self.delete_unused()
            visit = self._visits.get(visitor) or self._newcomers.get(visitor)
            if visit is None:
                visit = self._newcomers[visitor] = _Visit(visitor, self._folder / visitor, self)
            self._mark_used(visit)
            visit.address = address or visit.address
            library = self._in_use.get(visitor)
            if library is None:
                library = self._in_use[visitor] = Library(visit.folder, quota=visit)
            return library

    def delete_unused(self) -> None:
        """Delete the libraries of visitors who have been away too long."""
        with self._lock:
            limit_s = self._clock() - self._away_s
            for visit in tuple(self._visits.values()):
                if visit.used_at_s >= limit_s:
                    return
                self._delete(visit)

    def admit(self, visit: _Visit) -> None:
        """Make room for a visitor's pictures; raise `visitors_full` or `visitor_share`."""
        with self._lock:
            self._check_share(visit)
            while self._is_full(visit):
                oldest = next(iter(self._visits.values()))
                wait_s = oldest.used_at_s + _KEPT_S - self._clock()
                leaving = self._oldest_of_many(visit) if wait_s > 0 else oldest
                if leaving is None:
                    raise LibraryError("visitors_full", minutes=math.ceil(wait_s / 60))
                self._delete(leaving)
            self._visits[visit.name] = visit
            self._mark_used(visit)

    def note(self, visit: _Visit, num_bytes: int) -> None:
        """Add the bytes of new files to a visitor's."""
        with self._lock:
            self._visits.setdefault(visit.name, visit)
            visit.num_bytes += num_bytes

    def _check_share(self, visit: _Visit) -> None:
        if self._max_bytes is None:
            return
        sizes = Counter[str]()
        for each in self._visits.values():
            sizes[each.address or each.name] += each.num_bytes
        own = sizes[visit.address or visit.name]
        # For one visitor more than there are, so that a single one leaves half to the next.
        share = self._max_bytes / (len(sizes) + 1)
        if own > max(share, self._max_bytes - sizes.total()):
            raise LibraryError("visitor_share", value=math.ceil(own / 1e6))

    def _oldest_of_many(self, visit: _Visit) -> _Visit | None:
        """Return a library of the address with most, if that is too many and not the visitor's."""
        of_address: dict[str, list[_Visit]] = {}
        for each in self._visits.values():
            of_address.setdefault(each.address or each.name, []).append(each)
        most = max(of_address.values(), key=len)
        share = (self._max_visitors or math.inf) / (len(of_address) + 1)
        is_other = most[0].address != visit.address
        return most[0] if is_other and len(most) > max(1, share) else None

    def _is_full(self, visit: _Visit) -> bool:
        num_bytes = sum(each.num_bytes for each in self._visits.values())
        is_large = self._max_bytes is not None and num_bytes >= self._max_bytes
        is_new = visit.name not in self._visits
        is_many = self._max_visitors is not None and len(self._visits) >= self._max_visitors
        return is_large or (is_new and is_many)

    def _mark_used(self, visit: _Visit) -> None:
        visit.used_at_s = self._clock()
        if visit.name in self._visits:
            self._visits.move_to_end(visit.name)

    def _delete(self, visit: _Visit) -> None:
        del self._visits[visit.name]
        visit.num_bytes = 0
        starts.forget(visit.folder / "starts")
        delete_aside(visit.folder)
