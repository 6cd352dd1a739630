"""Restoring: one transaction that makes a table's live rows what they were at another cut.

Both states are read side by side, by ranges of keys. What was live then and is not now is put again, what is live now and was not then is
deleted, what has another row gets the old one back. Each event says what it found, so what others commit meanwhile stays, or shows in
``conflicts``; what only a tag keeps of the past cut is held (``Hold``) while it is put again.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import BucketCatalogError, CatalogWarning, CommitUnknown, DataCollected, InvalidOption, ParentEnded
from ..format.records import TagEntry
from ..log.entries import tags_of
from ..log.versions import Version
from ..log.view import LogView
from ..model.arrays import Mask, one_chunk
from ..model.cuts import Cut
from ..model.facts import Facts
from ..model.keys import encode_keys
from ..model.names import is_maintainer
from ..model.render import output_schema, render, surface_array
from ..model.tables import Table
from ..model.times import Time, shown_time
from ..query.changes import changed_table
from ..query.database import Database
from ..query.difference import live_sides
from ..query.snapshot import Snapshot
from ..state.plan import Part
from ..write.commit import Commit
from ..write.references import ids, known_versions
from ..write.staging import StagedSegments
from ..write.writer import Writer
from .gc.parents import NO_IDS, Distinct, state_rows, without
from .revert import Reverted, reverted


def lasting_tag(view: LogView, cut: Cut) -> TagEntry | None:
    """The maintainers' tag that has named exactly this cut for the longest time, if one does; how long others' hold nobody can tell."""
    given = (tag.latest for tag in tags_of(view).values() if is_maintainer(tag.latest.stamp.writer))
    named = (entry for entry in given if entry.cut == cut and not entry.dropped)
    return min(named, key=lambda tag: tag.stamp, default=None)


def kept_by(tag: TagEntry, known: Facts, at: pa.Array, *, with_purged: bool = False) -> Mask:
    """Of which of the versions at these positions, all live at the tag's cut, the tag keeps the data for certain.

    Of those that ended after the tag was given and are not purged: no boundary reaches such an end from before the tag could be seen.
    """
    lasting = known.end_times() >= tag.stamp.commit_time
    if not with_purged:
        lasting &= known.numbers("_purged") == 0
    kept: Mask = np.asarray(pc.fill_null(pa.array(lasting).take(at), False))
    return kept


@dataclass
class Hold:
    """The restore's own tag of a cut that another ``tag`` names: given when it is first needed, and dropped at the end of a ``with``.

    A tag that was given before a version ended keeps the version's data from every collection that has looked since. It can be dropped at
    any moment, and what it kept be deleted at once. So a restore gives its cut a tag of its own and looks again: whoever looked before that
    saw the first tag, and whoever looks afterwards sees the second one, or what was put.

    It stays where the outcome of the commit is not known, or where the process dies; ``is_there`` where one has left it.
    """

    database: Database
    writer: Writer
    tag: TagEntry | None
    table: str
    is_there: bool = False
    is_sure: bool = False

    def __enter__(self) -> Hold:
        state = tags_of(self.database.view()).get(self.name) if self.tag is not None else None
        self.is_there = state is not None and not state.latest.dropped
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        is_settled = error is None or (isinstance(error, BucketCatalogError) and not isinstance(error, CommitUnknown))
        if not self.is_there or not is_settled:
            return
        try:
            self.writer.drop_tag(self.name)
        except BucketCatalogError as failed:
            text = f"The tag {self.name!r} of the restore is still there: {failed.message} Drop it: bucketcatalog tag CATALOG NAME --drop."
            warnings.warn(text, CatalogWarning, stacklevel=2)

    @property
    def name(self) -> str:
        """The same for each attempt of one maintainer, so that the next one takes back what a broken one has left."""
        cut = self.tag.cut if self.tag is not None else None
        of = f"{self.writer.id} {self.table} {cut}"
        return f"restore-{hashlib.sha256(of.encode()).hexdigest()[:12]}"

    def take(self) -> None:
        """Keep the cut's data from now on; ``DataCollected`` where the first tag is gone by then, and the data may be too."""
        if self.tag is None or self.is_sure:
            return
        self.is_there = True  # or may be, from now on
        self.writer.tag(self.name, version=str(self.tag.cut), replace=True)
        self.is_sure = True
        now = tags_of(self.database.view())[self.tag.name].latest
        if now != self.tag:
            raise DataCollected(
                f"The tag {self.tag.name!r}, which kept data of rows of {self.table!r}, was "
                f"{'dropped' if now.dropped else 'moved'} by {now.stamp[1]!r} at {shown_time(now.stamp.commit_time)}.",
                next_step="Restore again: rows whose data may be gone are then refused, or left out with --skip-collected.",
            )


