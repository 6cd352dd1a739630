"""``add``, ``remove`` and ``delete``: rows that come and go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

from ....catalog import DEFAULT_DATABASE, Catalog
from ....console.options import (
    CatalogArgument,
    Database,
    Json,
    StorageOption,
    WrittenDatabase,
    Yes,
    open_catalog,
    refuse_unwritable,
)
from ....console.output import Row, finish, number, print_facts, print_rows, size, write
from ....console.progress import progress_line
from ....errors import InvalidOption, NotFound
from ....query.row_tests import Comparison
from ....query.snapshot import Snapshot
from ....write.commit import Committed
from ..bloom_filters import refuse_filters
from ..files import FILES
from ..live import Live
from ..names import BEGINS, DEFAULT_PARTITION
from ..plan import may_have
from ..write import batches_of, begin_write, checked
from .conditions import condition, in_range
from .files import OF_FILE, TableArgument, WriterOption, live_of, shown

TIME_COLUMN = "time"
"""The default of ``--time-column``."""
_NOTHING_DONE = "This is what would be done with --yes."


def add(
    catalog: CatalogArgument,
    table: TableArgument,
    file: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="Parquet files, by path or URL; they stay as they are.", show_default=False),
    ],
    partition: Annotated[
        str, typer.Option("--partition", metavar="P", help="Where rows go that have no column _partition.")
    ] = DEFAULT_PARTITION,
    key: Annotated[
        list[str] | None,
        typer.Option("--key", metavar="COL", help="A column that tells rows of a new table apart; repeat it."),
    ] = None,
    clock: Annotated[
        int | None, typer.Option("--clock", metavar="N", help="The rows' logical clock.  [default: the time of the write]")
    ] = None,
    bloom_filter: Annotated[
        list[str] | None,
        typer.Option(
            "--bloom-filter",
            metavar="COL",
            help="A column by whose values row groups are found; repeat it.  [default: those of which a file has such filters]",
        ),
    ] = None,
    writer: WriterOption = None,
    database: WrittenDatabase = DEFAULT_DATABASE,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Add the rows of Parquet files, which are written anew below the writer's own data, in one commit.

    Example: bucketcatalog iox add ./catalog cpu monday.parquet --partition 2026-01-05 --key host --key time
    """
    refuse_unwritable(catalog)
    opened = open_catalog(catalog, storage_option)
    _refuse_unreadable(file, table, database, key or (), bloom_filter or ())
    with progress_line("adding files"), opened.data(table, database=database, writer=writer) as held:
        committed = held.append(file, partition=partition, key=key, clock=clock, bloom_filters=bloom_filter)
    print_facts({"table": table, **_added(opened, database, table, committed)}, as_json=as_json)


def _refuse_unreadable(
    sources: Sequence[str], table: str, database: str, key: Sequence[str], bloom_filters: Sequence[str]
) -> None:
    """An error where one of the files cannot be added, as far as its first rows tell: then none is."""
    files = begin_write("-", database, table, key_columns=key)
    for source in sources:
        for batch in batches_of(source):
            refuse_filters(checked(pa.Table.from_batches([batch]), files).schema, bloom_filters, table)
            break


def _added(opened: Catalog, database: str, table: str, committed: Committed | None) -> dict[str, Any]:
    """What a commit has added, as the catalog says."""
    if committed is None:
        return {"files": 0, "rows": 0, "bytes": 0, "partitions": [], "version": None}
    snapshot = opened.snapshot(database=database, version=committed.version)
    columns = ["partition", "rows", "size", "_writer", "_revision"]
    found = snapshot.scan(FILES, columns=columns, where={"table": table}).to_arrow()
    is_its = pc.and_(
        pc.equal(found["_revision"], committed.revision), pc.equal(found["_writer"], committed.version.rpartition("@")[0])
    )
    found = found.filter(is_its)
    return {
        "files": len(found),
        "rows": pc.sum(found["rows"], min_count=0).as_py(),
        "bytes": pc.sum(found["size"], min_count=0).as_py(),
        "partitions": sorted(pc.unique(found["partition"]).to_pylist()),
        "version": committed.version,
    }


