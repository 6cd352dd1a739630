"""Tags: which entry a transaction has to carry so that a name is given to a cut, or taken back.

A name is not given to another cut unless the caller says so: what it named is then shown beside the new cut in the table ``tags``. Two
maintainers who give one name to different cuts at once do not see each other; the later stamp counts, and that table shows both.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import MissingObject, NotFound, TagExists
from ..format.records import TagEntry
from ..log.ancestry import without_ancestors
from ..log.entries import tags_of
from ..log.files import LogFiles
from ..log.horizon import Horizon
from ..log.versions import Version
from ..model.cuts import Cut, Ref
from ..model.html import html_facts
from ..model.names import is_data_writer, is_maintainer, new_tag_name, tag_name
from ..model.times import Time, shown_time
from ..query.database import Database
from ..wording import either, how_to_list


@dataclass(frozen=True, slots=True)
class Tag:
    """A name and the version that it names, or named until it was dropped.

    ``writer``, ``revision`` and ``commit_time`` are those of the transaction that says so; ``created`` is when the name was given.
    """

    name: str
    version: str
    dropped: bool
    created: int
    writer: str
    revision: int
    commit_time: int

    @classmethod
    def of(cls, entry: TagEntry) -> Tag:
        """The tag as a transaction's entry has it."""
        commit_time, writer, revision, _ = entry.stamp
        return cls(entry.name, str(entry.cut), entry.dropped, entry.created, writer, revision, commit_time)

    def _repr_html_(self) -> str:
        """What it names, and who says so, for notebooks."""
        facts = {"version": self.version, "given": shown_time(self.created)}
        said = f"{self.writer}@{self.revision}, {shown_time(self.commit_time)}"
        return html_facts(f"tag {self.name}", {**facts, "dropped by" if self.dropped else "committed by": said})


@dataclass(frozen=True, slots=True)
class Decided:
    """The entry that makes a name what is asked for, whether it still has to be committed, and the commit time that it comes after."""

    entry: TagEntry
    is_new: bool = True
    after: int = 0


def giving(
    database: Database, writer: str, name: str, timestamp: Time | None, version: Version | None, *, replace: bool
) -> Decided:
    """The entry that gives a name to the cut of now, of a time, or of a version; ``TagExists`` where it is another cut's.

    The cut is read first, so that nothing gets a name that cannot be read, and so that the transaction comes after all of it.
    """
    is_now = timestamp is None and version is None
    target = database.snapshot(timestamp, version, strict=False).view
    known = tags_of(target if is_now else database.view()).get(new_tag_name(name))
    cut = without_ancestors(database.files, target.cut)
    if known is None:
        return Decided(TagEntry(name, cut))
    if is_now and adds_no_event(database.files, known.latest.cut, cut, target.horizon):
        cut = known.latest.cut
    if known.latest.cut != cut and not replace:
        raise _exists(known.latest)
    if known.latest.cut == cut and not known.latest.dropped:
        return Decided(known.latest, is_new=False)
    _refuse_maintained(known.latest, writer)
    return Decided(TagEntry(name, cut), after=known.latest.stamp.commit_time)


def adds_no_event(files: LogFiles, earlier: Cut, later: Cut, horizon: Horizon | None) -> bool:
    """Whether the later cut has all of the earlier one and beyond it only transactions without events, such as those of tags.

    What was pruned of them may have had some.
    """
    heads = list(later.refs())
    pending = sorted(heads, key=lambda ref: is_data_writer(ref.writer))  # whoever commits rows is looked at first
    met: set[Ref] = set()
    while pending:
        writer, head = pending.pop()
        if head in earlier.of_writer(writer):
            met.add(Ref(writer, head))
            continue
        try:
            transaction = files.transaction(writer, head)
        except MissingObject:
            if horizon is None or head.revision >= horizon.floor(writer):
                raise
            return False
        if transaction.events:
            return False
        pending += transaction.parent_refs
    return all((writer, head) in met for writer, head in earlier.refs())


def _exists(entry: TagEntry) -> TagExists:
    time, writer, *_ = entry.stamp
    return TagExists(
        f"The tag {entry.name!r} {'was dropped' if entry.dropped else 'was given'} by {writer!r} at {shown_time(time)}; "
        f"it {'named' if entry.dropped else 'names'} the version {entry.cut}.",
        next_step=f"Choose another name, or move this one with {either('replace=True', '--replace')}.",
    )


def _refuse_maintained(entry: TagEntry, writer: str) -> None:
    """``TagExists`` where a maintainer has given or dropped the name, and whoever speaks now is none: nobody would heed it."""
    if is_maintainer(entry.stamp.writer) and not is_maintainer(writer):
        raise TagExists(
            f"The tag {entry.name!r} is the maintainer {entry.stamp.writer!r}'s: {writer!r} can neither move nor drop it.",
            next_step="Choose another name, or let a maintainer do it.",
        )


def taking_back(database: Database, writer: str, name: str) -> Decided:
    """The entry that drops a tag; ``NotFound`` where there is no such tag, or it was dropped."""
    known = tags_of(database.view()).get(tag_name(name))
    if known is None:
        raise NotFound(
            f"There is no tag {name!r} in database {database.name!r}.",
            next_step=f"See {how_to_list('tags', 'tag')} for those there are.",
        )
    if known.latest.dropped:
        time, writer, *_ = known.latest.stamp
        raise NotFound(
            f"The tag {name!r} was dropped by {writer!r} at {shown_time(time)}.",
            next_step=f"There is nothing left to do; {how_to_list('tags', 'tag')} shows what it named.",
        )
    _refuse_maintained(known.latest, writer)
    return Decided(
        TagEntry(name, known.latest.cut, dropped=True, created=known.latest.created), after=known.latest.stamp.commit_time
    )