_SAMPLE = 10


@dataclass(frozen=True, slots=True)
class Restored:
    """What a restore did, or without ``committed`` would do, or found to be so already.

    ``version`` is the one restored to. ``skipped`` rows are not put again since their data may be gone; of ``ended_parents`` rows of
    the table ``parent`` were live then, have ended since, and own rows that are put. ``sample`` are some of the keys, each with what
    happens to it.
    """

    table: str
    version: str
    put: int
    updated: int
    deleted: int
    skipped: int
    parent: str | None
    ended_parents: int
    sample: tuple[dict[str, Any], ...]
    committed: str | None = None


def plan_restore(
    database: Database, table: str, timestamp: Time | None, version: Version | None, *, with_purged: bool = False
) -> Restored:
    """What a restore would do; nothing is written."""
    restoring = _begin(database, table, timestamp, version, holds=True, with_purged=with_purged)
    for _ in restoring.steps():
        pass
    return restoring.result(None)


def restore(
    database: Database,
    writer: Writer,
    table: str,
    timestamp: Time | None,
    version: Version | None,
    *,
    skip_collected: bool,
    with_purged: bool = False,
) -> Restored:
    """Commit what makes the table what it was; nothing where it is that already.

    ``DataCollected`` and ``ParentEnded`` where rows cannot be put again; then nothing is committed. Rows whose versions were purged can
    ``with_purged`` alone: who asks for it knows that nobody has deleted their data.
    """
    restoring = _begin(database, table, timestamp, version, holds=is_maintainer(writer.id), with_purged=with_purged)
    with Hold(database, writer, restoring.tag, table) as hold:
        events = _staged(database, writer, restoring, hold, skip_collected=skip_collected)
        if not events.count:
            return restoring.result(None)
        # What comes after all that was read is live: a delete from the future would end it before it began.
        events.named_after = restoring.now.view.newest_commit_time
        metadata = {"table": table, "version": restoring.then.version}
        metrics = {"put": restoring.put, "updated": restoring.updated, "deleted": restoring.deleted}
        committed = writer.commit(Commit(operation="restore", metadata=metadata, metrics=metrics, events=events))
    return restoring.result(None if committed is None else committed.version)


def _staged(database: Database, writer: Writer, restoring: _Restoring, hold: Hold, *, skip_collected: bool) -> StagedSegments:
    """The events of a restore; nothing is put that can be refused."""
    events = StagedSegments(database.files, writer.id, restoring.table, began=restoring.now.view.observed)
    for step in restoring.steps():
        restoring.refuse_ended_parents()
        if not skip_collected:
            restoring.refuse_collected()
        if restoring.held:
            hold.take()
        if len(step):
            events.add(step.events(events.count))
    events.finish()
    return events


def _begin(
    database: Database, table: str, timestamp: Time | None, version: Version | None, *, holds: bool, with_purged: bool
) -> _Restoring:
    """``holds``: what a tag of the cut keeps can be kept on, as by a maintainer."""
    if timestamp is None and version is None:
        raise InvalidOption("A restore needs a time or a version.", next_step="Say which state the table is to have again.")
    then = database.snapshot(timestamp, version, strict=False)
    now = database.look()
    tag = lasting_tag(now.view, then.cut) if holds else None
    return _Restoring(Snapshot(then.files, then.view, now.definitions), now, changed_table(now, table), tag, with_purged)


