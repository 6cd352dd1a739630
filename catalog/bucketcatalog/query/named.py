"""Names in place of ids: whose rows are meant by what a bucket is called, and what the bucket of a row is called.

A table says which table's rows own its own (its parent) and by which column. What owns them goes by the last column of its key, and where
several are called so the columns before that tell them apart: of objects these are the name of the bucket, and its owner. The words here
are those of the core's tables; what they mean follows from declarations alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, zip_longest
from typing import Any, NamedTuple, overload

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption, NotFound
from ..model.arrays import one_chunk
from ..model.keys import encode_key
from ..model.names import owner_id
from ..model.parents import name_column
from ..model.render import DELETED_AT
from ..model.tables import DataType, Table
from ..model.uuids import is_uuid_text
from ..state.contents import Contents
from ..store.base import Store
from ..where.conditions import Where, listed
from ..where.conditions import prefix as begins_with
from ..where.given import Condition, Predicate, understood
from ..wording import either
from .row_tests import RowTest
from .scan import Scan

_MOST_NAMED = 5


@dataclass(frozen=True)
class Place:
    """Which rows are meant, in names: those of a bucket, of an owner, and with names that begin with a prefix. None is any."""

    bucket: str | None = None
    owner: str | uuid.UUID | None = None
    prefix: str | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not _is_text(str(value) if isinstance(value, uuid.UUID) else value):
                raise InvalidOption(f"{name} cannot be {value!r}.", next_step=f"Give text as {name}, or leave it out.")

    def __bool__(self) -> bool:
        return bool(self.given())

    def given(self) -> dict[str, str]:
        """What is said of it, by the names of the arguments."""
        return {name: str(value) for name, value in vars(self).items() if value is not None}


ANYWHERE = Place()


class ByName(NamedTuple):
    """A parent as a row names it: by what it is called, and whose it is or None, both in storage form."""

    bucket: Any
    owner: Any


class Named(NamedTuple):
    """The rows of a parent that are called so: what their keys begin with, and their ids.

    Several ids are those of one name that has ended and begun again.
    """

    leading: Mapping[str, Any]
    ids: Sequence[Any]


@overload
def narrowed(cuts: Sequence[Contents], table: Table, place: Place, where: Where | None, *, ended: bool) -> Where: ...
@overload
def narrowed(
    cuts: Sequence[Contents], table: Table, place: Place, where: Condition | None, *, ended: bool
) -> Where | Predicate: ...
def narrowed(cuts: Sequence[Contents], table: Table, place: Place, where: Condition | None, *, ended: bool) -> Where | Predicate:
    """``where`` with what the place demands of rows of the table.

    The bucket is looked for in all of the cuts, of one database, and where ``ended`` also among those that are gone. ``NotFound`` where
    there is none; ``InvalidOption`` where several owners have one, for a table that has none, and for what ``where`` is about as well.
    """
    where = understood(where)
    if not place:
        return where
    found: dict[str, Any] = {}
    if place.owner is not None:
        column = owner_column(cuts[0], table)
        if column is None or column not in table.by_name:
            raise InvalidOption(f"Table {table.name!r} has no owners.", next_step="Leave owner out.")
        found[column] = _owner(table, column, place.owner)
    if place.bucket is not None:
        found |= _of_bucket(cuts, table, place, ended=ended)
    if place.prefix is not None:
        text = next((c.name for c in table.key_columns if c.type is DataType.STRING and c.name not in found), None)
        if text is None:
            raise InvalidOption(f"The key of table {table.name!r} has no text left.", next_step="Leave prefix out.")
        found[text] = begins_with(place.prefix)
    if isinstance(where, Predicate):
        return where.also(found)
    both = next((name for name in where if name in found), None)
    if both is not None:
        raise InvalidOption(
            f"What {both!r} has to be is said twice.", next_step="Leave it out of where, or leave out bucket, owner or prefix."
        )
    return {**found, **where}


def _of_bucket(cuts: Sequence[Contents], table: Table, place: Place, *, ended: bool) -> dict[str, Any]:
    if table.parent is None:
        if not _is_parent(cuts[0], table):
            raise InvalidOption(f"Table {table.name!r} has no buckets.", next_step="Leave bucket out.")
        return {table.key[-1]: place.bucket}
    named = named_in(cuts, table, place, ended=ended)
    shared = {column: value for column, value in named.leading.items() if column in table.by_name}
    return {**shared, table.parent.column: list(named.ids)}


def named_in(cuts: Sequence[Contents], table: Table, place: Place | ByName, *, ended: bool) -> Named:
    """The parents of a table's rows that a place names, by their name or else by an id; errors as of ``narrowed``."""
    assert table.parent is not None
    parent = cuts[0].table(table.parent.table)
    of_owner: dict[str, Any] = {}
    if place.owner is not None and (column := owner_column(cuts[0], parent)) is not None:
        of_owner[column] = _owner(parent, column, place.owner)
    id_column = parent.id or parent.key[-1]
    rows = _parents(cuts, parent, {**of_owner, parent.key[-1]: place.bucket}, ended=ended)
    if not len(rows) and parent.by_name[id_column].type is DataType.UUID and is_uuid_text(place.bucket):
        rows = _parents(cuts, parent, {**of_owner, id_column: place.bucket}, ended=True)
        if not len(rows) and (orphaned := _of_children(cuts, table, place.bucket, of_owner)) is not None:
            return orphaned
    leading = parent.key[:-1]
    owners = [dict(each) for each in {tuple(row.items()): None for row in rows.select(list(leading)).to_pylist()}] or [{}]
    if len(owners) > 1:
        raise several_owners(place.bucket, owners)
    if not len(rows):
        was = _parents(cuts, parent, {**of_owner, parent.key[-1]: place.bucket}, ended=not ended)
        raise _no_such(cuts, parent, place, pc.unique(was[id_column]).to_pylist())
    return Named(owners[0], sorted(pc.unique(rows[id_column]).to_pylist()))


