"""``compact`` and ``files``: the files that a data table has, and how they become fewer; and what all commands share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

import pyarrow as pa
import typer

from ....console.options import AsOf, CatalogArgument, Database, Json, Limit, StorageOption, open_catalog, snapshot_at
from ....console.output import finish, print_facts, print_rows, rows_of, write
from ....console.progress import progress_line
from ....errors import UnknownTable
from ....query.snapshot import Snapshot
from ....registry import JobTask
from ....store.base import Store
from ..compact import TARGET_BYTES
from ..files import FILES
from ..live import Live
from ..names import BEGINS
from ..read import READS

TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="The data table: cpu is what is read as data.cpu.", show_default=False)
]
WriterOption = Annotated[str | None, typer.Option("--writer", "-w", metavar="W", help="Who commits.  [default: data-HOST]")]
CompactorOption = Annotated[
    str | None, typer.Option("--writer", "-w", metavar="W", help="Who commits.  [default: compactor-HOST]")
]
OF_FILE = ["partition", "rows", "size", "chunk"]
"""What is shown of a file to people."""
_PartitionOption = Annotated[str | None, typer.Option("--partition", metavar="P", help="Only files of that partition.")]


def compact(
    catalog: CatalogArgument,
    table: TableArgument,
    partition: _PartitionOption = None,
    target_size: Annotated[
        int, typer.Option("--target-size", metavar="BYTES", min=1, help="About how large files become.")
    ] = TARGET_BYTES,
    writer: CompactorOption = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """Make fewer and larger files of small ones, in one commit, without what was deleted and what newer rows have replaced.

    Others may append, delete, remove and compact meanwhile.

    Example: bucketcatalog iox compact ./catalog cpu --partition 2026-01-05
    """
    opened = open_catalog(catalog, storage_option)
    live_of(opened.snapshot(database=database), table)  # an error of its own before a writer is opened
    with progress_line("compacting") as tell:

        def one_by_one(tasks: Sequence[JobTask], store: Store) -> list[Any]:
            made: list[Any] = []
            for task in tasks:
                tell(f"{len(made):,} of {len(tasks):,} files")
                made.append(task.run(store))
            return made

        done = opened.run_job(
            "iox.compact",
            database=database,
            writer=writer,
            run=one_by_one,
            table=table,
            partition=partition,
            target_bytes=target_size,
        )
    if as_json or done.version is not None:
        print_facts(asdict(done), as_json=as_json)
    else:
        write("Nothing is to be compacted.")
        finish()


def files(
    catalog: CatalogArgument,
    table: Annotated[
        str | None, typer.Argument(metavar="TABLE", help="The data table; without one all of them.", show_default=False)
    ] = None,
    partition: _PartitionOption = None,
    as_of: AsOf = None,
    limit: Limit = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
) -> None:
    """The files that data tables have, now or at a time or version.

    Example: bucketcatalog iox files ./catalog cpu --as-of 2026-01-05 --json
    """
    snapshot = snapshot_at(open_catalog(catalog, storage_option), database, as_of)
    columns = ["table", "added", *OF_FILE] if table is None else ["added", *OF_FILE]
    where = {} if partition is None else {"partition": partition}
    if table is not None:
        live_of(snapshot, table)
        where["table"] = table
    read = None if as_json else columns
    batches = snapshot.scan(FILES, columns=read, where=where).to_batches() if FILES in snapshot.definitions else []
    print_rows(islice(rows_of(batches), limit), columns, as_json=as_json, nothing="No file.")


def live_of(snapshot: Snapshot, table: str) -> Live:
    """What the table has there; ``UnknownTable`` says which tables there are."""
    found = Live.of(snapshot, table)
    if found is None:
        names = [name.removeprefix(BEGINS) for name in READS.names(snapshot)]
        told = f"It has {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}." if names else "It has none yet."
        raise UnknownTable(
            f"Database {snapshot.database!r} has no data table {table!r}.",
            next_step=f"{told} Begin one: bucketcatalog iox add CATALOG TABLE FILE.",
        )
    return found


def shown(files: pa.Table) -> Iterator[dict[str, Any]]:
    """Files as they are shown."""
    return rows_of([files.select(["partition", "chunk", "path", "rows", "size"])])
