"""``info``: what a catalog is, how large, how old, and what needs doing."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .. import clock
from ..catalog import Catalog
from ..console.options import CatalogArgument, Database, Json, StorageOption, open_catalog
from ..console.output import finish, number, print_facts, size, visible, write
from ..console.progress import progress_line
from ..errors import UNREADABLE, BucketCatalogError, StoreError
from ..model.times import iso, micros, shown_age
from ..query.info import Advice, Information, LevelInformation, Progress, TableInformation, chosen, describe

_OBJECTS, _BUCKETS, _BYTES, _ERRORS = "objects", "buckets", "bytes", "harvest_errors"
_IN_WORDS = frozenset({_OBJECTS, _BUCKETS, _ERRORS})
"""Tables of the core that have words of their own here, as a sum over one of them has; of others rows and sums are shown."""


def info(
    catalog: CatalogArgument, database: Database = None, storage_option: StorageOption = None, as_json: Json = False
) -> None:
    """What a catalog is, how large, how old, and what needs doing. Where something is damaged, that of the rest; it ends with 1 then.

    Example: bucketcatalog info ./catalog
    """
    opened = open_catalog(catalog, storage_option)
    names, in_the_way = ([database], None) if database is not None else _found(opened)
    with progress_line("reading the catalog") as tell:
        looked = [_looked(opened, name, lambda count: tell(number(count, "row"))) for name in names]
    found = [each for each, _ in looked]
    errors = [error for error in (in_the_way, *(error for _, error in looked)) if error is not None]
    if as_json:
        print_facts({"catalog": opened.url, "databases": [_document(each, opened.url) for each in found]}, as_json=True)
    else:
        write(f"catalog {visible(opened.url)}")
        for each in found:
            _say(each, opened.url)
    finish()
    if errors:
        raise errors[0]


def _found(opened: Catalog) -> tuple[list[str], BucketCatalogError | None]:
    """The databases there are; where something is in the way of finding them, those beside it, with the error that says so."""
    try:
        return opened.databases() or [opened.resolve_database(None)], None
    except StoreError as error:
        if not error.in_the_way or not (names := opened.databases(ignore_corruption=True)):
            raise
        return names, error


def _looked(opened: Catalog, database: str, progress: Progress) -> tuple[Information, BucketCatalogError | None]:
    """What is known of a database; where it cannot all be read, of the rest, with the error that says so."""
    try:
        return opened.info(database=database, progress=progress), None
    except (*UNREADABLE, StoreError) as error:
        if isinstance(error, StoreError) and not error.in_the_way:
            raise
        rest = describe(opened.snapshot(database=database, ignore_corruption=True), opened.url, progress)
        damage = Advice(
            "something is damaged, and what is lost with it is not counted",
            f"bucketcatalog verify {chosen(opened.url, database)}",
        )
        return replace(rest, to_do=(damage, *rest.to_do)), error


def _document(found: Information, place: str) -> dict[str, Any]:
    """The facts as JSON has them, the commonest ones first."""
    return {
        "database": found.database,
        "version": found.version,
        "newest_commit": _iso(found.newest_commit),
        "watermark": iso(found.watermark),
        "writers": found.writers,
        "buckets": found.table(_BUCKETS).live,
        "objects": found.table(_OBJECTS).live,
        "content_length": _length(found),
        "deleted_objects": found.table(_OBJECTS).tombstones,
        "files": found.files.count,
        "bytes": found.files.bytes,
        "change_bytes": found.files.changes,
        "checkpoint_bytes": found.files.checkpoints,
        "write_amplification": _rounded(found.write_amplification),
        "checkpoints": found.checkpoints,
        "stored_checkpoints": found.stored_checkpoints,
        "newest_checkpoint": _iso(found.newest_checkpoint),
        "uncovered_transactions": found.uncovered_transactions,
        "uncovered_events": found.uncovered_events,
        "uncovered_bytes": found.uncovered_bytes,
        "tables": [_table(table) for table in found.tables],
        "harvest_errors": found.table(_ERRORS).live,
        "conflicts": found.conflicts,
        "open_forks": found.open_forks,
        "forked": list(found.forked),
        "tags": found.tags,
        "pins": found.pins,
        "horizon": found.horizon,
        "horizon_time": _iso(found.horizon_time),
        "to_do": _to_do(found, place),
    }


def _table(found: TableInformation) -> dict[str, Any]:
    return {
        "table": found.table,
        "live": found.live,
        "tombstones": found.tombstones,
        "stored": found.stored,
        "uncovered_events": found.uncovered_events,
        "space_amplification": _rounded(found.space_amplification),
        "levels": [{"level": it.level, "rows": it.rows, "blocks": it.blocks, "bytes": it.bytes} for it in found.levels],
        **({"sums": dict(found.sums)} if found.sums and found.table != _OBJECTS else {}),
    }


def _length(found: Information) -> int:
    """The bytes of all objects."""
    return found.table(_OBJECTS).sums.get(_BYTES, 0)


def _to_do(found: Information, place: str) -> list[str]:
    """What needs doing, in the catalog and in what was harvested into it."""
    advised = [*found.to_do]
    if errors := found.table(_ERRORS).live:
        command = f"bucketcatalog export {chosen(place, found.database)} {_ERRORS} errors.parquet"
        advised.append(Advice(f"{number(errors, 'entry', 'entries')} could not be harvested", command))
    return [f"{advice.why}: {advice.command}" for advice in advised]


def _iso(time: datetime.datetime | None) -> str | None:
    return None if time is None else iso(time)


def _rounded(ratio: float | None) -> float | None:
    return None if ratio is None else round(ratio, 3)


def _say(found: Information, place: str) -> None:
    objects = found.table(_OBJECTS)
    write(f"database {found.database}")
    write(
        f"  {number(objects.live, 'object')} ({size(_length(found))}) in {number(found.table(_BUCKETS).live, 'bucket')}, "
        f"{number(objects.tombstones, 'tombstone')} of objects"
    )
    write(
        f"  {number(found.writers, 'writer')}, {number(found.files.count, 'file')} ({size(found.files.bytes)}); "
        f"{number(found.uncovered_transactions, 'transaction')} ({size(found.uncovered_bytes)}) after "
        f"{number(found.checkpoints, 'checkpoint')}{_made(found)}"
    )
    for table in found.tables:
        if table.table not in _IN_WORDS:
            write(f"  {visible(table.table)}: {visible(', '.join(_rows(table)))}")
        for level in table.levels:
            write(f"  {visible(table.table)}, {_level(level)}")
    if found.files.checkpoints and found.write_amplification is not None:
        amplification = f"  checkpoints wrote {found.write_amplification:.1f} bytes for each byte of changes"
        rows = f"; {objects.space_amplification:.1f} rows are stored for each live object" if objects.space_amplification else ""
        write(amplification + rows)
    if found.newest_commit:
        write(
            f"  newest commit {iso(found.newest_commit)}, {_age(found.newest_commit)} ago; settled up to {iso(found.watermark)}"
        )
    if found.horizon_time:
        write(f"  history from {iso(found.horizon_time)} on; {number(found.tags, 'tag')}")
    if found.pins:
        write(f"  {number(found.pins, 'pin')}: a prune leaves what was committed after {'it' if found.pins == 1 else 'them'}")
    write(f"  version {found.version}")
    for line in _to_do(found, place) or ["nothing"]:
        write(f"  to do: {visible(line)}")


def _rows(table: TableInformation) -> Iterator[str]:
    """How many rows a table has, and what its sums come to."""
    yield number(table.live, "row")
    if table.tombstones:
        yield number(table.tombstones, "tombstone")
    yield from (f"{name} {value:,}" for name, value in table.sums.items())


def _made(found: Information) -> str:
    return f", the newest made {_age(found.newest_checkpoint)} ago" if found.newest_checkpoint else ""


def _level(level: LevelInformation) -> str:
    return f"level {level.level}: {number(level.rows, 'row')}, {number(level.blocks, 'block')} ({size(level.bytes)})"


def _age(time: datetime.datetime) -> str:
    return shown_age(max(0, clock.now_us() - micros(time)))


COMMANDS = {"info": info}
