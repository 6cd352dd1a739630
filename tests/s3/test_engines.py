"""DuckDB and Polars read a table's files from the bucket, and nothing that they show of that holds a secret."""

from __future__ import annotations

import pickle
from typing import Any

import duckdb
import polars
import pytest

from bucketcatalog import Catalog
from bucketcatalog.query.scan import Scan
from bucketcatalog.store.s3.store import S3Store

from ..kit.natively import in_some_order
from ..kit.world import obj

ODD = "odd [a]*/b?c %41 é#'"
NAMES = [f"{number:05}" for number in range(2_000)]


def objects(*names: str, **more: Any) -> list[dict[str, Any]]:
    return [obj(name, **more) for name in names]


@pytest.fixture(params=["plain", ODD])
def read(request: pytest.FixtureRequest, bucket: str, storage_options: dict[str, str]) -> Scan:
    """Objects of which one was overwritten and one deleted since they were merged."""
    catalog = Catalog(f"s3://{bucket}/{request.param}", storage_options=storage_options)
    with pytest.MonkeyPatch.context() as patch, catalog.writer("compactor-1") as writer:
        patch.setattr("bucketcatalog.log.segments.INLINE_RUN_BYTES", 0)
        with writer.transaction() as tx:
            tx.put("objects", objects(*NAMES, content_length=1))
        writer.checkpoint(scope="all", full=True)
    with catalog.writer("node-1") as writer, writer.transaction() as tx:
        tx.put("objects", objects(NAMES[5], "new", content_length=7))
        tx.delete("objects", objects(NAMES[9]))
    found = Catalog(catalog.store).snapshot().scan("objects")
    assert isinstance(found, Scan) and found.files().native and found.files().touched == 3
    return found


def test_duckdb_reads_the_files_of_a_bucket(read: Scan, storage_options: dict[str, str]) -> None:
    with duckdb.connect() as connection:
        relation = read.to_duckdb(connection)
        said = relation.explain() + relation.sql_query() + repr(relation)
        settings = (
            connection.sql("SELECT * FROM duckdb_settings()").fetchall(),
            connection.sql("FROM duckdb_secrets()").fetchall(),
        )

        assert in_some_order(relation.to_arrow_table().cast(read.schema)) == in_some_order(read.to_arrow())
        assert relation.aggregate("count(*), sum(content_length)").fetchall() == [(2_000, 2_012)]
    assert "PARQUET_SCAN" in said and storage_options["secret"] not in said + repr(settings)


def test_polars_reads_the_files_of_a_bucket(read: Scan, storage_options: dict[str, str]) -> None:
    frame = read.to_polars()
    said = frame.explain() + repr(frame) + frame.explain(optimized=False)

    assert in_some_order(frame.collect().to_arrow().cast(read.schema)) == in_some_order(read.to_arrow())
    assert frame.select(polars.len(), polars.col("content_length").sum()).collect().rows() == [(2_000, 2_012)]
    assert "Parquet SCAN" in said and storage_options["secret"] not in said
    assert storage_options["secret"].encode() not in frame.serialize()


def test_credentials_are_given_to_the_client_that_signs_and_not_kept_in_pickles(
    store: S3Store, storage_options: dict[str, str]
) -> None:
    found = store.for_object_store()

    assert found is not None and found.credentials is not None
    assert storage_options["secret"] in found.credentials()[0].values() and storage_options["secret"] not in repr(found)
    assert storage_options["secret"].encode() not in pickle.dumps(found.credentials)
    assert pickle.loads(pickle.dumps(found.credentials))() == found.credentials()
