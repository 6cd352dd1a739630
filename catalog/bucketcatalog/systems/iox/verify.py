"""Verify: whether the files of data tables are there, and are what the catalog says of them; nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from ... import limits
from ...catalog import Catalog
from ...model.times import shown_age
from ...query.snapshot import Snapshot
from ...store.base import ObjectInfo, Store
from .files import FILES, bare
from .findings import Finding
from .footers import Listed, Marker, Tell, listed, marker, read_each, stored_file
from .live import Live, as_declared
from .named import LIVE_AND_ENDED, untold
from .predicates import PREDICATES, Predicate, predicates_of
from .statistics import SCHEMA
from .statistics import TABLE as STATISTICS

_SAID = (
    "table",
    "partition",
    "chunk",
    "path",
    "size",
    "rows",
    "row_groups",
    "key_columns",
    "first_clock",
    "last_clock",
    "write",
    "origins",
    "bloom_filters",
)
"""What a row about a file says that the file says too; its schema, and what was applied to it, are compared by themselves."""
Row = Mapping[str, Any]


def verify(
    catalog: Catalog, *, database: str | None = None, deep: bool = False, progress: Tell = lambda _: None
) -> Iterator[Finding]:
    """Say one by one which files of data tables are missing, or are not what the catalog says, and which it does not name.

    ``deep`` reads every footer and every marker: whether they say what the catalog does of columns, rows, statistics and deletions. Pages
    of data are not read; their checksums are looked at by whoever reads them. ``progress`` is told how far it is.
    """
    name = catalog.snapshot(database=database).database
    snapshot = as_declared(catalog.database(name).of_trusted().look())  # also of who is retired and has committed all the same
    now = catalog.store.now_us()
    there = listed(catalog.store, snapshot.database)
    named: set[str] = set()
    for each in untold(snapshot):
        yield Finding("SCHEMA_MISSING", each.paths[0], "No row says what its columns are, so that its table cannot be read.")
    for table in _tables(snapshot):
        yield from _table(catalog.store, snapshot, table, there, deep=deep, tell=progress)
    for name in (FILES, PREDICATES):
        if name in snapshot.definitions:
            paths = (snapshot.scan(f"{of}{name}", columns=["path"]).to_arrow()["path"] for of in LIVE_AND_ENDED)
            named.update(path for some in paths for path in some.to_pylist())
    for name, info in {**there.files, **there.markers}.items():
        if name not in named:
            yield Finding("UNNAMED", name, f"No row names it; it was written {shown_age(_age(now, info))} ago.")


def _age(now: int, info: ObjectInfo) -> int:
    """As exactly as people want to know it."""
    age = max(0, now - info.modified_us)
    unit = next((unit for unit in (24 * limits.HOUR, limits.HOUR, limits.MINUTE) if age >= 2 * unit), limits.SECOND)
    return age // unit * unit


def _tables(snapshot: Snapshot) -> list[str]:
    names = [name for name in (FILES, PREDICATES) if name in snapshot.definitions]
    return sorted(
        {*(table for name in names for table in snapshot.scan(name, columns=["table"]).to_arrow()["table"].to_pylist())}
    )


def _table(store: Store, snapshot: Snapshot, table: str, there: Listed, *, deep: bool, tell: Tell) -> Iterator[Finding]:
    """What is to be said of a data table's files and markers."""
    rows = snapshot.scan(FILES, where={"table": table}).to_arrow().to_pylist() if FILES in snapshot.definitions else []
    whole: dict[str, Row] = {}
    for row in rows:
        info = there.files.get(row["path"])
        if info is None:
            yield Finding("MISSING", row["path"], "It is not there, and the catalog names it.")
        elif info.size != row["size"]:
            yield Finding("WRONG_SIZE", row["path"], f"It has {info.size:,} bytes, and the catalog says {row['size']:,}.")
        else:
            whole[row["path"]] = row
    predicates = {each.path: each for each in predicates_of(snapshot, table) if each.path is not None}
    for path in predicates:
        if path not in there.markers:
            yield Finding("MARKER_MISSING", path, "It is not there, and the catalog names it.")
    if deep:
        yield from _footers(store, snapshot, table, whole, there, tell)
        yield from _markers(store, predicates, there, tell)


def _footers(
    store: Store, snapshot: Snapshot, table: str, rows: Mapping[str, Row], there: Listed, tell: Tell
) -> Iterator[Finding]:
    live = Live.of(snapshot, table)
    schemas = {} if live is None else live.by_schema
    statistics = _statistics(snapshot, table)
    whole = partial(stored_file, filters=True)
    for found in read_each(whole, store, [there.files[path] for path in rows], "footers", tell):
        if isinstance(found, Finding):
            yield found
            continue
        row, said = rows[found.info.name], found
        different = [name for name in _SAID if (row[name] or None) != (said.row[name] or None)]
        if not {*said.row["applied"]} <= {*(row["applied"] or ())}:  # a restore may add to them
            different.append("applied")
        if different:
            yield Finding("SAYS_OTHERWISE", found.info.name, f"It and the catalog differ in {', '.join(different)}.")
        schema = schemas.get(row["schema"])
        if schema is not None and not bare(schema).equals(said.schema):
            yield Finding("SAYS_OTHERWISE", found.info.name, "It does not have the columns that the catalog says.")
        if _by_column(said.statistics.to_pylist()) != statistics.get(row["chunk"], {}):
            yield Finding("WRONG_STATISTICS", found.info.name, "Its statistics are not those that the catalog has of it.")


def _statistics(snapshot: Snapshot, table: str) -> dict[str, dict[str, Row]]:
    """What the catalog has of each file, by chunk and column."""
    if STATISTICS not in snapshot.definitions:
        return {}
    found: dict[str, list[Row]] = {}
    for row in snapshot.scan(STATISTICS, columns=SCHEMA.names, where={"table": table}).to_arrow().to_pylist():
        found.setdefault(row["chunk"], []).append(row)
    return {chunk: _by_column(rows) for chunk, rows in found.items()}


def _by_column(rows: list[Row]) -> dict[str, Row]:
    """Rows of statistics as they compare: what is not said is left out."""
    return {row["column"]: {**_said(row), "row_groups": [_said(each) for each in row["row_groups"] or ()]} for row in rows}


def _said(row: Row) -> Row:
    return {name: value for name, value in row.items() if value not in (None, []) and name != "row_groups"}


def _markers(store: Store, predicates: Mapping[str, Predicate], there: Listed, tell: Tell) -> Iterator[Finding]:
    infos = [there.markers[path] for path in predicates if path in there.markers]
    for found in read_each(marker, store, infos, "markers", tell):
        if isinstance(found, Marker):
            if found.predicate != predicates[found.info.name]:
                yield Finding("MARKER_SAYS_OTHERWISE", found.info.name, "It does not say what the catalog does.")
        else:
            yield found
