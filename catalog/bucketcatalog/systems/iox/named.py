"""What a database names of data tables already, live and ended, and what it has lost of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from ...model.arrays import one_chunk
from ...query.snapshot import Snapshot
from .files import FILES, SCHEMAS
from .live import as_declared
from .predicates import PREDICATES
from .recovery import Known

LIVE_AND_ENDED = ("", "deleted_")
_OF_FILE = ("table", "partition", "chunk", "path", "write", "rows", "schema", "origins", "key_columns")
_OF_PREDICATE = {"table": pa.string(), "id": pa.string(), "chunks": pa.list_(pa.string()), "conditions": pa.list_(pa.null())}


@dataclass(frozen=True)
class Untold:
    """A schema of live files of which no row says what it is: the commit that said so is lost, and theirs are not."""

    table: str
    schema: str
    paths: Sequence[str]


@dataclass(frozen=True)
class Named:
    """The paths of files that a database names, what it knows of each data table, and the schemas that it does not tell."""

    paths: frozenset[str] = field(default=frozenset(), repr=False)
    tables: Mapping[str, Known] = field(default_factory=dict, repr=False)
    untold: Sequence[Untold] = ()


NOTHING_NAMED = Named()


def named_by(snapshot: Snapshot) -> Named:
    """What the database names at a snapshot's cut."""
    if FILES not in snapshot.definitions:
        return NOTHING_NAMED
    snapshot = as_declared(snapshot)
    live, ended = (snapshot.scan(f"{of}{FILES}", columns=_OF_FILE).to_arrow() for of in LIVE_AND_ENDED)
    every = pa.concat_tables([live, ended])
    predicates = _predicates(snapshot)
    tables = {*every["table"].to_pylist(), *predicates["table"].to_pylist()}
    known = {
        table: _known(*(each.filter(pc.equal(each["table"], table)) for each in (every, live, predicates))) for table in tables
    }
    return Named(frozenset(every["path"].to_pylist()), known, untold(snapshot))


def untold(snapshot: Snapshot) -> list[Untold]:
    """The schemas of live files that the database does not tell."""
    if FILES not in snapshot.definitions:
        return []
    snapshot = as_declared(snapshot)
    columns = ["table", "schema"]
    told = snapshot.scan(SCHEMAS, columns=columns).to_arrow() if SCHEMAS in snapshot.definitions else None
    files = snapshot.scan(FILES, columns=[*columns, "path"]).to_arrow()
    left = files if told is None else files.join(told, columns, join_type="left anti")
    found = left.group_by(columns).aggregate([("path", "list")]).sort_by([(name, "ascending") for name in columns])
    return [Untold(row["table"], row["schema"], sorted(row["path_list"])) for row in found.to_pylist()]


def _predicates(snapshot: Snapshot) -> pa.Table:
    if PREDICATES not in snapshot.definitions:
        return pa.schema(list(_OF_PREDICATE.items())).empty_table()
    return pa.concat_tables([snapshot.scan(f"{of}{PREDICATES}", columns=list(_OF_PREDICATE)).to_arrow() for of in LIVE_AND_ENDED])


def _known(files: pa.Table, live: pa.Table, predicates: pa.Table) -> Known:
    removals = predicates.filter(pc.equal(pc.fill_null(pc.list_value_length(one_chunk(predicates["conditions"])), 0), 0))
    kinds = [files[name].to_pylist() for name in ("write", "partition", "rows", "schema")]
    keys = live["key_columns"].to_pylist() or files["key_columns"].to_pylist()
    return Known(
        frozenset(files["chunk"].to_pylist()),
        frozenset(pc.list_flatten(one_chunk(files["origins"])).to_pylist()),
        dict(zip(removals["id"].to_pylist(), removals["chunks"].to_pylist(), strict=True)),
        frozenset(predicates["id"].to_pylist()),
        frozenset(zip(*kinds, strict=True)),
        tuple(keys[0] or ()) if keys else None,
    )