def remove(
    catalog: CatalogArgument,
    table: TableArgument,
    file: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CHUNK_OR_PATH]...", help="Files, by chunk or path as files shows them.", show_default=False),
    ] = None,
    partition: Annotated[
        str | None, typer.Option("--partition", metavar="P", help="All files of a partition, instead of some by name.")
    ] = None,
    yes: Yes = False,
    writer: WriterOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Remove files, or a partition: their rows count no more. Collection deletes their data later.

    Example: bucketcatalog iox remove ./catalog cpu --partition 2025-12-31 --yes
    """
    if bool(file) is (partition is not None):
        raise InvalidOption(
            "Either files are removed, or a partition.", next_step="Give files, by chunk or path, or --partition P."
        )
    opened = open_catalog(catalog, storage_option)
    snapshot = opened.snapshot(database=database)
    found = _meant(live_of(snapshot, table), file or (), partition)
    committed = None
    if yes:
        held = opened.data(table, database=snapshot.database, writer=writer)
        committed = held.remove(file or None, partition=partition)
        if committed is None:
            raise _gone(table, "what was there a moment ago")
    totals = {"rows": pc.sum(found["rows"], min_count=0).as_py(), "bytes": pc.sum(found["size"], min_count=0).as_py()}
    version = None if committed is None else committed.version
    if as_json:
        print_facts({"table": table, "files": list(shown(found)), **totals, "version": version, "dry_run": not yes}, as_json=True)
        return
    print_rows(shown(found), OF_FILE, as_json=False, nothing="")
    write(f"{number(len(found), 'file')}, {number(totals['rows'], 'row')}, {size(totals['bytes'])}")
    write(_NOTHING_DONE if version is None else f"committed {version}")
    finish()


def _meant(live: Live, named: Sequence[str], partition: str | None) -> pa.Table:
    """The files that are meant; ``NotFound`` where one of them is not there."""
    files = live.files
    if partition is not None:
        found = files.filter(pc.equal(files["partition"], partition))
        if not len(found):
            raise _gone(live.table, f"files in partition {partition!r}")
        return found
    known = {*files["chunk"].to_pylist(), *files["path"].to_pylist()}
    missing = [name for name in named if name not in known]
    if missing:
        raise _gone(live.table, f"the file {missing[0]}")
    names = pa.array(named, pa.string())
    return files.filter(pc.or_(pc.is_in(files["chunk"], value_set=names), pc.is_in(files["path"], value_set=names)))


def _gone(table: str, what: str) -> NotFound:
    return NotFound(
        f"Data table {table!r} does not have {what}.",
        next_step="See what it has: bucketcatalog iox files. What was compacted lies in another file.",
    )


def delete(
    catalog: CatalogArgument,
    table: TableArgument,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="'COLUMN OP VALUE'", help="A condition, such as \"host = 'a'\"; repeat it, all have to hold."
        ),
    ] = None,
    since: Annotated[str | None, typer.Option("--from", metavar="T", help="Only rows of that time and later.")] = None,
    until: Annotated[str | None, typer.Option("--to", metavar="T", help="Only rows of before that time.")] = None,
    time_column: Annotated[
        str | None, typer.Option("--time-column", metavar="COL", help=f"Which time.  [default: {TIME_COLUMN}]")
    ] = None,
    yes: Yes = False,
    writer: WriterOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Delete rows that are there now, by conditions that all have to hold: readers leave them out, compaction drops them.

    OP is =, !=, <, <=, >, >=, in, not in, is null, is not null or starts with. Without --yes rows are counted, for which files are read.

    Example: bucketcatalog iox delete ./catalog cpu --where "host in ('a', 'b')" --to 2026-01-01 --yes
    """
    if not where and since is None and until is None:
        raise InvalidOption(
            "Nothing says which rows are deleted.", next_step="Give --where, --from or --to; whole files go by iox remove."
        )
    if time_column is not None and since is None and until is None:
        raise InvalidOption("--time-column goes with --from or --to.", next_step="Give one of them, or leave it out.")
    opened = open_catalog(catalog, storage_option)
    snapshot = opened.snapshot(database=database)
    live = live_of(snapshot, table)
    columns = live.merged("cast").schema
    conditions = [condition(text, table, columns) for text in where or ()]
    if since is not None or until is not None:
        conditions += in_range(time_column or TIME_COLUMN, since, until, table, columns)
    live.refuse_outside_of_key(conditions)
    facts: dict[str, Any] = {"table": table, "files": len(may_have(snapshot, live, conditions, columns))}
    if yes:
        held = opened.data(table, database=snapshot.database, writer=writer)
        committed = held.delete_where([(each.column, each.comparison, each.value) for each in conditions])
        _say(
            {**facts, "rows": None, "version": None if committed is None else committed.version, "dry_run": False},
            as_json=as_json,
        )
        return
    with progress_line("counting rows") as tell:
        rows = 0
        for found in _meeting(snapshot, live, conditions, columns):
            rows += found
            tell(rows)
    _say({**facts, "rows": rows, "version": None, "dry_run": True}, as_json=as_json)


def _meeting(snapshot: Snapshot, live: Live, conditions: Sequence[Comparison], shape: pa.Schema) -> Iterator[int]:
    """How many rows meet the conditions, by batches of what statistics do not rule out."""
    where: dict[str, Any] = {}
    for each in conditions:
        if not each.is_negative and each.column not in where:
            where |= each.test(live.table, shape).where
    name, columns = f"{BEGINS}{live.table}", list(dict.fromkeys(each.column for each in conditions))
    for batch in snapshot.scan(name, columns=columns, where=where).to_batches():
        rows = pa.Table.from_batches([batch])
        yield pc.sum(reduce(pc.and_, (each.of(name, rows) for each in conditions)), min_count=0).as_py()


def _say(facts: Row, *, as_json: bool) -> None:
    print_facts(facts, as_json=as_json)
    if not as_json:
        nothing = facts["rows"] == 0 if facts["dry_run"] else facts["version"] is None
        write(
            "No row is such a one." if nothing else _NOTHING_DONE if facts["dry_run"] else "Readers leave them out from now on."
        )
        finish()
