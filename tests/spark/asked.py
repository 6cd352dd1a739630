"""A catalog that is written to while it is asked, and lists of what was committed, from which every answer follows."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from pyspark.sql import DataFrame, SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog

from .questions import Row, Source
from .sample import read

OWNERS = ["8f1a1c3e-52f3-4f0e-9d8b-0a4c5b6d7e8f", "b5d0c1aa-1111-4222-8333-c0ffee000001"]
NAMES = ["a", "a/1", "a/2", "a/2 ", "b", "b/\u00e9", "b/\uffff", "b/\U0001f408", "z"]
LENGTHS = [0, 1, 2, 3, 5, 8, 1 << 31, 1 << 40]
TYPES = ["image/jpeg", "image/png", "text", "", "\u00e9t\u00e9"]
COLUMNS = ("owner", "bucket_id", "name", "content_length", "content_type", "legal_hold")
KEY = COLUMNS[:3]
Key = tuple[Any, ...]


@dataclass(frozen=True)
class Moment:
    """What the catalog held after a commit: live rows, tombstones, and how many events there had been."""

    version: str
    time: int
    live: dict[Key, Row]
    ended: tuple[Row, ...]
    events: int


@dataclass
class Lake:
    """The catalog at ``path``, two writers who take turns, and every moment of it so far."""

    path: str
    rng: Random
    moments: list[Moment] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    tags: dict[str, Moment] = field(default_factory=dict)

    def __post_init__(self) -> None:
        catalog = Catalog(self.path)
        self._writers = [catalog.writer(name, database="photos") for name in ("node-1", "node-2")]
        self._compactor = catalog.writer("compactor-1", database="photos")
        with self._writers[0].transaction() as tx:
            tx.put("buckets", [{"owner": owner, "name": name} for owner in OWNERS for name in ("cats", "dogs")])
        shown = catalog.snapshot().scan("buckets", columns=["owner", "name", "id"]).to_arrow().to_pylist()
        self.buckets = {(row["owner"], row["name"]): row["id"] for row in shown}
        self.commit()

    @property
    def values(self) -> dict[str, Sequence[Any]]:
        """What conditions compare each column with."""
        return {
            "owner": [*OWNERS, OWNERS[0].upper(), "c"],
            "bucket_id": [*self.buckets.values(), "8"],
            "name": NAMES,
            "content_length": LENGTHS,
            "content_type": TYPES,
            "legal_hold": [True, False],
            "_change_type": ["put", "delete"],
            "deleted_at": [moment.time for moment in self.moments],
        }

    def close(self) -> None:
        for writer in (*self._writers, self._compactor):
            writer.close()

    def commit(self) -> None:
        """Put and delete a few objects."""
        rng, before = self.rng, self.moments[-1] if self.moments else Moment("", 0, {}, (), 0)
        live, ended = dict(before.live), []
        put, deleted = {}, []
        for _ in range(rng.randint(1, 8)):
            row = self._row()
            put[tuple(row[name] for name in KEY)] = row
        for key in rng.sample(sorted(live), min(len(live), rng.choice([0, 0, 1, 3]))):
            if key not in put:
                deleted.append(dict(zip(KEY, key, strict=True)))
        with rng.choice(self._writers).transaction() as tx:
            tx.put("objects", [{name: value for name, value in row.items() if value is not None} for row in put.values()])
            if deleted:
                tx.delete("objects", deleted)
        time = tx.committed.commit_time
        for key in [*put, *(tuple(gone.values()) for gone in deleted)]:
            if key in live:
                ended.append({**live.pop(key), "deleted_at": time})
        live |= put
        self.events += [{**row, "_change_type": "put"} for row in put.values()]
        self.events += [{**dict.fromkeys(COLUMNS), **gone, "_change_type": "delete"} for gone in deleted]
        version = Catalog(self.path).snapshot().version
        self.moments.append(Moment(version, time, live, (*before.ended, *ended), len(self.events)))

    def _row(self) -> dict[str, Any]:
        rng = self.rng
        owner, bucket = rng.choice(sorted(self.buckets))
        return {
            "owner": owner,
            "bucket_id": self.buckets[owner, bucket],
            "name": rng.choice(NAMES),
            "content_length": rng.choice([None, *LENGTHS]),
            "content_type": rng.choice([None, *TYPES]),
            "legal_hold": rng.choice([None, True, False]),
        }

    def checkpoint(self) -> None:
        """Of one writer, or of all by a compactor; it may merge everything."""
        writer, scope = self.rng.choice(self._writers), self.rng.choice(["own", "all"])
        (self._compactor if scope == "all" else writer).checkpoint(scope=scope, full=self.rng.random() < 0.3)

    def tag(self) -> None:
        """Give a name to some moment."""
        name, moment = f"tag{len(self.tags)}", self.rng.choice(self.moments)
        Catalog(self.path).tag(name, version=moment.version)
        self.tags[name] = moment

    # Sources

    def source(self, spark: SparkSession) -> Source:
        """Something new to ask: a frame, a view or a table, of rows, tombstones or events."""
        number = uuid.UUID(int=self.rng.getrandbits(128)).hex
        makers = [self._frame, self._frame, self._typed, self._tombstones, self._attached, self._feed, self._view, self._table]
        return self.rng.choice(makers)(spark, f"asked_{number}")

    def _at(self) -> tuple[dict[str, Any], Moment]:
        """Options that name a moment, and the moment."""
        moment = self.rng.choice(self.moments)
        ways: list[tuple[dict[str, Any], Moment]] = [
            ({}, self.moments[-1]),
            ({"versionAsOf": moment.version}, moment),
            ({"timestampAsOf": f"@{moment.time}"}, moment),
            *(({"versionAsOf": name}, tagged) for name, tagged in self.tags.items()),
        ]
        return self.rng.choice(ways)

    def _narrowed(self, *, owners: bool = True) -> tuple[dict[str, Any], Any]:
        """Options that narrow a read, and which rows they leave."""
        rng = self.rng
        owner, bucket = rng.choice(sorted(self.buckets))
        start = rng.choice(NAMES)[:1]
        options: dict[str, Any] = {"maxPartitionRows": "65536"}
        if owners and rng.random() < 0.4:
            options |= {"owner": owner}
        if "owner" in options and rng.random() < 0.5:
            options |= {"bucket": bucket}
        if rng.random() < 0.3:
            options |= {"prefix": start}

        def shows(row: Row) -> bool:
            return (
                ("owner" not in options or row["owner"] == owner)
                and ("bucket" not in options or row["bucket_id"] == self.buckets[owner, bucket])
                and ("prefix" not in options or str(row["name"]).startswith(start))
            )

        return options, shows

    def _read(self, spark: SparkSession, **options: Any) -> DataFrame:
        """By the data source, or natively where that can be."""
        return self.rng.choice([read, bcs.read, bcs.read])(spark, self.path, **options)

    def _attached(self, spark: SparkSession, name: str) -> Source:
        """A view among those of a whole database."""
        at, moment = self._at()
        bcs.attach(spark, self.path, view_prefix=f"{name}_", **at)
        shown, rows = self.rng.choice([("objects", list(moment.live.values())), ("deleted_objects", moment.ended)])
        spark.table(f"{name}_{shown}").createOrReplaceTempView(name)
        return Source(name, (*COLUMNS, *(["deleted_at"] if rows is moment.ended else [])), lambda: rows)

    def _frame(self, spark: SparkSession, name: str) -> Source:
        (at, moment), (options, shows) = self._at(), self._narrowed()
        columns = COLUMNS
        if self.rng.random() < 0.3:
            columns = ("content_type", "name", "content_length", "owner", "bucket_id")
            options |= {"columns": ", ".join(columns)}
        frame = self._read(spark, **options, **at)
        if self.rng.random() < 0.2:
            frame = frame.select(*columns).cache()
        frame.createOrReplaceTempView(name)
        return Source(name, columns, lambda: [row for row in moment.live.values() if shows(row)], frame)

    def _typed(self, spark: SparkSession, name: str) -> Source:
        """A frame whose schema the user gives takes its cut at its first action."""
        ddl = "content_length bigint, name string, _revision bigint, legal_hold boolean"
        moment = self.moments[-1]
        frame = spark.read.format("bucketcatalog").schema(ddl).load(self.path)
        frame.createOrReplaceTempView(name)
        assert frame.count() == len(moment.live)
        return Source(name, ("content_length", "name", "legal_hold"), lambda: list(moment.live.values()), frame)

    def _tombstones(self, spark: SparkSession, name: str) -> Source:
        (at, moment), (options, shows) = self._at(), self._narrowed()
        frame = self._read(spark, table="deleted_objects", **options, **at)
        frame.createOrReplaceTempView(name)
        return Source(name, (*COLUMNS, "deleted_at"), lambda: [row for row in moment.ended if shows(row)], frame)

    def _feed(self, spark: SparkSession, name: str) -> Source:
        start, end = sorted(self.rng.choices(range(len(self.moments)), k=2))
        first, last = self.moments[start], self.moments[end]
        options = self.rng.choice(
            [
                {"startingVersion": first.version, "endingVersion": last.version},
                {"startingTimestamp": f"@{first.time}", "endingTimestamp": f"@{last.time}"},
            ]
        )
        frame = read(spark, self.path, readChangeFeed=True, **options)
        frame.createOrReplaceTempView(name)
        return Source(name, ("_change_type", *COLUMNS), lambda: self.events[first.events : last.events], frame)

    def _view(self, spark: SparkSession, name: str) -> Source:
        """A view that SQL makes."""
        (at, moment), (options, shows) = self._at(), self._narrowed()
        spark.sql(f"CREATE TEMPORARY VIEW {name} USING bucketcatalog {self._options(**options, **at)}")
        return Source(name, COLUMNS, lambda: [row for row in moment.live.values() if shows(row)])

    def _table(self, spark: SparkSession, name: str) -> Source:
        """A table takes the cut at each query."""
        options, shows = self._narrowed(owners=False)  # Spark keeps that word for itself here
        spark.sql(f"CREATE TABLE {name} USING bucketcatalog {self._options(**options)}")
        return Source(name, COLUMNS, lambda: [row for row in self.moments[-1].live.values() if shows(row)])

    def _options(self, **options: Any) -> str:
        listed = ", ".join(f"{name} '{value}'" for name, value in {"path": self.path, **options}.items())
        return f"OPTIONS ({listed})"
