"""Parents that have to exist: rows are refused that name one which is not live by what the transaction has read and has done itself.

Only for tables that declare it. An id is looked for among the live rows of the parent's table, in one cut; where it is the whole key as a
key, else in its column. What the transaction has put before counts, and what it has ended does not. Whoever ends a parent at the same time
is not seen, as with every condition: then the row belongs to a parent that has ended, and is reaped with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidRows
from ..model.arrays import one_chunk
from ..model.events import EventKind
from ..model.facts import NO_TRANSACTIONS, Facts
from ..model.keys import encode_keys
from ..model.render import surface_array, version_names
from ..model.tables import Column, Table
from ..parallel import in_order
from ..query.scan import Scan
from ..query.snapshot import Snapshot
from ..state.plan import Part, Slice
from ..state.read import Selection, read_batches
from .given import Given
from .references import ids
from .staging import StagedEvents

_FACTS = {"_kind", "_txn", "_seq"}
_NARROWED = 1 << 14
"""As many ids are looked for by themselves, and as keys also more where one row in ``_ONE_IN`` is asked for at most; else all are read."""
_ONE_IN = 32
_ROWS = pa.schema([("id", pa.binary()), ("key", pa.binary()), ("version", pa.string())])


def are_asked_for(table: Table, kind: EventKind) -> bool:
    """Whether rows of events of a kind have to name a live parent: an UPDATE says nothing of a column that stays the PUT's."""
    if table.parent is None or not table.parent.must_exist:
        return False
    is_fixed = table.by_name[table.parent.column].field_name in table.fixed_columns
    return kind is EventKind.PUT or (kind is EventKind.UPDATE and not is_fixed)


