"""Restoring: one transaction that makes a table's live rows, or those of a place in it, what they were at another cut.

Both states are read side by side, by ranges of keys. What was live then and is not now is put again, what is live now and was not then is
deleted, what has another row gets the old one back. Each event says what it found, so what others commit meanwhile stays, or shows in
``conflicts``; what only a tag keeps of the past cut is held (``Hold``) while it is put again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataCollected, InvalidOption, ParentEnded
from ..format.records import TagEntry
from ..log.versions import Version
from ..model.arrays import Mask, one_chunk
from ..model.keys import encode_keys
from ..model.names import is_maintainer
from ..model.parents import name_column
from ..model.render import output_schema, render, surface_array
from ..model.tables import Table
from ..model.times import Time
from ..query.database import Database
from ..query.difference import live_sides
from ..query.metadata import METADATA_TABLES
from ..query.named import ANYWHERE, Place, narrowed
from ..query.snapshot import DELETED_PREFIX, Snapshot, check_table_name
from ..state.keyed import OfKeys, key_conditions
from ..state.plan import Part
from ..wording import either
from ..write.commit import Commit
from ..write.references import ids, known_versions
from ..write.staging import StagedSegments
from ..write.writer import Writer
from .gc.parents import NO_IDS, Distinct, state_rows, without
from .holding import Hold, kept_by, lasting_tag, skip_collected
from .revert import Reverted, reverted

_SAMPLE = 10
_SHOWN_OF_A_VERSION = 60
_BY_KEY = "which rows are restored is told by keys alone."


@dataclass(frozen=True, slots=True, repr=False)
class Restored:
    """What a restore did, or without ``committed`` would do, or found to be so already.

    ``version`` is the one restored to. ``skipped`` rows are not put again since their data may be gone; of ``ended_parents`` rows of
    the table ``parent`` were live then, have ended since, and own rows that are put. ``sample`` are some of the keys, each with what
    happens to it and, where it is known, the name of its bucket.
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

    def __repr__(self) -> str:
        counts = f"put {self.put:,}, update {self.updated:,}, delete {self.deleted:,}"
        done = f"would {counts}" if self.committed is None else f"{counts}: {self.committed}"
        version = self.version if len(self.version) <= _SHOWN_OF_A_VERSION else f"{self.version[:_SHOWN_OF_A_VERSION]}..."
        return f"Restored({self.table!r}, as of {version}, {done})"


def plan_restore(
    database: Database,
    table: str,
    timestamp: Time | None,
    version: Version | None,
    *,
    place: Place = ANYWHERE,
    with_purged: bool = False,
) -> Restored:
    """What a restore would do; nothing is written."""
    restoring = _begin(database, table, timestamp, version, place, holds=True, with_purged=with_purged)
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
    place: Place = ANYWHERE,
    skip_collected: bool,
    with_purged: bool = False,
) -> Restored:
    """Commit what makes the table, or a place in it, what it was; nothing where it is that already.

    ``DataCollected`` and ``ParentEnded`` where rows cannot be put again; then nothing is committed. Rows whose versions were purged can
    ``with_purged`` alone: who asks for it knows that nobody has deleted their data.
    """
    restoring = _begin(database, table, timestamp, version, place, holds=is_maintainer(writer.id), with_purged=with_purged)
    with Hold(database, writer, restoring.tag, table) as hold:
        events = _staged(database, writer, restoring, hold, skip_collected=skip_collected)
        if not events.count:
            return restoring.result(None)
        # What comes after all that was read is live: a delete from the future would end it before it began.
        events.named_after = restoring.now.view.newest_commit_time
        metadata = {"table": table, "version": restoring.then.version, **place.given()}
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
    database: Database,
    table: str,
    timestamp: Time | None,
    version: Version | None,
    place: Place,
    *,
    holds: bool,
    with_purged: bool,
) -> _Restoring:
    """``holds``: what a tag of the cut keeps can be kept on, as by a maintainer."""
    if timestamp is None and version is None:
        raise InvalidOption("A restore needs a time or a version.", next_step="Say which state the table is to have again.")
    then = database.snapshot(timestamp, version, strict=False)
    now = database.look()
    tag = lasting_tag(now.view, then.cut) if holds else None
    then = Snapshot(then.files, then.view, now.definitions)
    definition = _table(now, table)
    where = narrowed([now, then], definition, place, None, ended=True)
    keys = OfKeys(definition, key_conditions(definition, where, output_schema(definition), _BY_KEY))
    return _Restoring(then, now, definition, keys, tag, with_purged)


