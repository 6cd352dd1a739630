"""Drafts: what a user puts into a transaction, checked against its tables and numbered, before anything is written.

Whatever does not fit is refused here, so a transaction that is committed fits its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import Self

from ..clock import uuid7_time
from ..errors import IncompatibleTable, InvalidRows, InvalidVersion, UnknownTable
from ..log.segments import RunWriter
from ..model.events import EventKind, Expectation, VersionName
from ..model.render import version_names
from ..model.tables import Table
from ..query.snapshot import Snapshot
from ..state.conflicts import ABSENT
from .data_paths import refuse_elsewhere
from .derived_ids import Incarnations
from .given import Given, GivenRows
from .intake import VERSION_COLUMN, Rows, checked, naming_versions
from .naming import resolved, with_ids
from .parents import Parents, are_asked_for
from .references import refuse_collected
from .staging import Encoded, Said, StagedEvents, WrittenShare, refuse_many
from .targets import Targets


@dataclass
class Draft:
    """The events of one transaction, in their order. ``look`` gives a snapshot of now, where an event needs one.

    ``data_in`` is, for a table of which rows name data by a path in the catalog, the database whose data that is.
    """

    find_table: Callable[[str], Table]
    look: Callable[[], Snapshot]
    data_in: Callable[[str], str | None] = lambda table: None
    tables: dict[str, Table] = field(default_factory=dict)
    named_after: int = 0
    _own: StagedEvents = field(default_factory=StagedEvents)
    _puts: list[Given] = field(default_factory=list)
    _ends: list[Given] = field(default_factory=list)
    _named_uuids: set[bytes] = field(default_factory=set)
    _elsewhere_after: int = 0
    _shares: list[WrittenShare] = field(default_factory=list)
    _snapshot: Snapshot | None = None
    _wrote_from: int | None = None
    _incarnations: dict[str, Incarnations] = field(default_factory=dict)
    _parents: dict[str, Parents] = field(default_factory=dict)

    def __len__(self) -> int:
        return self._own.count + sum(share.events for share in self._shares)

    @property
    def read_at(self) -> int | None:
        """The store's time in microseconds at which the transaction first looked something up, or wrote what it names; None for neither."""
        looked = self._snapshot.view.observed if self._snapshot is not None else None
        return min((time for time in (looked, self._wrote_from) if time is not None), default=None)

    def looks_in(self, snapshot: Snapshot) -> None:
        """What the events come from was looked up in this snapshot; nothing is looked up in another one."""
        self._snapshot = snapshot

    def writes_from(self, time: int) -> None:
        """From this time of the store's on data is written that the events name: until they are committed nothing keeps it from going."""
        self._wrote_from = time if self._wrote_from is None else min(self._wrote_from, time)

    def add(
        self,
        kind: EventKind,
        name: str,
        rows: Rows | GivenRows,
        *,
        expect: str | None = None,
        has_expect: bool = False,
        moved: bool = False,
        data_of: Rows | None = None,
    ) -> None:
        """Check rows and add an event for each. ``InvalidRows`` names row and column, and nothing is added.

        Rows that are to be put may say that they name the ``data_of`` versions: ``DataCollected`` where that may be deleted.
        """
        table = self._table(name)
        expects = _expected(expect)
        given = checked(table, kind, self._with_ids(table, rows))
        if data_of is not None:
            self._share(table, given, data_of)
        elif kind is EventKind.PUT and table.data_reference and (database := self.data_in(name)) is not None:
            refuse_elsewhere(table, given, database)
        if has_expect and (given.by_version | given.by_id).any():
            raise _expecting_twice(table)
        if kind is EventKind.PUT:
            given = self._of(table).fill(given)
        if table.parent is not None and are_asked_for(table, kind):
            self._parents_in(table.parent.table).refuse_absent(table, given)
        given = Targets(table, kind, self._now, self._own).of(given)
        if kind is EventKind.DELETE:
            self._of(table).end(given)
        self._named(given.named)
        self._named([] if expects is None else [expects.uuid])
        self._own.add(given, Said(kind, has_expect, expects, moved))
        self.tables[name] = table
        if kind is EventKind.PUT and table.id is not None:
            self._puts.append(given)
        if kind is EventKind.DELETE and table.id is not None:
            self._ends.append(given)

    def _with_ids(self, table: Table, rows: Rows | GivenRows) -> Rows | GivenRows:
        """The rows with the ids of what they name by its name; only where they do the catalog is looked at."""
        return with_ids(table, rows, self._parent_of, partial(resolved, table, own=self._own, puts=self._puts, now=self._now))

    def _parent_of(self, table: Table) -> Table:
        assert table.parent is not None
        return self._table(table.parent.table)

    def _share(self, table: Table, given: Given, versions: Rows) -> None:
        """Check that rows that are to be put may name the data of these versions."""
        named = naming_versions(table, self._with_ids(table, versions))
        refuse_collected(self._now(), table, named.keys, version_names(*named.names), given.columns)
        self._named(named.named)

    def _table(self, name: str) -> Table:
        if not isinstance(name, str):
            raise UnknownTable(f"{name!r} is no table's name.", next_step="Give the name of a table as text.")
        return self.tables.get(name) or self.find_table(name)

    def _of(self, table: Table) -> Incarnations:
        if table.name not in self._incarnations:
            self._incarnations[table.name] = Incarnations(table, self._now)
        return self._incarnations[table.name]

    def _parents_in(self, name: str) -> Parents:
        if name not in self._parents:
            self._parents[name] = Parents(name, self._now, self._own, self._puts, self._ends)
        return self._parents[name]

    def _now(self) -> Snapshot:
        """What the whole transaction looks things up in: one cut."""
        if self._snapshot is None:
            self._snapshot = self.look()
        return self._snapshot

    def _named(self, uuids: Iterable[bytes]) -> None:
        """Naming a version counts as having read it."""
        new = {*uuids}
        self._named_uuids |= new
        self.named_after = max([self.named_after, *(uuid7_time(uuid) for uuid in new)])

    def unread_after(self, has_read: Callable[[bytes], bool]) -> int:
        """See ``Staged``; of what other processes have written nobody knows here what that names."""
        unread = (uuid7_time(uuid) for uuid in self._named_uuids if not has_read(uuid))
        return max([self._elsewhere_after, *unread])

    def numbered_from(self, first: int) -> Self:
        """The same, empty as it is, whose events are numbered from there on."""
        self._own.count = first
        return self

    def adopt(self, shares: Iterable[WrittenShare]) -> None:
        """Add what other processes have put, in this order, after all other events.

        ``IncompatibleTable`` where a table was declared otherwise since, and ``InvalidRows`` where they are too many.
        """
        for share in shares:
            table = self._table(share.table.name)
            if table.definition != share.table.definition:
                raise IncompatibleTable(
                    f"The table {table.name!r} was declared otherwise while rows were written for it.",
                    next_step="Write them again.",
                )
            refuse_many(len(self) + share.events)
            self.tables[table.name] = table
            self.named_after = max(self.named_after, share.named_after)
            self._elsewhere_after = max(self._elsewhere_after, share.named_after)
            self.writes_from(share.began)
            self._shares.append(share)

    def put_into(self, runs: RunWriter) -> None:
        """Put the events as segments, for a transaction that another process commits."""
        self._own.put_into(runs, self.tables)

    def encoded(self, runs: Callable[[], RunWriter]) -> Encoded:
        """The events as the transaction carries them; those that are too many for it are put into ``runs``."""
        own = self._own.encoded(self.tables, runs, one_by_one=not self._shares)
        firsts = accumulate((share.events for share in self._shares), initial=self._own.count)
        adopted = (
            replace(segment, first_sequence=first)
            for first, share in zip(firsts, self._shares, strict=False)
            for segment in share.segments
        )
        return replace(own, segments=(*own.segments, *adopted))


def _expecting_twice(table: Table) -> InvalidRows:
    return InvalidRows(
        f"A delete from table {table.name!r} names a version and expects one too.",
        next_step="Name the version to end only that one, or expect it to end whatever is live and see a conflict.",
    )


def _expected(expect: str | None) -> Expectation:
    """What ``expect`` says that is replaced: nothing, or the version that it names."""
    if expect is None or expect == ABSENT:
        return None
    try:
        return VersionName.parse(expect)
    except InvalidVersion as error:
        raise InvalidVersion(
            error.message, next_step=f'Expect "{ABSENT}", or a value of the column {VERSION_COLUMN}; or leave it out.'
        ) from None
