"""Versions that name existing data: a row that is put again, under another name or under its own, shares the data of the version it is of.

Data is deleted once all versions that name it have ended long enough ago (see ``collection``), so that a PUT may name the data of a version
only while that cannot have begun: the version is known, is not purged, and has not ended in the reach of a data boundary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import DataCollected, InvalidRows
from ..log.boundaries import boundaries_of
from ..model.arrays import one_chunk
from ..model.coerce import storage_row
from ..model.events import EventKind
from ..model.facts import NO_TRANSACTIONS, Facts, Kind
from ..model.keys import encode_keys
from ..model.render import version_names
from ..model.tables import Table
from ..model.times import shown_time
from ..query.snapshot import Snapshot
from ..state.overlay import Part
from .references import references
from .staging import OwnEvents
from .targets import VERSION_COLUMN, Targets, parse_versions


def rows_as_columns(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows in storage form as columns."""
    names = {name for row in rows for name in row}
    wanted = [column for column in table.columns if column.field_name in names]
    return pa.table({c.field_name: pa.array([row.get(c.field_name) for row in rows], c.storage_type) for c in wanted})


def named_versions(table: Table, given: pa.Table | Sequence[Mapping[str, Any]], stored: Any) -> tuple[pa.Array, pa.Array]:
    """Encoded keys and versions of rows with the table's key and ``_version``, as a user gives them; other columns do not matter.

    ``stored`` brings Arrow columns into storage form.
    """
    kept = (*table.key, VERSION_COLUMN)
    if isinstance(given, pa.Table):
        rows = given.select([name for name in kept if name in given.column_names])
        if VERSION_COLUMN not in rows.column_names:
            raise _nameless(table)
        keys = stored(rows.drop_columns([VERSION_COLUMN]))
        return one_chunk(encode_keys(table, keys)), version_names(*parse_versions(one_chunk(rows[VERSION_COLUMN])))
    found, versions = [], []
    targets = Targets(table, EventKind.PURGE, _nowhere, OwnEvents())
    for number, row in enumerate(given):
        named, rest = targets.split({name: row[name] for name in kept if name in row})
        found.append((named, storage_row(table, rest, key_only=True, number=number)))
    for version, _ in targets.versions(found):
        versions.append(str(version))
    keys = rows_as_columns(table, [row for _, row in found])
    return one_chunk(encode_keys(table, keys)) if found else pa.array([], pa.binary()), pa.array(versions, pa.string())


def refuse_collected(snapshot: Snapshot, table: Table, keys: pa.Array, versions: pa.Array, rows: pa.Table) -> None:
    """``DataCollected`` where the data of a version may be deleted, ``InvalidRows`` where a row does not name the data of its version.

    ``versions``, as ``_version`` shows them, stand under the encoded ``keys``; ``rows`` are in storage form, one for each.
    """
    if len(keys) != len(rows):
        raise InvalidRows(
            f"{len(rows)} rows for table {table.name!r} share the data of {len(keys)} versions.",
            next_step="Give the version that each row shares its data with, in the order of the rows.",
        )
    known, at, gone = known_versions(snapshot, table, keys, versions)
    if pc.any(gone, min_count=0).as_py():
        raise _collected(table, versions[pc.index(gone, True).as_py()].as_py(), _reach(snapshot))
    same = pc.equal(references(known, table).take(at), references(Facts(NO_TRANSACTIONS, rows), table))
    wrong = pc.index(pc.fill_null(same, False), False).as_py()
    if wrong >= 0:
        raise InvalidRows(
            f"Row {wrong} for table {table.name!r} does not name the data of the version {versions[wrong].as_py()}.",
            next_step=f"Give it the same {', '.join(table.data_reference) or 'data'}, or put it without data_of.",
        )


def known_versions(snapshot: Snapshot, table: Table, keys: pa.Array, versions: pa.Array) -> tuple[Facts, pa.Array, pa.Array]:
    """The versions under these encoded keys, where among them each of the ``versions`` is, and whether the data of each may be gone.

    It may be where the version is not known, is purged, or has ended in the reach of a data boundary.
    """
    facts = snapshot.find(table.name, keys, Part.EVERYTHING)
    known = facts.filter(pa.array(facts.numbers("_kind") == Kind.VERSION))
    names = version_names(known.uuids.take(known.column("_txn")), known.column("_seq"))
    at = pc.index_in(versions, value_set=names)
    ended = (known.end_times() <= _reach(snapshot)) | (known.numbers("_purged") > 0)
    return known, at, pc.or_(at.is_null(), pc.fill_null(pa.array(ended).take(at), True))


def _reach(snapshot: Snapshot) -> int:
    """Microseconds: data of versions that ended by then may be deleted."""
    boundary = boundaries_of(snapshot.view).data
    return boundary.data if boundary is not None else 0


def _collected(table: Table, version: str, boundary: int) -> DataCollected:
    reach = f": what ended by {shown_time(boundary)} may be deleted" if boundary else ", for the version is not there"
    return DataCollected(
        f"The data of version {version} of table {table.name!r} cannot be used again{reach}.",
        next_step="Name a version that is live or ended later, or write the data anew under an id of its own.",
    )


def _nameless(table: Table) -> InvalidRows:
    return InvalidRows(
        f"Versions of table {table.name!r} whose data is shared are named by {VERSION_COLUMN}.",
        next_step=f"Give {', '.join(table.key)} and {VERSION_COLUMN}.",
    )


def _nowhere() -> Snapshot:
    raise AssertionError("a version that is named is not looked up")
