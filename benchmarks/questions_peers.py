"""What the peers are asked in the place of our questions: SQL, on Parquet files and on the peer's table, by what reads each fastest.

``{objects}``, ``{deleted}`` and ``{buckets}`` are what has these rows; SQL that two engines understand is written once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import deltalake
import duckdb
import pyarrow as pa

from .questions_data import BEGUN, BY, DAY, FIRST_DAY

DUCKDB, DATASET, BUILDER, FEED = "DuckDB on Parquet", "DuckDB on to_pyarrow_dataset", "QueryBuilder", "load_cdf and DuckDB"
EDGES = (1, 7, 30, 90, 180, 365, 730)
PRICES = {"STANDARD": 0.023, "STANDARD_IA": 0.0125, "GLACIER": 0.004}
TOP, GROUPS, EXAMPLES, LARGER, GLOB, DEPTH = 10, 20, 3, 1_000_000_000, "picture-00*", 2
_SUMS = "count(*) AS objects, sum(content_length) AS bytes"
_SHOWN = "o.name, o.content_length, o.modified, o.storage_class, o.owner"
_NAMED = "FROM {objects} o JOIN {buckets} b ON b.owner = o.owner AND b.id = o.bucket_id"
_PREFIX = "split_part(name, '/', 1) || '/' || split_part(name, '/', 2) || '/'"
_AGE = " ".join(f"WHEN modified > {{ago_{days}}} THEN {at}" for at, days in enumerate(EDGES))
_COST = " ".join(f"WHEN '{name}' THEN {price}" for name, price in PRICES.items())
SQL = {
    "du": (
        "SELECT b.name, u.objects, u.bytes FROM (SELECT owner, bucket_id, "
        f"{_SUMS} FROM {{objects}} GROUP BY owner, bucket_id) u JOIN {{buckets}} b ON b.owner = u.owner AND b.id = u.bucket_id"
    ),
    "du, depth": (
        "SELECT b.name, u.prefix, u.objects, u.bytes FROM (SELECT owner, bucket_id, "
        f"{_PREFIX} AS prefix, {_SUMS} FROM {{objects}} GROUP BY owner, bucket_id, {_PREFIX}) u "
        "JOIN {buckets} b ON b.owner = u.owner AND b.id = u.bucket_id"
    ),
    "top": (
        f"SELECT b.name AS bucket, {_SHOWN} FROM (SELECT * FROM {{objects}} ORDER BY content_length DESC, owner, bucket_id, name "
        f"LIMIT {TOP}) o JOIN {{buckets}} b ON b.owner = o.owner AND b.id = o.bucket_id"
    ),
    "find, size": f"SELECT b.name AS bucket, {_SHOWN}, o.content_type {_NAMED} WHERE o.content_length > {LARGER}",
    "find, glob": f"SELECT b.name AS bucket, {_SHOWN}, o.content_type {_NAMED} WHERE o.name LIKE '%/{GLOB[:-1]}%'",
    "dups": (
        "WITH g AS (SELECT content_md5, content_length, count(*) AS copies, (count(*) - 1) * content_length AS wasted FROM {objects} "
        "WHERE content_length > 0 GROUP BY content_md5, content_length HAVING count(*) > 1), "
        f"t AS (SELECT * FROM g ORDER BY wasted DESC LIMIT {GROUPS}) "
        "SELECT t.content_length, t.copies, t.wasted, (SELECT count(*) FROM g) AS groups, (SELECT sum(wasted) FROM g) AS wasted_by_all, "
        "o.name FROM t JOIN {objects} o ON o.content_md5 = t.content_md5 AND o.content_length = t.content_length"
    ),
    "age": f"SELECT storage_class, CASE {_AGE} ELSE {len(EDGES)} END AS at, {_SUMS} FROM {{objects}} GROUP BY 1, 2",
    "cost": (
        "SELECT b.name, u.storage_class, u.objects, u.bytes, "
        f"u.bytes / 1073741824.0 * CASE u.storage_class {_COST} END AS cost FROM (SELECT owner, bucket_id, storage_class, {_SUMS} "
        "FROM {objects} GROUP BY owner, bucket_id, storage_class) u JOIN {buckets} b ON b.owner = u.owner AND b.id = u.bucket_id"
    ),
    "who": f"SELECT _end_writer, _end_operation, _ended_by, {_SUMS} FROM {{deleted}} GROUP BY 1, 2, 3",
    "growth": (
        f"WITH e AS (SELECT {BEGUN} AS made, owner, bucket_id, 1 AS n, content_length AS size FROM {{objects}} "
        f"UNION ALL SELECT {BEGUN}, owner, bucket_id, 1, content_length FROM {{deleted}} "
        "UNION ALL SELECT deleted_at, owner, bucket_id, -1, -content_length FROM {deleted}), "
        "d AS (SELECT date_trunc('day', made - INTERVAL 1 MICROSECOND) + INTERVAL 1 DAY AS day, owner, bucket_id, sum(n) AS n, "
        "sum(size) AS size FROM e GROUP BY 1, 2, 3) "
        "SELECT b.name, epoch_us(day), sum(n) OVER w AS objects, sum(size) OVER w AS bytes FROM d JOIN {buckets} b "
        "ON b.owner = d.owner AND b.id = d.bucket_id WINDOW w AS (PARTITION BY b.name ORDER BY day)"
    ),
}
_FROM_FEED = {
    "who": (
        "SELECT h.writer, h.operation, 'put', count(*) AS objects, sum(content_length) AS bytes FROM feed JOIN history h "
        "ON h.version = feed._commit_version WHERE _change_type = 'update_preimage' GROUP BY 1, 2"
    ),
    "growth": (
        "WITH d AS (SELECT h.day, owner, bucket_id, "
        "sum(CASE WHEN _change_type IN ('update_preimage', 'delete') THEN -1 ELSE 1 END) AS n, "
        "sum(CASE WHEN _change_type IN ('update_preimage', 'delete') THEN -content_length ELSE content_length END) AS size "
        "FROM feed JOIN history h ON h.version = feed._commit_version GROUP BY 1, 2, 3) "
        "SELECT b.name, d.day, sum(n) OVER w AS objects, sum(size) OVER w AS bytes FROM d "
        "JOIN buckets b ON b.owner = d.owner AND b.id = d.bucket_id WINDOW w AS (PARTITION BY b.name ORDER BY d.day)"
    ),
}
_FED = {"who": ["content_length"], "growth": ["owner", "bucket_id", "content_length"]}


@dataclass(frozen=True)
class Peers:
    """The files and the table to ask, and the moment from which ages count."""

    plain: Path
    delta: Path
    now: int
    connection: duckdb.DuckDBPyConnection

    def ways(self, question: str) -> dict[str, Callable[[], pa.Table]]:
        """How the peers answer it, by name; each opens what it reads anew."""
        ways: dict[str, Callable[[], pa.Table]] = {f"{DUCKDB} of {by}": partial(self._duckdb, SQL[question], by) for by in BY}
        if question in _FROM_FEED:
            return ways | {FEED: partial(self._feed, question)}
        return ways | {DATASET: partial(self._dataset, SQL[question]), BUILDER: partial(self._builder, SQL[question])}

    def _duckdb(self, sql: str, by: str) -> pa.Table:
        files = {name: f"read_parquet('{self.plain / by / name}.parquet')" for name in ("objects", "deleted", "buckets")}
        return self.connection.sql(sql.format(**files, **self._ago)).to_arrow_table()

    def _dataset(self, sql: str) -> pa.Table:
        self.connection.register("table_of_delta", deltalake.DeltaTable(self.delta).to_pyarrow_dataset())
        return self.connection.sql(sql.format(objects="table_of_delta", buckets=self._buckets, **self._ago)).to_arrow_table()

    def _builder(self, sql: str) -> pa.Table:
        builder = deltalake.QueryBuilder().register("objects", deltalake.DeltaTable(self.delta))
        buckets = self.connection.sql(f"FROM {self._buckets}").fetchall()
        values = ", ".join(f"('{owner}', '{id_}', '{name}')" for owner, id_, name in buckets)
        named = f"(SELECT * FROM (VALUES {values}) AS v(owner, id, name))"
        return pa.table(builder.execute(sql.format(objects="objects", buckets=named, **self._ago)).read_all())

    def _feed(self, question: str) -> pa.Table:
        table = deltalake.DeltaTable(self.delta)
        said = [
            (each["version"], each.get("by.writer"), each.get("by.operation"), FIRST_DAY + max(each["version"], 1) * DAY)
            for each in table.history()
        ]
        names = ("version", "writer", "operation", "day")
        history = pa.table(dict(zip(names, map(list, zip(*said, strict=True)), strict=True)))
        columns = [*_FED[question], "_change_type", "_commit_version"]
        starting = 1 if question == "who" else 0
        found = {"history": history, "feed": table.load_cdf(starting_version=starting, columns=columns)}
        for name, rows in found.items():
            self.connection.register(name, rows)
        sql = _FROM_FEED[question].replace("JOIN buckets b", f"JOIN {self._buckets} b")
        return self.connection.sql(sql).to_arrow_table()

    @property
    def _buckets(self) -> str:
        return f"read_parquet('{self.plain / BY[0]}/buckets.parquet')"

    @property
    def _ago(self) -> dict[str, str]:
        times = {days: datetime.fromtimestamp((self.now - days * DAY) / 1e6, UTC) for days in EDGES}
        return {f"ago_{days}": f"CAST('{at:%Y-%m-%dT%H:%M:%S.%f}Z' AS TIMESTAMP WITH TIME ZONE)" for days, at in times.items()}