@dataclass
class Parents:
    """The rows of one table that others name as their parents, as one transaction knows them.

    ``puts`` and ``ends`` are what the transaction has put and deleted so far of any table, and ``own`` what that leaves of keys. By id it
    is noted under which keys rows were put, and of ids that were looked for which keys and versions are there: a call costs what it adds.
    """

    name: str
    look: Callable[[], Snapshot]
    own: StagedEvents
    puts: Sequence[Given]
    ends: Sequence[Given]
    _there: dict[bytes, list[tuple[bytes, str]]] = field(default_factory=dict)
    _put: dict[bytes, set[bytes]] = field(default_factory=dict)
    _ended: set[str] = field(default_factory=set)
    _table: Table | None = None
    _done: list[int] = field(default_factory=lambda: [0, 0])

    def refuse_absent(self, table: Table, given: Given) -> None:
        """``InvalidRows`` for the first row of the table that names no live row here; one that names none at all is nobody's child."""
        assert table.parent is not None
        column = table.by_name[table.parent.column]
        values = given.array(column)
        named = _comparable(column, values)
        wanted = pc.unique(named.drop_null())
        if not len(wanted):
            return
        live = self._left_put(wanted)
        if table.name == self.name and table.id is not None:  # of rows of one call each may belong to another
            own = table.by_name[table.id]
            live = pa.concat_arrays([live, _comparable(own, given.array(own)).drop_null()])
        rest = _without(wanted, live)
        if len(rest):
            live = pa.concat_arrays([live, self._left_there(rest, column, values, named)])
        absent = pc.and_(named.is_valid(), pc.invert(pc.is_in(named, value_set=live)))
        row = pc.index(absent, True).as_py()
        if row >= 0:
            raise self._absent(table, column, surface_array(column, values.slice(row, 1))[0].as_py(), row)

    def _absent(self, table: Table, column: Column, value: object, row: int) -> InvalidRows:
        leave_out = "" if column.name in table.key else f", or leave {column.name} out"
        return InvalidRows(
            f"Row {row} for table {table.name!r}, column {column.name!r}: no row of {self.name!r} that is live has the id {value!r:.100}.",
            next_step=f"Put that first, in the same transaction or in one before{leave_out}.",
        )

    def _left_put(self, wanted: pa.Array) -> pa.Array:
        """Those of the ids that rows have which the transaction has put and leaves live."""
        for given in self.puts[self._done[0] :]:
            if given.table.name == self.name and given.table.id is not None:
                self._table, own = given.table, given.table.by_name[given.table.id]
                for id_, key in zip(_comparable(own, given.array(own)).to_pylist(), given.key_list, strict=True):
                    if id_ is not None:
                        self._put.setdefault(id_, set()).add(key)
        self._done[0] = len(self.puts)
        found = [(id_, key) for id_ in wanted.to_pylist() for key in self._put.get(id_, ())]
        put, keys = _arrays(found)
        table = self._table
        left = self.own.left(table, keys) if table is not None and found else None
        if table is None or table.id is None or left is None:
            return pa.array([], pa.binary())
        is_that = pc.equal(_comparable(table.by_name[table.id], left.ids), put)
        return put.filter(pc.and_(left.live, pc.fill_null(is_that, False)))

    def _left_there(self, wanted: pa.Array, column: Column, values: pa.Array, named: pa.Array) -> pa.Array:
        """Those of the ids that live rows have which were read, but for rows that the transaction has ended or put anew."""
        new = [id_ for id_ in wanted.to_pylist() if id_ not in self._there]
        if new:
            fresh = pa.array(new, pa.binary())
            parts = self._read(fresh, column, values.take(pc.index_in(fresh, value_set=named)))
            self._there |= {id_: [] for id_ in new}
            for rows in parts:
                for id_, key, version in zip(*(each.to_pylist() for each in rows.columns), strict=True):
                    self._there[id_].append((key, version))
        ended = self._ended_versions()
        found = [(id_, key) for id_ in wanted.to_pylist() for key, version in self._there[id_] if version not in ended]
        there, keys = _arrays(found)
        left = self.own.left(self.look().table(self.name), keys) if found else None
        return there if left is None else there.filter(pc.invert(left.touched))

    def _ended_versions(self) -> set[str]:
        """The versions that the transaction has ended by their names."""
        for given in self.ends[self._done[1] :]:
            if given.table.name == self.name:
                self._ended.update(version_names(*given.names).drop_null().to_pylist())
        self._done[1] = len(self.ends)
        return self._ended

    def _read(self, wanted: pa.Array, column: Column, values: pa.Array) -> list[pa.Table]:
        """The live rows that have these ids, ``values`` of a ``column`` of others."""
        snapshot = self.look()
        if self.name not in snapshot.definitions or snapshot.table(self.name).id is None:
            return []
        state = snapshot.state(self.name)
        table = state.table
        assert table.id is not None
        own = table.by_name[table.id]
        alike = own.storage_type == column.storage_type and own.type is column.type and not own.implicit
        most = max(_NARROWED, sum(state.level_rows) // _ONE_IN if table.key == (table.id,) else 0)
        where = {own.name: values.to_pylist()} if alike and len(values) <= most else {}
        plan = Scan(state, tombstones=False, columns=list(dict.fromkeys([*table.key, own.name])), where=where).plan()
        columns = {*_FACTS, own.field_name, *(each.field_name for each in table.key_columns)}

        def read(slice_: Slice) -> list[pa.Table]:
            batches = read_batches(state.blocks, table, slice_, Selection(Part.LIVE, columns))
            return [_rows(facts, table, own, wanted) for facts in batches]

        return [rows for found in in_order(read, plan) for rows in found]


def _rows(facts: Facts, table: Table, own: Column, wanted: pa.Array) -> pa.Table:
    """The rows that have one of the ids."""
    facts = facts.filter(pc.is_in(ids(facts, own), value_set=wanted))
    columns = [ids(facts, own), one_chunk(encode_keys(table, facts.rows)), version_names(*facts.own_names())]
    return pa.table(columns, schema=_ROWS)


def _arrays(found: Sequence[tuple[bytes, bytes]]) -> tuple[pa.Array, pa.Array]:
    """Ids and keys apart."""
    return pa.array([id_ for id_, _ in found], pa.binary()), pa.array([key for _, key in found], pa.binary())


def _without(wanted: pa.Array, known: pa.Array) -> pa.Array:
    return wanted.filter(pc.invert(pc.is_in(wanted, value_set=known)))


def _comparable(column: Column, values: pa.Array) -> pa.Array:
    """Values of a column as ids compare, null where they are unset."""
    return ids(Facts(NO_TRANSACTIONS, pa.table({column.field_name: values})), column)
