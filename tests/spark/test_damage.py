"""Reading past damage in Spark: the rest of the rows, and the table that says what is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bucketcatalog import AccessDenied, InvalidOption

from ..kit.corrupting import chunk_of
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
def test_changes_are_never_read_past_damage(spark: SparkSession, sample: Sample) -> None:
    with pytest.raises((PySparkException, InvalidOption), match="exclude each other"):
        read(spark, sample.path, readChangeFeed=True, ignoreCorruption=True)


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
