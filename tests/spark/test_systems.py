"""A system that is installed where driver and executors run: its views by ``attach``, what it reads itself, its jobs, its data."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog, CatalogWarning, InvalidOption
from bucketcatalog.registry.jobs import NOT_OPTIONS
from bucketcatalog.store.local import LocalStore

from ..kit.earlier import Earlier
from ..kit.installing import boxes, installed
from ..kit.world import messages, proto

# In a process of its own: executors find packages where the process that made them does.
PROGRAM = """
import json, sys
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
import pyspark_bucketcatalog as bcs
from bucketcatalog import Catalog

path = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
told = {"views": bcs.attach(spark, path), "later": bcs.attach(spark, path, versionAsOf="w@0", view_prefix="then_", systems=["boxes"])}
told["weights"] = [r.asDict() for r in spark.sql("SELECT box, kilograms FROM box_weights ORDER BY box").collect()]
told["sizes"] = [r.asDict() for r in spark.sql("SELECT * FROM box_sizes ORDER BY box").collect()]
told["packed"] = sorted(r["size"] for r in spark.table("packed_a").collect())
load = spark.read.format("bucketcatalog").option("table", "box_weights")
told["prefixed"] = [r["box"] for r in load.option("prefix", "b").load(path).collect()]
try:
    load.option("bucket", "b").load(path)
except AnalysisException as error:
    told["refused"] = str(error)
def failing(do):
    try:
        do()
    except Exception as error:
        return str(error)
told["failed"] = failing(spark.read.format("bucketcatalog").option("table", "failing_names").load(sys.argv[2]).collect)
told["burnt"] = failing(lambda: bcs.jobs.run(spark, path, "failing.burn"))
told["repacked"] = bcs.jobs.run(spark, path, "boxes.repack", writer="compactor-x")
told["parts"] = Catalog(path).snapshot().scan("boxes.parts").to_arrow().num_rows
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    told["odd"] = bcs.attach(spark, sys.argv[2], view_prefix="odd_")
told["said"] = [str(each.message) for each in said]
told["collected"] = bcs.jobs.gc(spark, path, dry_run=False, force=True).deleted
told["still"] = sorted(r["size"] for r in spark.read.format("bucketcatalog").option("table", "packed.a").load(path).collect())
weights, heavy = (bcs.read(spark, sys.argv[3], table=name, native=True) for name in ("box_weights", "heavy_boxes"))
told["natively"] = [weights.agg({"kilograms": "sum"}).first()[0], weights.where("box < 'b1'").count(), heavy.count()]
bcs.attach(spark, sys.argv[3], view_prefix="python_", native=False)
bcs.attach(spark, sys.argv[3], view_prefix="big_", native=True)
told["read by"] = [
    "FileScan parquet" in spark.table(prefix + name)._jdf.queryExecution().executedPlan().toString()
    for prefix in ("python_", "big_") for name in ("boxes_boxes", "box_weights", "heavy_boxes")
]
told["joined"] = spark.sql("SELECT sum(w.kilograms) FROM big_box_weights w JOIN big_heavy_boxes h USING (box)").first()[0]
print(json.dumps(told))
"""

FAILING = """
from bucketcatalog.query.views import Computed, View
from bucketcatalog.registry import Job, System
import pyarrow as pa
def failing_column(names):
    raise ValueError("a column of mine")
class Burning:
    tasks = ()
    def __init__(self, snapshot, writer):
        self.tasks = [self]
    def __reduce__(self):
        return Burning, (None, None)
    def run(self, store):
        raise ValueError("a task of mine")
    def finish(self, outcomes):
        return 0