def called(cut: Contents, parent: Table, asked: Sequence[ByName]) -> pa.Table:
    """The keys and ids of the live rows of a parent that are called so, by one scan; of other owners too where one is not said."""
    keys = None
    if len(parent.key) == 2 and all(each.owner is not None for each in asked):
        named = {encode_key(parent, dict(zip(parent.key, (each.owner, each.bucket), strict=True))) for each in asked}
        keys = pa.array(sorted(named), pa.binary())
    where = {parent.key[-1]: list(dict.fromkeys(each.bucket for each in asked))} if keys is None else {}
    return Scan(cut.state(parent.name), tombstones=False, columns=_of_parents(parent), where=where, among=keys).to_arrow()


def several_owners(bucket: Any, owners: Sequence[Mapping[str, Any]]) -> InvalidOption:
    """The error of a name that several owners have given, with those of some of them."""
    told = sorted({", ".join(map(str, owner.values())) for owner in owners})
    return InvalidOption(
        f"{len(told)} owners have a bucket {bucket!r}: {'; '.join(told[:_MOST_NAMED])}{'; ...' if len(told) > _MOST_NAMED else ''}.",
        next_step=either("Say whose it is: owner=...", "Say whose it is: --owner UUID."),
    )


def _parents(cuts: Sequence[Contents], parent: Table, where: Where, *, ended: bool) -> pa.Table:
    """The keys and ids of the live rows that meet the conditions, in any of the cuts, and where ``ended`` of tombstones."""
    return pa.concat_tables(list(_scanned(cuts, parent, _of_parents(parent), where, ended=ended)))


def _of_parents(parent: Table) -> list[str]:
    return [name for name in dict.fromkeys((*parent.key, parent.id)) if name is not None]


