"""Random histories as Spark reads them natively: rows and tombstones of now and of some moment before are those of the engine."""

from __future__ import annotations

import random
import tempfile

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog
from bucketcatalog.log import segments
from bucketcatalog.store.local import LocalStore
from pyspark_bucketcatalog.reading import frames

from ..kit.chance import searching
from ..kit.machine.columns import DATABASE
from ..kit.machine.driver import quiet
from ..kit.machine.histories import histories
from ..kit.machine.running import narrated, run
from ..kit.machine.steps import History
from ..kit.machine.world import Time
from .sample import rows

TABLES = ("objects", "deleted_objects", "buckets", "deleted_buckets")


@pytest.mark.once
def test_spark_reads_of_histories_what_the_engine_reads(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "INLINE_RUN_BYTES", 0)  # these few rows would mostly lie in the checkpoints
    natively = 0

    @searching("natively", phases=[Phase.explicit, Phase.generate])  # to find the shortest that fails would take Spark long
    @given(histories(), st.integers(0, 1 << 30))
    def search(history: History, number: int) -> None:
        nonlocal natively
        chance = random.Random(number)
        with tempfile.TemporaryDirectory() as folder, monkeypatch.context() as patch, quiet():
            machine = run(history, LocalStore(folder), Time())
            for name in ("LOCAL_ROWS", "LOCAL_KEYS"):
                patch.setattr(frames, name, chance.choice([0, 8_192]))
            catalog = Catalog(folder)
            for version in {catalog.snapshot(database=DATABASE).version, chance.choice(machine.moments)}:
                table = chance.choice(TABLES)
                read = catalog.snapshot(database=DATABASE, version=version).scan(table)
                natively += bool(read.files().native)  # type: ignore[union-attr]
                with narrated([*machine.trace, f"{table} at {version}"]):
                    assert rows(bcs.read(spark, folder, DATABASE, table, versionAsOf=version)) == rows(read.to_arrow())

    search()
    assert natively