def _table(now: Snapshot, name: str) -> Table:
    """The table of rows that is meant; ``InvalidOption`` for what shows tombstones or is about the catalog, ``UnknownTable`` for none."""
    check_table_name(name)
    of = name.removeprefix(DELETED_PREFIX)
    if name in METADATA_TABLES:
        raise InvalidOption(
            f"The table {name!r} is about the catalog, and says what was committed: there is nothing to restore in it.",
            next_step=f"Restore one of {', '.join(sorted(now.definitions))}.",
        )
    if name not in now.definitions and of in now.definitions:
        raise InvalidOption(
            f"The table {name!r} shows what has ended of {of!r}, and is none to be restored.",
            next_step=f"Restore {of!r}: what is live again is a tombstone no more.",
        )
    return now.table(name)


@dataclass
class _Restoring:
    """The comparison of two states of a table, and what was counted on the way. Others than the ``keys`` are left alone.

    Of the rows to put the data of those ``held`` is kept by the ``tag`` alone. ``orphaned`` are ended parents of rows to put, as ids
    compare, and ``orphaned_by`` is one of them as people see it.
    """

    then: Snapshot
    now: Snapshot
    table: Table
    keys: OfKeys
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
        for then, now in live_sides(self.then, self.now, self.table, self.keys.ranges):
            step = reverted(self.keys.of(then), self.keys.of(now), self.table)
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
        self.sample = self._with_names(self.sample)

    def _with_names(self, sample: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A sample with what the buckets of its rows are called, or were then, where rows have any."""
        name, parent = name_column(self.table), self.table.parent
        looked = [lookup for snapshot in (self.now, self.then) for lookup in snapshot.lookups(self.table)]
        if name is None or parent is None or parent.column not in self.table.key or not looked or not sample:
            return sample
        rows = pa.table(
            {parent.column: pa.array([row[parent.column] for row in sample], self.table.by_name[parent.column].surface_type)}
        )
        called = pc.coalesce(*(lookup.made(rows, self.now.files.store)[0] for lookup in looked)).to_pylist()
        return [{"action": row["action"], name: known, **row} for row, known in zip(sample, called, strict=True)]

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
                next_step=f"Restore {self._which_parents(parent)} to the same state first.",
            )

    def _which_parents(self, parent: str) -> str:
        """The one row that is missing, where there is one, for others may be wanted as they are."""
        table = self.then.table(parent)
        if len(self.orphaned) > 1 or table.id is None:
            return repr(parent)
        (row,) = self.then.scan(parent, columns=list(table.key), where={table.id: self.orphaned_by}).to_arrow().to_pylist()
        name, whose = row[table.key[-1]], row[table.key[0]]
        if len(table.key) == 1:
            return f"{parent!r} {either(f'with bucket={name!r}', f'with the BUCKET {name}')}"
        return either(
            f"{parent!r} with bucket={name!r}, owner={str(whose)!r}", f"{parent!r} with the BUCKET {name} --owner {whose}"
        )

    def refuse_collected(self) -> None:
        """``DataCollected`` where the data of a row may be gone."""
        if self.skipped:
            raise DataCollected(
                f"The data of rows of {self.table.name!r} that are to be put again may be gone: their versions were purged, or ended at or "
                "before the boundary up to which data is collected and before a tag that names the state was given.",
                next_step=f"Restore the other rows, with {skip_collected()}, or a later state; where nobody has deleted "
                f"the data of what was purged also that, with {either('with_purged=True', '--with-purged')}.",
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
