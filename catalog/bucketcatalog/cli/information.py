"""``info``: what a catalog is, how large, how old, and what needs doing."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow.compute as pc

from .. import clock
from ..catalog import Catalog
from ..snapshot import Snapshot
from ..times import iso
from .options import CatalogArgument, Database, Json, StorageOption, open_catalog
from .output import finish, number, print_facts, size, visible, write
from .progress import Tell, progress_line

_MANY_EVENTS, _MANY_TRANSACTIONS = 1_000_000, 1_000


def info(
    catalog: CatalogArgument, database: Database = None, storage_option: StorageOption = None, as_json: Json = False
) -> None:
    """What a catalog is, how large, how old, and what needs doing.

    Example: bucketcatalog info ./catalog
    """
    opened = open_catalog(catalog, storage_option)
    names = [database] if database is not None else (opened.databases() or [opened.resolve_database(None)])
    with progress_line("reading the catalog") as tell:
        found = [_database(opened, opened.snapshot(database=name), catalog, tell) for name in names]
    if as_json:
        print_facts({"catalog": opened.url, "databases": found}, as_json=True)
        return
    write(f"catalog {visible(opened.url)}")
    for facts in found:
        _say(facts)
    finish()


def _database(catalog: Catalog, snapshot: Snapshot, url: str, tell: Tell) -> dict[str, Any]:
    objects = length = 0
    for batch in snapshot.scan("objects", columns=["content_length"]).to_batches():
        objects += len(batch)
        length += pc.sum(batch.column(0), min_count=0).as_py()
        tell(number(objects, "object"))
    writers = snapshot.scan("writers").to_arrow().to_pylist()
    files = [info for row in writers for info in catalog.store.list(f"{row['writer']}/{snapshot.database}/")]
    newest = max((row["last_commit_timestamp"] for row in writers), default=None)
    facts = {
        "database": snapshot.database,
        "version": snapshot.version,
        "newest_commit": iso(newest) if newest else None,
        "watermark": iso(snapshot.watermark),
        "writers": len(writers),
        "buckets": _count(snapshot, "buckets", "name"),
        "objects": objects,
        "content_length": length,
        "deleted_objects": _count(snapshot, "deleted_objects", "deleted_at"),
        "files": len(files),
        "bytes": sum(info.size for info in files),
        "checkpoints": len(snapshot.view.checkpoints),
        "uncovered_transactions": len(snapshot.view.tail),
        "uncovered_events": sum(transaction.events for transaction in snapshot.view.tail),
        "harvest_errors": _count(snapshot, "harvest_errors", "path"),
        "conflicts": len(snapshot.scan("conflicts").to_arrow()),
        "open_forks": sum(1 for fork in snapshot.view.forks if fork.open),
    }
    return {**facts, "to_do": _to_do(facts, url)}


def _count(snapshot: Snapshot, table: str, column: str) -> int:
    return sum(len(batch) for batch in snapshot.scan(table, columns=[column]).to_batches())


def _to_do(facts: dict[str, Any], url: str) -> list[str]:
    chosen = f"{url} --database {facts['database']}"
    found = []
    if facts["open_forks"]:
        found.append(f"two processes wrote as one writer: bucketcatalog forks {chosen}")
    if facts["uncovered_events"] >= _MANY_EVENTS or facts["uncovered_transactions"] >= _MANY_TRANSACTIONS:
        waiting = number(facts["uncovered_transactions"], "transaction")
        found.append(f"readers replay {waiting}: bucketcatalog checkpoint {chosen} --all-writers")
    if facts["conflicts"]:
        found.append(f"{number(facts['conflicts'], 'conflict')}: bucketcatalog conflicts {chosen}")
    if facts["harvest_errors"]:
        entries = number(facts["harvest_errors"], "entry", "entries")
        found.append(f"{entries} could not be harvested: bucketcatalog export {chosen} harvest_errors errors.parquet")
    return found


def _say(facts: dict[str, Any]) -> None:
    write(f"database {facts['database']}")
    write(
        f"  {number(facts['objects'], 'object')} ({size(facts['content_length'])}) in {number(facts['buckets'], 'bucket')}, "
        f"{number(facts['deleted_objects'], 'tombstone')} of objects"
    )
    write(
        f"  {number(facts['writers'], 'writer')}, {number(facts['files'], 'file')} ({size(facts['bytes'])}); "
        f"{number(facts['uncovered_transactions'], 'transaction')} after {number(facts['checkpoints'], 'checkpoint')}"
    )
    if facts["newest_commit"]:
        write(f"  newest commit {facts['newest_commit']}, {_age(facts['newest_commit'])} ago; settled up to {facts['watermark']}")
    write(f"  version {facts['version']}")
    for line in facts["to_do"] or ["nothing"]:
        write(f"  to do: {visible(line)}")


def _age(time: str) -> str:
    seconds = max(0, clock.now_us() / 1e6 - datetime.datetime.fromisoformat(time).timestamp())
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= 2 * length:
            return number(int(seconds // length), unit)
    return number(int(seconds), "second")


COMMANDS = {"info": info}