JOBS = {"burn": Job(Burning)}
names = View("failing_names", "buckets", {"x": Computed(pa.string(), ("name",), failing_column)})
SYSTEM = System("failing", views=(names,), jobs="spark_failing:JOBS")
"""


def _fill(store: Earlier) -> None:
    """Three boxes of which one was lost, and one that was repacked, days ago; another that is to be repacked."""
    catalog = Catalog(store)
    with catalog.writer("w", clock=store.now_us) as writer:
        with writer.transaction() as tx:
            given = [("a", 500), ("b", 2_500), ("c", None)]
            tx.put("boxes.boxes", [{"name": name, "label": f"L-{name}", "grams": grams} for name, grams in given])
        with writer.transaction() as tx:
            tx.put("packed.a", [{"size": 1}, {"size": 9}])
            tx.put("packed.a", [{"size": 3}])
        store.days = 2
        assert catalog.run_job("boxes.repack", writer="compactor-w", clock=store.now_us) == 1
        with writer.transaction() as tx:
            tx.delete("boxes.boxes", {"name": "c"})
            tx.put("packed.b", [{"size": 5}])
            tx.put("packed.b", [{"size": 7}])


def _fill_much(path: Path) -> None:
    """20,000 boxes in a file, and a few that were put later."""
    with Catalog(path).writer("compactor-1") as writer:
        with writer.transaction() as tx:
            tx.put("boxes.boxes", [{"name": f"b{number}", "label": f"L{number}", "grams": number} for number in range(20_000)])
        writer.checkpoint(scope="all", full=True)
    with Catalog(path).writer("w") as writer, writer.transaction() as tx:
        tx.put("boxes.boxes", [{"name": "a", "label": "L", "grams": 1_000_000}])


@pytest.mark.once
def test_a_system_is_there_in_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = boxes(tmp_path)
    for folder in folders:
        monkeypatch.syspath_prepend(folder)
    _fill(Earlier(LocalStore(tmp_path / "lake")))
    _fill_much(tmp_path / "much")
    with Catalog(tmp_path / "odd").writer("w") as writer, writer.transaction() as tx:
        for name in ("a.b", "a_b", "x`y"):
            tx.put(f"packed.{name}", [{"size": 1}])
        tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "b"})
    monkeypatch.syspath_prepend(installed(tmp_path / "failing", "failing", "spark_failing:SYSTEM", FAILING))
    labels = tmp_path / "labels"
    labels.mkdir()
    (labels / "L-c").touch()
    environment = os.environ | {"PYTHONPATH": ":".join(sys.path), "BOXES_LABELS": str(labels)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, tmp_path / "lake", tmp_path / "odd", tmp_path / "much"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    told = json.loads(done.stdout.splitlines()[-1])

    assert {"box_weights", "heavy_boxes", "lost_boxes", "box_sizes", "packed_a", "boxes_parts", "objects"} <= set(told["views"])
    assert {"then_box_weights", "then_lost_boxes"} <= set(told["later"])
    assert told["weights"] == [{"box": "a", "kilograms": 0.5}, {"box": "b", "kilograms": 2.5}]
    assert told["sizes"] == [{"box": "a", "size": 3}, {"box": "b", "size": 2}]
    assert told["packed"] == told["still"] == [1, 3, 9]
    assert {"odd_packed_a_b", "odd_packed_x`y", "odd_boxes_parts"} <= set(told["odd"])
    assert "'packed.a_b' is not shown: 'packed.a.b' is shown as 'odd_packed_a_b'." in told["said"]
    assert told["prefixed"] == ["b"]
    assert (
        "[BROKEN_SYSTEM] The system 'failing' failed at the column 'x' of its view 'failing_names': ValueError: a c"
        in told["failed"]
    )
    assert (
        "[BROKEN_SYSTEM] The system 'failing' failed at a task of its job 'failing.burn': ValueError: a task of mine."
        in told["burnt"]
    )
    assert "[INVALID_OPTION] " in told["refused"]
    assert (told["repacked"], told["parts"], told["collected"]) == (1, 2, 3)
    heavy = range(1_000, 20_000)
    assert told["natively"] == [pytest.approx((sum(range(20_000)) + 1_000_000) / 1_000), 2, len(heavy) + 1]
    assert told["joined"] == pytest.approx((sum(heavy) + 1_000_000) / 1_000)
    assert told["read by"] == [False] * 3 + [True] * 3
    assert list(labels.iterdir()) == []
    assert "boxes.parts" in Catalog(tmp_path / "lake").snapshot().tables


def test_no_job_has_an_option_that_is_one_of_those_who_run_it() -> None:
    named = {name for name, each in signature(bcs.jobs.run).parameters.items() if each.kind is not each.VAR_KEYWORD}
    assert named <= NOT_OPTIONS


@pytest.mark.once
def test_tables_that_would_be_shown_alike_are_not_shown_one_for_the_other(spark: SparkSession, tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    row = 'message {0} {{ option (table) = {{ name: "{1}" key: "k" }}; string k = 1; }}'
    catalog.register(list(messages(proto(row.format("One", "shop.new_Orders"), row.format("Two", "shop_new.orders"))).values()))
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("shop.new_Orders", {"k": "one"})
        tx.put("shop_new.orders", {"k": "two"})

    with pytest.raises(InvalidOption, match=r"shop\.new_Orders' and '(deleted_)?shop_new\.orders' would both be shown as"):
        bcs.attach(spark, tmp_path / "lake")
    assert not spark.catalog.tableExists("shop_new_Orders")


def test_a_view_that_spark_cannot_run_takes_no_other_down_with_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
from bucketcatalog.registry import System
from bucketcatalog.query.views import SqlView
SYSTEM = System("wrong", views=(SqlView("wrong_view", "SELECT nothing FROM {objects}"),))
"""
    monkeypatch.syspath_prepend(installed(tmp_path / "wrong", "wrong", "spark_wrong:SYSTEM", source))
    with Catalog(tmp_path / "lake").writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "b"})

    with pytest.warns(CatalogWarning, match="'w_wrong_view' is not shown"):
        views = bcs.attach(spark, tmp_path / "lake", view_prefix="w_", systems=["wrong"])
    assert "w_objects" in views and "w_wrong_view" not in views
    with pytest.raises(InvalidOption, match="No system 'chests'"):
        bcs.attach(spark, tmp_path / "lake", systems=["chests"])


