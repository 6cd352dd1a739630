"""Pins: which entry a transaction has to carry so that a writer's pin stands at a cut, or no longer anywhere.

A pin is moved by its writer as often as that likes; what names no other events than before is committed only where it has to be renewed.
"""

from __future__ import annotations

from dataclasses import dataclass

from .. import limits
from ..errors import NotFound
from ..format.records import PinEntry
from ..log.ancestry import without_ancestors
from ..log.between import refuse_pruned
from ..log.pins import pins_in
from ..log.versions import Version, telling_to_begin_anew
from ..model.html import html_facts
from ..model.names import is_maintainer, new_pin_name, pin_name
from ..model.times import Time, shown_time
from ..query.database import Database
from ..wording import how_to_list
from .tags import adds_no_event


@dataclass(frozen=True, slots=True)
class Pin:
    """A pin of a writer: from which version on its history is held, or with ``dropped`` that none is.

    ``writer``, ``revision`` and ``commit_time``, in microseconds, are those of the transaction that has given it, or given it again.
    """

    name: str
    version: str
    dropped: bool
    writer: str
    revision: int
    commit_time: int

    @classmethod
    def of(cls, entry: PinEntry) -> Pin:
        """The pin as a transaction's entry has it."""
        commit_time, writer, revision, _ = entry.stamp
        return cls(entry.name, str(entry.cut), entry.dropped, writer, revision, commit_time)

    def _repr_html_(self) -> str:
        """What it holds, and who says so, for notebooks."""
        said = f"{self.writer}@{self.revision}, {shown_time(self.commit_time)}"
        facts = {"dropped by": said} if self.dropped else {"history after": self.version, "given by": said}
        return html_facts(f"pin {self.name}", facts)


def pinning(database: Database, writer: str, name: str, timestamp: Time | None, version: Version | None) -> tuple[PinEntry, bool]:
    """The entry that has a writer's pin stand at the cut of now, of a time, or of a version, and whether it has to be committed.

    ``HistoryPruned`` where what was committed after that cut may have been deleted. The cut is read first, so that the transaction
    comes after all of it.
    """
    name = new_pin_name(name)
    is_now = timestamp is None and version is None
    with telling_to_begin_anew():
        target = database.snapshot(timestamp, version, strict=False).view
        refuse_pruned(database.files, target)
    known = pins_in(target if is_now else database.view()).get((writer, name))
    cut = without_ancestors(database.files, target.cut)
    if known is None or known.dropped:
        return PinEntry(name, cut), True
    if known.cut == cut and is_maintainer(writer):
        return known, False
    is_young = target.observed - known.stamp.commit_time < limits.PIN_RENEWAL
    if is_young and (known.cut == cut or adds_no_event(database.files, known.cut, cut, target.horizon)):
        return known, False
    return PinEntry(name, cut), True


def unpinning(database: Database, writer: str, name: str) -> PinEntry:
    """The entry that drops a writer's pin; ``NotFound`` where the writer has none of that name."""
    pins = pins_in(database.view())
    known = pins.get((writer, pin_name(name)))
    if known is not None and not known.dropped:
        return PinEntry(name, dropped=True)
    others = [of for (of, called), entry in pins.items() if called == name and not entry.dropped]
    raise NotFound(
        f"The writer {writer!r} has no pin {name!r} in database {database.name!r}.",
        next_step=f"It is {' and '.join(map(repr, others))} who has one: each writer drops its own."
        if others
        else f"See {how_to_list('pins', 'pin')} for those there are.",
    )
