"""Manta's operations against the RFD's SQL on a real PostgreSQL, on the same machine and disk, with the same rows.

Both are called in one process, as a service would: ours by ``Manta``, the server's by a connection a client. Every commit is durable on
either side. Rows come as Python has them from an operation, and as an Arrow table or as tuples from a batch.
"""

from __future__ import annotations

import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
from psycopg.types.json import Jsonb

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog
from bucketcatalog.model.uuids import uuid_text
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.systems.manta.garbage import BATCH
from bucketcatalog.systems.manta.operations import Manta
from minio.process import Server

from . import dataset, ours, postgres, servers
from .measuring import in_turns
from .results import Goal, Group, Measure
from .sessions import spark_session
from .world import World

PLACE = {"owner": uuid_text(dataset.OWNER), "bucket_id": uuid_text(dataset.BUCKET)}
CLIENTS = (1, 8)
ROUNDS, CREATE_ROUNDS = 7, 5
GARBAGE = 10_000
THE_SAME = "the RFD's SQL"
Create = Callable[[int, str], object]
"""Writes an object of a name, for one of the clients."""


def run(world: World) -> Group:
    """The group."""
    with ExitStack() as stack:
        dsn = stack.enter_context(postgres.server(world.empty("postgres")))
        with psycopg.connect(dsn) as connection:
            described = postgres.described(connection)
        measures = [*_creates(world, dsn), *_of_many(world, dsn)]
    settings = {
        "server": described,
        "ours": "Manta held open, local store; reads are of a snapshot that is held, what it has decoded in memory",
        "the RFD's SQL": "one prepared statement an operation, a connection a client; names COLLATE C, the RFD's indexes, VACUUM ANALYZE",
        "createobject": f"{world.scale.manta_creates} a run, names that are new, {CREATE_ROUNDS} runs in turns; clients are threads",
        "others": f"median of {ROUNDS} in turns after one to warm up, listings and accounts after three, each at another random place",
        "listings": "once every directory has been listed: of all objects the keys are at hand",
    }
    return Group(measures, settings)


def _creates(world: World, dsn: str) -> Iterator[Measure]:
    """``createobject`` by one client and by eight: on the local store against the server, and on MinIO, which is told alone."""
    postgres.load(dsn, made(world.empty("manta"), 10))
    count = world.scale.manta_creates
    with ExitStack() as stack:
        local = stack.enter_context(Manta(Catalog(world.empty("manta")), writer="node-1"))
        server = stack.enter_context(Server())
        url = f"s3://{servers.bucket(server)}/catalog"
        remote = stack.enter_context(Manta(Catalog(url, storage_options=server.storage_options), writer="node-1"))
        connections = [stack.enter_context(psycopg.connect(dsn, autocommit=True)) for _ in range(max(CLIENTS))]
        ways: dict[str, Create] = {
            "ours": lambda client, name: local.createobject(**_row(name)),
            "s3": lambda client, name: remote.createobject(**_row(name)),
            "sql": lambda client, name: connections[client].execute(postgres.WRITE_OBJECT, _parameters(name)).fetchone(),
        }
        for clients, least in zip(CLIENTS, (0.5, 1.0), strict=True):
            subjects = {way: partial(_by_clients, create, clients, count) for way, create in ways.items()}
            in_turns(subjects, 1)
            each = {way: s.scaled(1 / count, "s") for way, s in in_turns(subjects, CREATE_ROUNDS).items()}
            name = f"Manta createobject, {clients} {'client' if clients == 1 else 'clients'}"
            yield Measure(f"{name}, local store", each["ours"], each["sql"], THE_SAME, Goal("other / ours", "at least", least))
            yield Measure(f"{name}, MinIO", each["s3"], each["sql"], f"{THE_SAME} on a local disk", compares="other / ours")


