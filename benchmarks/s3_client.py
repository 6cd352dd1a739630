"""A process of writers or clients for ``s3_writers``: reads what to do as a line of JSON, says that it is ready, begins when told to.

It prints how many commits were acknowledged, given up, and tried again, and how long it took.
"""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pyarrow as pa

FILES = pa.schema([("path", pa.string()), ("size", pa.int64())])
DATA_ROWS = 100
Commit = Callable[[], int]
"""Commits once and gives the number of further tries that it took; raises where it gives up."""


def ours(where: dict[str, Any], number: int) -> Commit:
    """A writer of its own, with a catalog of its own."""
    from bucketcatalog import Catalog
    from bucketcatalog.store import open_store
    from bucketcatalog.store.faults import Counting

    from . import servers

    store = Counting(open_store(f"s3://{where['bucket']}/catalog", where["options"]))
    writer = Catalog(store).writer(f"writer-{number}")
    count = 0

    def commit() -> int:
        nonlocal count
        count += 1
        before = store.requests["put"]
        with writer.transaction(operation="upload") as tx:
            tx.put("objects", servers.row(number << 20 | count))
        return int(store.requests["put"] - before - 1)

    return commit


def data(where: dict[str, Any], number: int) -> Commit:
    """A writer of its own that appends files to one data table, which it holds open."""
    from bucketcatalog import Catalog
    from bucketcatalog.store import open_store
    from bucketcatalog.store.faults import Counting

    from .iox_rows import measurements

    store = Counting(open_store(f"s3://{where['bucket']}/catalog", where["options"]))
    table = Catalog(store).data("cpu", writer=f"writer-{number}").__enter__()
    files = itertools.count(number << 20)

    def commit() -> int:
        before = store.requests["put"]
        table.append(measurements(next(files), DATA_ROWS))
        return int(store.requests["put"] - before - 2)

    return commit


def puts(where: dict[str, Any], number: int) -> Commit:
    """A boto3 client that puts as many bytes as a commit has, under names of the same shape."""
    from bucketcatalog.model.cuts import Head
    from bucketcatalog.model.paths import transaction

    from . import servers

    client, data, revisions = servers.plain(where["options"]), bytes(servers.commit_bytes()), itertools.count()

    def put() -> int:
        name = transaction(f"writer-{number}", "default", Head(next(revisions), uuid.uuid4().bytes))
        client.put_object(Bucket=where["bucket"], Key=name, Body=data)
        return 0

    return put


def delta_table(where: dict[str, Any], columns: pa.Schema = FILES) -> Any:
    """The table, of files or with these columns, made if it is not there."""
    import deltalake

    options = {
        "aws_access_key_id": where["options"]["key"],
        "aws_secret_access_key": where["options"]["secret"],
        "aws_endpoint_url": where["options"]["endpoint_url"],
        "aws_region": where["options"]["region"],
        "aws_allow_http": "true",
        "aws_conditional_put": "etag",
    }
    path = f"s3://{where['bucket']}/table"
    deltalake.DeltaTable.create(path, deltalake.Schema.from_arrow(columns), mode="ignore", storage_options=options)
    return deltalake.DeltaTable(path, storage_options=options)


def deltalake(where: dict[str, Any], number: int) -> Commit:
    """A table held open."""
    from deltalake.exceptions import CommitFailedError, DeltaError
    from deltalake.transaction import AddAction

    table, count = delta_table(where), 0

    def commit() -> int:
        nonlocal count
        count += 1
        action = AddAction(f"part-{number}-{count}.parquet", 1_000, {}, 1_700_000_000_000, True, '{"numRecords":1}')
        try:
            table.create_write_transaction([action], "append", FILES)
        except (CommitFailedError, DeltaError):
            table.update_incremental()
            raise
        table.update_incremental()
        return 0

    return commit


def delta_data_table(where: dict[str, Any]) -> Any:
    """The table of measurements, made if it is not there."""
    from .iox_rows import SCHEMA

    return delta_table(where, SCHEMA)


def deltalake_data(where: dict[str, Any], number: int) -> Commit:
    """A table of measurements held open, to which files are appended."""
    from deltalake import write_deltalake
    from deltalake.exceptions import CommitFailedError, DeltaError

    from .iox_rows import measurements

    table, files = delta_data_table(where), itertools.count(number << 20)

    def commit() -> int:
        try:
            write_deltalake(table, measurements(next(files), DATA_ROWS), mode="append")
        except (CommitFailedError, DeltaError):
            table.update_incremental()
            raise
        table.update_incremental()
        return 0

    return commit


def iceberg_table(where: dict[str, Any]) -> Any:
    """The table, in a catalog that all share, made if it is not there."""
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

    catalog = SqlCatalog(
        "bench",
        uri=f"sqlite:///{where['folder']}/{where['bucket']}.db",
        warehouse=f"s3://{where['bucket']}/warehouse",
        **{
            "s3.endpoint": where["options"]["endpoint_url"],
            "s3.access-key-id": where["options"]["key"],
            "s3.secret-access-key": where["options"]["secret"],
            "s3.region": where["options"]["region"],
        },
    )
    with suppress(NamespaceAlreadyExistsError):
        catalog.create_namespace("bench")
    with suppress(TableAlreadyExistsError):
        catalog.create_table("bench.table", FILES)
    return catalog.load_table("bench.table")


def pyiceberg(where: dict[str, Any], number: int) -> Commit:
    """A table of a catalog that all share."""
    from pyiceberg.exceptions import CommitFailedException

    table = iceberg_table(where)
    rows = pa.table({"path": ["part.parquet"], "size": [1_000]}, schema=FILES)

    def commit() -> int:
        for tries in range(16):
            try:
                table.append(rows)
                return tries
            except CommitFailedException:
                table.refresh()
        raise CommitFailedException("given up")

    return commit


PREPARED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "deltalake": delta_table,
    "deltalake data": delta_data_table,
    "pyiceberg": iceberg_table,
}
"""What has to be made once, before many use it."""
KINDS: dict[str, Callable[[dict[str, Any], int], Commit]] = {
    "ours": ours,
    "puts": puts,
    "data": data,
    "deltalake": deltalake,
    "deltalake data": deltalake_data,
    "pyiceberg": pyiceberg,
}


class Counts:
    """What the threads of this process did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.found = {"commits": 0, "failures": 0, "retries": 0}

    def work(self, commit: Commit, end: float, limit: int | None) -> None:
        """Commit until the time is over, or so many times."""
        done = failures = retries = 0
        while time.monotonic() < end and (limit is None or done < limit):
            try:
                retries += commit()
                done += 1
            except Exception as error:
                failures += 1
                print(f"{type(error).__name__}: {error}"[:200], file=sys.stderr)
        with self._lock:
            for name, value in (("commits", done), ("failures", failures), ("retries", retries)):
                self.found[name] += value


def main() -> None:
    """What the line on standard input asks for."""
    where = json.loads(sys.stdin.readline())
    commits = [KINDS[where["kind"]](where, where["first"] + number) for number in range(where["writers"])]
    counts = Counts()
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic()
    threads = [
        threading.Thread(target=counts.work, args=(commit, start + where["seconds"], where.get("limit"))) for commit in commits
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({**counts.found, "seconds": time.monotonic() - start}))


if __name__ == "__main__":
    main()
