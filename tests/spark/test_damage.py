"""Reading past damage in Spark: the rest of the rows, and the table that says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bucketcatalog import AccessDenied, Catalog, CorruptionError

from ..kit.corrupting import chunk_of
from ..kit.world import obj
from .sample import Sample, read, rows

pytestmark = pytest.mark.filterwarnings("ignore::bucketcatalog.errors.CatalogWarning")


@pytest.fixture
def damaged(copied: Sample) -> Path:
    """A segment with a bit flipped in the names of its first block, of a checkpoint that is read: not a plain writer's, which none who
    reads past damage looks at."""
    with copied.catalog.writer("compactor-1", database="photos") as compactor:
        compactor.checkpoint(scope="all")
    used = {s.uuid for c in copied.catalog.snapshot().view.checkpoints for s in c.segments}
    file = max(
        file for file in Path(copied.path).glob("*/*/segments/*.parquet") if bytes.fromhex(file.stem.replace("-", "")) in used
    )
    data = bytearray(file.read_bytes())
    data[chunk_of(bytes(data), "name")] ^= 1
    file.write_bytes(bytes(data))
    return file


@pytest.mark.once
def test_the_rest_is_read_where_that_is_asked_for(own: SparkSession, copied: Sample, damaged: Path) -> None:
    lost = rows(copied.catalog.snapshot(ignore_corruption=True).scan("damage").to_arrow())
    assert [damaged.name in row["file"] for row in lost] == [True]
    assert rows(read(own, copied.path, table="damage", ignoreCorruption=True)) == lost
    table = lost[0]["table"]
    both = " UNION ALL ".join(f"SELECT count(*) FROM {name}" for name in (table, f"deleted_{table}"))
    for name in (table, f"deleted_{table}"):
        read(own, copied.path, table=name).createOrReplaceTempView(name)
    with pytest.raises(PySparkException, match=damaged.name):
        own.sql(both).collect()
    for name in (table, f"deleted_{table}"):
        kept = copied.catalog.snapshot(ignore_corruption=True).scan(name).to_arrow()
        assert rows(read(own, copied.path, table=name, ignoreCorruption=True)) == rows(kept)


@pytest.mark.once
def test_a_linked_directory_is_read_past_where_that_is_asked_for(own: SparkSession, copied: Sample, tmp_path: Path) -> None:
    """Executors open the catalog anew, and meet the link again."""
    name = "somebody/photos/transactions/linked"
    before = rows(read(own, copied.path, table="objects"))
    (tmp_path / "outside").mkdir()
    (Path(copied.path) / name).parent.mkdir(parents=True)
    (Path(copied.path) / name).symlink_to(tmp_path / "outside")
    with pytest.raises((PySparkException, AccessDenied), match="is a symbolic link"):
        read(own, copied.path, table="objects").collect()
    assert rows(read(own, copied.path, table="objects", ignoreCorruption=True)) == before != []
    (lost,) = rows(read(own, copied.path, table="damage", ignoreCorruption=True))
    assert (lost["file"], lost["code"]) == (name, "ACCESS_DENIED")


def test_changes_are_read_past_a_damaged_transaction_where_that_is_asked_for(own: SparkSession, copied: Sample) -> None:
    catalog = Catalog(copied.path)
    start = catalog.snapshot().version
    for name in ("whole", "spoilt"):
        with catalog.writer(name, database="photos") as writer, writer.transaction() as tx:
            tx.put("objects", [obj(f"{name} {n:03}") for n in range(100)])
    (file,) = Path(copied.path).glob("spoilt/photos/transactions/*/*.txn")
    data = bytearray(file.read_bytes())
    file.write_bytes(bytes(data[:1]))
    options = {"readChangeFeed": True, "startingVersion": start}
    with pytest.raises((PySparkException, CorruptionError), match=file.name):
        read(own, copied.path, **options)
    frame = read(own, copied.path, ignoreCorruption=True, **options)
    assert sorted(row["name"] for row in frame.select("name").collect()) == [f"whole {n:03}" for n in range(100)]