def _by_clients(create: Create, clients: int, count: int) -> None:
    """So many objects, divided among so many threads."""
    run_id = uuid.uuid4().hex

    def work(client: int) -> None:
        for number in range(client, count, clients):
            create(client, f"projects/{number % 100:02}/{run_id}-{number:06}")

    threads = [threading.Thread(target=work, args=(client,)) for client in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _row(name: str) -> dict[str, Any]:
    return {
        **PLACE,
        "name": name,
        "id": str(uuid.uuid4()),
        "content_length": 14_917,
        "content_md5": "xzY5jJbR9rcrMRhlcmi/8g==",
        "content_type": "text/plain",
        "headers": {"m-custom-header1": "value1"},
        "sharks": ["us-east-1:1.stor", "us-east-2:3.stor"],
    }


def _parameters(name: str) -> dict[str, Any]:
    row = _row(name)
    return {**row, "content_md5": bytes(16), "headers": Jsonb(row["headers"])}


def _of_many(world: World, dsn: str) -> Iterator[Measure]:
    """Listings, batches and accounts, of many objects and tombstones."""
    listed = made(world.empty("listed"), world.scale.manta_objects, tombstones=world.scale.manta_tombstones)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("TRUNCATE manta_bucket, manta_bucket_object, manta_bucket_deleted_bucket, manta_bucket_deleted_object")
    postgres.load(dsn, listed)
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield from listings(Catalog(listed), connection, world.scale.manta_objects)
        yield from batches(Catalog(listed), connection, world.scale.manta_tombstones)
        connection.execute("TRUNCATE manta_bucket_object, manta_bucket_deleted_object")
    accounted = made(world.empty("accounted"), world.scale.manta_accounted)
    postgres.load(dsn, accounted)
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield from _accounts(world, accounted, connection)


def listings(catalog: Catalog, connection: psycopg.Connection[Any], objects: int) -> Iterator[Measure]:
    held = catalog.snapshot()
    chance = random.Random(149)
    name = f"Manta listing of 1,000 of {objects:,} names at a random place"
    goal = Goal("ours / other", "at most", 3)

    def page(snapshot: Callable[[], Snapshot]) -> None:
        marker = f"projects/{chance.randrange(100):02}/datasets/{chance.randrange(100):02}/picture-{chance.getrandbits(32):08x}"
        assert len(snapshot().list("objects", **PLACE, marker=marker, limit=1_000).rows) > 0

    def sql() -> None:
        marker = f"projects/{chance.randrange(99):02}/datasets/{chance.randrange(100):02}/picture-{chance.getrandbits(32):08x}"
        assert connection.execute(postgres.LIST, {**PLACE, "marker": marker}).fetchall()

    def groups(snapshot: Callable[[], Snapshot], project: int | None = None) -> None:
        prefix = f"projects/{chance.randrange(100) if project is None else project:02}/datasets/"
        assert len(snapshot().list("objects", **PLACE, prefix=prefix, delimiter="/", limit=1_000).groups) <= 100

    def sql_groups() -> None:
        prefix = f"projects/{chance.randrange(100):02}/datasets/"
        assert len(connection.execute(postgres.LIST_GROUPS, {**PLACE, "prefix": prefix}).fetchall()) <= 100

    for project in range(100):  # as a service that has run for a while: of all objects the keys are at hand
        groups(lambda: held, project)
    for what, ask, asked in (("", page, sql), (", by directory: 100 groups below a random prefix", groups, sql_groups)):
        subjects = {
            "held": partial(ask, lambda: held),
            "fresh": partial(ask, lambda: Catalog(catalog.store).snapshot()),
            "sql": asked,
        }
        in_turns(subjects, 3)
        samples = in_turns(subjects, ROUNDS)
        yield Measure(f"{name}{what}", samples["held"], samples["sql"], THE_SAME, goal)
        yield Measure(f"{name}{what}, of a catalog opened for it", samples["fresh"], samples["sql"], THE_SAME)


def batches(catalog: Catalog, connection: psycopg.Connection[Any], tombstones: int) -> Iterator[Measure]:
    held, limit = catalog.snapshot(), min(GARBAGE, tombstones)

    def ours() -> None:
        assert len(held.ended("objects", limit=limit)) == limit

    def sql() -> None:
        assert len(connection.execute(postgres.GARBAGE, {"limit": limit}).fetchall()) == limit

    in_turns({"ours": ours, "sql": sql}, 1)
    samples = in_turns({"ours": ours, "sql": sql}, ROUNDS)
    name = f"Manta batch of the {limit:,} that ended first of {tombstones:,} tombstones"
    yield Measure(name, samples["ours"], samples["sql"], THE_SAME, Goal("ours / other", "at most", 3))
    with Manta(catalog, writer="node-1", grace="0s") as node:

        def collect() -> None:
            batch = node.getgcbatch()
            assert len(batch["garbage"]) == BATCH
            node.deletegcbatch(batch_id=batch["batch_id"])

        def collected() -> None:
            assert len(connection.execute(postgres.COLLECTED, {"limit": BATCH}).fetchall()) == BATCH

        in_turns({"ours": collect, "sql": collected}, 1)
        samples = in_turns({"ours": collect, "sql": collected}, ROUNDS)
    name = f"Manta getgcbatch and deletegcbatch, {BATCH:,} of {tombstones:,} tombstones, one after the other"
    yield Measure(name, samples["ours"], samples["sql"], f"{THE_SAME}, in one statement")


def _accounts(world: World, path: Path, connection: psycopg.Connection[Any]) -> Iterator[Measure]:
    query = "SELECT owner, bucket_id, content_type, count(*), sum(content_length) FROM manta_bucket_object GROUP BY ALL"
    with spark_session(world.directory) as spark:
        bcs.attach(spark, str(path), systems=["manta"])
        subjects = {
            "ours": lambda: _some(spark.sql(query).collect()),
            "view": lambda: _some(spark.sql("SELECT * FROM manta_usage_by_content_type").collect()),
            "sums": lambda: _some(spark.sql("SELECT * FROM manta_usage_by_bucket").collect()),
            "sql": lambda: _some(connection.execute(postgres.USAGE).fetchall()),
        }
        in_turns(subjects, 3)
        samples = in_turns(subjects, ROUNDS)
    name = f"Manta accounts of {world.scale.manta_accounted:,} objects in Spark"
    faster = Goal("ours / other", "at most", 1)
    yield Measure(f"{name}, by bucket and content type", samples["ours"], samples["sql"], THE_SAME, faster)
    yield Measure(f"{name}, the view by content type", samples["view"], samples["sql"], THE_SAME)
    yield Measure(f"{name}, the view by bucket, from sums", samples["sums"], samples["sql"], f"{THE_SAME}, by content type too")


def _some(rows: list[Any]) -> None:
    assert rows


def made(path: Path, objects: int, tombstones: int = 0) -> Path:
    """A catalog of so many objects, and of as many tombstones, which were live before and ended in no order of their names."""
    parts = [dataset.objects(objects, seed=ours.FIRST_SEED)]
    ended = dataset.objects(tombstones, seed=ours.FIRST_SEED + 1) if tombstones else parts[0].slice(0, 0)
    order = pa.array(np.random.default_rng(7).permutation(tombstones))
    with Catalog(path).writer(f"compactor-{ours.WRITER}") as writer:
        for rows in (ended, *parts):
            for start in range(0, len(rows), 500_000):
                with writer.transaction() as tx:
                    tx.put("objects", rows.slice(start, 500_000))
        keys = ended.select(["owner", "bucket_id", "name"]).take(order)
        for start in range(0, tombstones, GARBAGE):
            with writer.transaction() as tx:
                tx.delete("objects", keys.slice(start, GARBAGE))
        writer.checkpoint(scope="all", full=True)
    return path