@dataclass
class _Restoring:
    """The comparison of two states of a table, and what was counted on the way: of the rows to put the data of those ``held`` is kept by
    the ``tag`` alone. ``orphaned`` are ended parents of rows to put, as ids compare, and ``orphaned_by`` is one of them as people see it.
    """

    then: Snapshot
    now: Snapshot
    table: Table
    tag: TagEntry | None
    with_purged: bool
    put: int = 0
    updated: int = 0
    deleted: int = 0
    skipped: int = 0
    held: int = 0
    sample: list[dict[str, Any]] = field(default_factory=list)
    orphaned: pa.Array = field(default_factory=lambda: NO_IDS)
    orphaned_by: Any = None

    def steps(self) -> Iterator[Reverted]:
        """What becomes of each range of keys, in their order."""
        for then, now in live_sides(self.then, self.now, self.table):
            step = reverted(then, now, self.table)
            if len(step.put) and self.table.data_reference:
                gone = self._collected(step)
                self.skipped += int(gone.sum())
                step = step.without_puts(gone)
            self._look_for_parents(step)
            self.put, self.updated = self.put + len(step.put), self.updated + len(step.update)
            self.deleted += len(step.delete)
            if len(self.sample) < _SAMPLE:
                self.sample += _sample(step)[: _SAMPLE - len(self.sample)]
            yield step

    def _collected(self, step: Reverted) -> Mask:
        """Which of the puts are of versions whose data may be gone."""
        keys = one_chunk(encode_keys(self.table, step.then.rows)).take(pa.array(step.put))
        known, at, gone = known_versions(self.now, self.table, keys, step.put_versions, with_purged=self.with_purged)
        lost: Mask = np.asarray(gone)
        if self.tag is not None:
            held = lost & kept_by(self.tag, known, at, with_purged=self.with_purged)
            self.held += int(held.sum())
            lost = lost & ~held
        return lost

    def _look_for_parents(self, step: Reverted) -> None:
        """Note the ended parents of what is put."""
        parent = self.table.parent
        if parent is None or not len(step.put):
            return
        column = self.table.by_name[parent.column]
        put = pa.array(step.put)
        owners = ids(step.then, column, surely=True).take(put)
        ended = pc.indices_nonzero(pc.is_in(owners, value_set=self._ended_parents))
        if len(ended):
            self.orphaned = pc.unique(pa.concat_arrays([self.orphaned, owners.take(ended)]))
            if self.orphaned_by is None:
                first = step.then.stored_column(column).take(put).take(ended[:1])
                self.orphaned_by = surface_array(column, first)[0].as_py()

    @cached_property
    def _ended_parents(self) -> pa.Array:
        """The ids of the parent's rows that were live then and are not now."""
        return without(*(_owners(snapshot, self.table) for snapshot in (self.then, self.now)))

    def refuse_ended_parents(self) -> None:
        """``ParentEnded`` where rows that are put would belong to nothing."""
        if len(self.orphaned) and self.table.parent is not None:
            parent = self.table.parent.table
            raise ParentEnded(
                f"Rows of {self.table.name!r} that are to be put again belong to rows of {parent!r} that have ended since, such as the one "
                f"with the id {self.orphaned_by}.",
                next_step=f"Restore {parent!r} to the same state first.",
            )

    def refuse_collected(self) -> None:
        """``DataCollected`` where the data of a row may be gone."""
        if self.skipped:
            raise DataCollected(
                f"The data of rows of {self.table.name!r} that are to be put again may be gone: their versions were purged, or ended at or "
                "before the boundary up to which data is collected and before a tag that names the state was given.",
                next_step="Restore the other rows, with skip_collected=True (--skip-collected), or a later state; where nobody has deleted "
                "the data of what was purged also that, with with_purged=True (--with-purged).",
            )

    def result(self, committed: str | None) -> Restored:
        """What was found, and the commit that made it so."""
        return Restored(
            table=self.table.name,
            version=self.then.version,
            put=self.put,
            updated=self.updated,
            deleted=self.deleted,
            skipped=self.skipped,
            parent=self.table.parent.table if self.table.parent else None,
            ended_parents=len(self.orphaned),
            sample=tuple(self.sample),
            committed=committed,
        )


def _owners(snapshot: Snapshot, table: Table) -> pa.Array:
    """The ids of the live rows of a table's parent, as ids compare; none where nothing tells them."""
    assert table.parent is not None
    name = table.parent.table
    parent = snapshot.definitions.get(name)
    if parent is None or parent.id is None:
        return NO_IDS
    own, found = parent.by_name[parent.id], Distinct()
    for facts in state_rows(snapshot.state(name), Part.LIVE, [own]):
        found.add(ids(facts, own, surely=True).drop_null())
    return found.values()


def _sample(step: Reverted) -> list[dict[str, Any]]:
    """Some keys, with what happens to each."""
    shown = []
    for what, facts, positions in (
        ("put", step.then, step.put),
        ("update", step.then, step.update),
        ("delete", step.now, step.delete),
    ):
        rows = facts.take(pa.array(positions[:_SAMPLE]))
        keys = render(rows, step.table, output_schema(step.table, columns=step.table.key)).to_pylist()
        shown += [{"action": what, **key} for key in keys]
    return shown[:_SAMPLE]