def _scanned(cuts: Sequence[Contents], table: Table, columns: Sequence[str], where: Where, *, ended: bool) -> Iterator[pa.Table]:
    for cut in cuts:
        state = cut.state(table.name)
        yield Scan(state, tombstones=False, columns=columns, where=where).to_arrow()
        if ended and table.keeps_tombstones:
            yield Scan(state, tombstones=True, columns=columns, where=where).to_arrow()


def _of_children(cuts: Sequence[Contents], table: Table, id_: Any, of_owner: Where) -> Named | None:
    """A parent that no row tells of, from its children; without an owner this may read them all."""
    assert table.parent is not None
    leading = [name for name in cuts[0].table(table.parent.table).key[:-1] if name in table.by_name]
    where = {**{name: value for name, value in of_owner.items() if name in leading}, table.parent.column: id_}
    for cut in cuts:
        for tombstones in (False, True)[: 1 + table.keeps_tombstones]:
            scan = Scan(cut.state(table.name), tombstones=tombstones, columns=[*leading, table.parent.column], where=where)
            for batch in scan.to_batches():
                if len(batch):
                    return Named({name: batch[name][0].as_py() for name in leading}, [batch[table.parent.column][0].as_py()])
    return None


def owner_column(cut: Contents, table: Table) -> str | None:
    """The column that says whose a row is: what the key of its parent begins with, or its own where it is a parent itself."""
    if table.parent is None and not _is_parent(cut, table):
        return None
    parent = cut.table(table.parent.table) if table.parent is not None else table
    return parent.key[0] if len(parent.key) > 1 else None


def _is_parent(cut: Contents, table: Table) -> bool:
    return any(child.parent is not None and child.parent.table == table.name for child in cut.usable())


def _owner(table: Table, column: str, owner: str | uuid.UUID) -> Any:
    """An owner as the column has it."""
    return owner_id(owner) if table.by_name[column].type is DataType.UUID else owner


def _is_text(value: Any) -> bool:
    """Whether it is text, and such as a name can be."""
    try:
        return isinstance(value, str) and bool(value.encode() or True)
    except UnicodeEncodeError:
        return False


def _no_such(cuts: Sequence[Contents], parent: Table, place: Place | ByName, ended: Sequence[Any]) -> NotFound:
    """The error of a name that no parent has, with the names of some, or with the ids of those that have ended."""
    of = f" of owner {place.owner}" if place.owner is not None else ""
    at = "this version" if len(cuts) == 1 else "either version"
    if ended:
        return NotFound(
            f"There is no bucket {place.bucket!r}{of} in database {cuts[0].database!r} at {at}: it has ended.",
            next_step=f"Look among tombstones ({either(f'deleted_{parent.name}', '--deleted')}) or at an earlier version; what is left in "
            f"it is found by its id, {ended[-1]}.",
        )
    scan = Scan(cuts[0].state(parent.name), tombstones=False, columns=[parent.key[-1]], where={})
    first = next(scan.to_batches(), None)
    names = pc.unique(first.column(0)).slice(0, _MOST_NAMED).to_pylist() if first is not None else []
    return _with_instead(f"There is no bucket {place.bucket!r}{of} in database {cuts[0].database!r} at {at}.", names)


def _with_instead(message: str, names: Sequence[Any]) -> NotFound:
    some = [*map(repr, names), *(["..."] if len(names) == _MOST_NAMED else [])]
    next_step = (
        f"Use the name of one that there is: {', '.join(some)}."
        if some
        else "There are none at this version: put the bucket first, or look at another version."
    )
    error = NotFound(message, next_step=next_step)
    error.instead = tuple(names)
    return error


def in_none(errors: Sequence[NotFound]) -> NotFound:
    """The error of a bucket that none of several catalogs has: the one that says more than that, else with names from all of them."""
    more = next((error for error in errors if error.instead is None), None)
    if more is not None:
        return more
    in_turn = chain.from_iterable(zip_longest(*(error.instead or () for error in errors)))
    names = list(dict.fromkeys(name for name in in_turn if name is not None))
    return _with_instead(errors[0].message, names[:_MOST_NAMED])