@pytest.mark.once
def test_no_sql_view_is_shown_in_the_place_of_something_else(
    own: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def declares(name: str, *views: str) -> None:
        source = f"""
from bucketcatalog.registry import System
from bucketcatalog.query.views import SqlView, View
SYSTEM = System("{name}", views=({", ".join(views)},))
"""
        monkeypatch.syspath_prepend(installed(tmp_path / name, name, f"spark_{name}:SYSTEM", source))

    declares(
        "first",
        "View('shop_orders', 'objects', {'n': 'name'})",
        "SqlView('both', 'SELECT 1 AS x FROM {buckets}')",
        "SqlView('fails', 'SELECT nothing FROM {objects}')",
        "SqlView('unfounded', 'SELECT n FROM {shop_orders}')",
    )
    declares("second", *(f"SqlView('{name}', 'SELECT 2 AS x FROM {{buckets}}')" for name in ("Shop_Orders", "Both", "fails")))
    catalog = Catalog(tmp_path / "lake")
    order = messages(proto('message Order { option (table) = { name: "shop.orders" key: "k" }; string k = 1; }'))
    catalog.register(list(order.values()))
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "b"})
        tx.put("shop.orders", {"k": "an order"})

    with pytest.warns(CatalogWarning) as said:
        shown = bcs.attach(own, tmp_path / "lake", systems=["first", "second"])

    told = [str(each.message) for each in said]
    assert "The SQL view 'Shop_Orders' is not shown: 'shop.orders' is shown as 'shop_orders'." in told
    assert "The SQL view 'Both' is not shown: the SQL view 'both' is shown as 'both'." in told
    assert "The SQL view 'unfounded' is not shown: it reads 'shop_orders', which is not shown." in told
    assert [text for text in told if text.startswith("The SQL view 'fails' is not shown: [UNRESOLVED_COLUMN")]
    assert len(shown) == len({view.casefold() for view in shown}) and "unfounded" not in shown
    assert [row.k for row in own.table("shop_orders").collect()] == ["an order"]
    assert [row.x for name in ("both", "fails") for row in own.table(name).collect()] == [1, 2]
