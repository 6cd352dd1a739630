"""``log``, ``writers``, ``checkpoints``, ``forks``, ``conflicts`` and ``sums``: the tables about the catalog itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from ..console.options import (
    AsOf,
    CatalogArgument,
    Database,
    IgnoreCorruption,
    Json,
    Limit,
    StorageOption,
    open_catalog,
    snapshot_at,
)
from ..console.output import print_rows, rows_of, size

_COLUMNS = {
    "log": ("commit_timestamp", "version", "operation", "events", "bytes", "metadata"),
    "writers": ("writer", "role", "revision", "last_commit_timestamp", "uncovered", "retired"),
    "tables": ("table", "key", "id", "tombstones", "columns"),
    "checkpoints": ("as_of", "writer", "revision", "writers", "rows", "bytes", "segments", "in_use"),
    "conflicts": ("commit_timestamp", "kind", "writer", "expected", "found", "other_writer", "table", "bucket", "key"),
    "forks": ("writer", "revision", "open", "uuids"),
    "sums": ("value", "name", "table", "bucket", "group"),
}

_LOG_OF_HARVESTS = (*_COLUMNS["log"][:-1], "harvested", "metadata")


def show(
    name: str,
    catalog: str,
    database: str | None,
    as_of: str | None,
    limit: int | None,
    ignore_corruption: bool,
    storage_option: list[str] | None,
    *,
    as_json: bool,
    nothing: str,
) -> None:
    """Print a table about the catalog; ``nothing`` is what to say where it has no rows."""
    snapshot = snapshot_at(open_catalog(catalog, storage_option), database, as_of, ignore_corruption=ignore_corruption)
    rows = snapshot.scan(name).to_arrow()
    if name == "log":
        rows = rows.take(list(range(len(rows) - 1, -1, -1)))
    columns, shown = _COLUMNS[name], rows_of([rows])
    if name == "log" and not as_json and rows["started"][:limit].null_count < len(rows[:limit]):
        columns, shown = _LOG_OF_HARVESTS, ({**row, "harvested": _harvested(row)} for row in shown)
    print_rows(islice(shown, limit), columns, as_json=as_json, nothing=nothing)


def _harvested(row: Mapping[str, Any]) -> str | None:
    """What a harvest did, in short."""
    if row["seconds"] is None:
        return None
    done = ", ".join(f"{row[name]:,} {name}" for name in ("created", "overwritten", "updated", "deleted") if row[name])
    changed = (row["created_bytes"] or 0) + (row["overwritten_bytes"] or 0)
    return f"{done or 'nothing changed'}{f' ({size(changed)})' if changed else ''} in {row['seconds']:.1f} s"


def _command(name: str, what: str, nothing: str) -> Callable[..., None]:
    def command(
        catalog: CatalogArgument,
        database: Database = None,
        as_of: AsOf = None,
        limit: Limit = None,
        ignore_corruption: IgnoreCorruption = False,
        storage_option: StorageOption = None,
        as_json: Json = False,
    ) -> None:
        show(name, catalog, database, as_of, limit, ignore_corruption, storage_option, as_json=as_json, nothing=nothing)

    command.__doc__ = f"{what}\n\n    Example: bucketcatalog {name} ./catalog --json"
    return command


COMMANDS = {
    "log": _command("log", "The commits, newest first.", "No commit."),
    "writers": _command("writers", "Who has written, and up to where.", "No writer."),
    "checkpoints": _command(
        "checkpoints", "The checkpoints there are; in use are those that reading starts from.", "No checkpoint."
    ),
    "forks": _command(
        "forks", "Revisions at which two processes wrote as one writer.", "No fork: no writer id was used twice at a time."
    ),
    "conflicts": _command("conflicts", "What was expected and not found, and updates that came too late.", "No conflict."),
    "sums": _command("sums", "Sums and counts of live rows by group, such as each bucket's objects and bytes.", "No sum."),
}