@dataclass(frozen=True)
class Names:
    """What the parents of a table's rows are called, by their ids: of a version that is live, else of the one that ended last."""

    column: str
    field: pa.Field
    ids: pa.Array
    names: pa.Array

    @classmethod
    def read(cls, cut: Contents, table: Table) -> Names:
        """Those of a table that has a ``name_column``: of all parents the names and ids are read, and nothing else."""
        assert table.parent is not None
        parent = cut.table(table.parent.table)
        wanted = [parent.id or parent.key[-1], parent.key[-1]]
        state = cut.state(parent.name)
        parts = [Scan(state, tombstones=False, columns=list(dict.fromkeys(wanted)), where={}).to_arrow()]
        if parent.keeps_tombstones:
            ended = Scan(state, tombstones=True, columns=list(dict.fromkeys([*wanted, DELETED_AT])), where={}).to_arrow()
            parts.append(ended.sort_by([(DELETED_AT, "descending")]).select(parts[0].column_names))
        rows = pa.concat_tables(parts).combine_chunks()
        ids, names = (one_chunk(rows[name]) for name in wanted)
        distinct = pc.unique(ids)
        return cls(table.parent.column, _field_of(cut, table), distinct, names.take(pc.index_in(distinct, value_set=ids)))

    @property
    def of(self) -> tuple[str, ...]:
        """The columns that the names follow from."""
        return (self.column,)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """The columns that they make."""
        return (self.field,)

    def made(self, rows: pa.Table, store: Store) -> list[pa.Array]:
        """The names of rows, null where nothing tells."""
        return [self.names.take(pc.index_in(one_chunk(rows[self.column]), value_set=self.ids))]

    def table(self) -> pa.Table:
        """The ids and the names."""
        return pa.table({self.column: self.ids, self.field.name: self.names})

    def below(self, where: Where) -> tuple[dict[str, Any], dict[str, Any]]:
        """A condition on the name as the ids of those that meet it; what none is known of stays to be checked."""
        test = RowTest(self.field.name, where, pa.schema([self.field]))
        met = test.of(pa.table({self.field.name: self.names}))
        if any(None in listed(condition) for condition in where.values()):
            return {}, dict(where)
        return {self.column: one_chunk(self.ids.filter(one_chunk(met))).to_pylist()}, {}


class NamesOf:
    """``Names`` of a cut, read when they are asked for; what travels to other processes are these."""

    def __init__(self, cut: Contents, table: Table) -> None:
        self._cut = cut
        self._table = table

    def __reduce__(self) -> tuple[Any, ...]:
        names = self._names
        return Names, (names.column, names.field, names.ids, names.names)

    @cached_property
    def _names(self) -> Names:
        return Names.read(self._cut, self._table)

    @property
    def of(self) -> tuple[str, ...]:
        """See ``Names``."""
        assert self._table.parent is not None
        return (self._table.parent.column,)

    @property
    def fields(self) -> tuple[pa.Field, ...]:
        """See ``Names``."""
        return (_field_of(self._cut, self._table),)

    def made(self, rows: pa.Table, store: Store) -> list[pa.Array]:
        """See ``Names``."""
        return self._names.made(rows, store)

    def table(self) -> pa.Table:
        """See ``Names``."""
        return self._names.table()

    def below(self, where: Where) -> tuple[dict[str, Any], dict[str, Any]]:
        """See ``Names``."""
        return self._names.below(where)


def _field_of(cut: Contents, table: Table) -> pa.Field:
    name = name_column(table)
    assert name is not None and table.parent is not None
    parent = cut.table(table.parent.table)
    return pa.field(name, parent.by_name[parent.key[-1]].surface_type)
