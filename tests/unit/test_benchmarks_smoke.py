"""The benchmarks run and give results of the right shape. Nothing here asserts a time; at this scale the numbers mean nothing."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.append(str(ROOT))  # the benchmarks are no installed package

from benchmarks import (  # noqa: E402
    dataset,
    first_queries,
    iox_data,
    iox_peers,
    iox_rows,
    manta,
    native_reads,
    native_states,
    page,
    postgres,
    run,
    s3_iox,
    spark_appends,
    spark_checkpoints,
    spark_deletes,
    spark_harvest,
    spark_iox,
    spark_reads,
    spark_streams,
    uncovered_reads,
)
from benchmarks.fresh import FreshProcessFailed, run_fresh  # noqa: E402
from benchmarks.measuring import in_turns  # noqa: E402
from benchmarks.results import Goal, Group, Measure, Sample, table  # noqa: E402
from benchmarks.world import SMALL, World  # noqa: E402

from bucketcatalog import Catalog  # noqa: E402

TINY = replace(
    SMALL,
    name="tiny",
    objects=2_000,
    upserts=20,
    shallow=2,
    deep=4,
    commit_rounds=1,
    commits_a_round=3,
    peer_depths=(1, 3),
    peer_rounds=1,
    rounds=1,
    deletes=2,
    past_checkpoints=1,
    lookups=3,
    memory_parts=2,
    memory_part_rows=1_000,
    large_parts=2,
    large_part_rows=3_000,
    native_parts=2,
    native_part_rows=3_000,
    questions_objects=2_000,
    questions_upserts=40,
    questions_files=50,
    checkpoints=3,
    changes=20,
    overwrites=(3,),
    data_depths=(1, 2, 3),
    data_peer_depths=(1, 2, 3),
    data_files=60,
    data_small_files=4,
)
MEASURES = {
    "commits": 9,
    "upserts": 7,
    "reads": 11,
    "large_reads": 8,
    "engines": 8,
    "harvest": 2,
    "memory": 1,
    "commands": 6,
    "checkpoints": 7,
    "levels": 8,
    "questions": 21,
    "iox": 18,
}


@pytest.fixture
def world(tmp_path: Path) -> World:
    tree = tmp_path / "tree"
    (tree / "a" / "b").mkdir(parents=True)
    for name in ("one", "a/two", "a/b/three"):
        (tree / name).write_text(name)
    (tmp_path / "work").mkdir()
    return World(tmp_path / "work", TINY, tree)


def is_sample(document: dict[str, object]) -> bool:
    return {"median", "min", "max", "runs", "unit"} <= document.keys() and isinstance(document["median"], float)


@pytest.mark.parametrize("name", MEASURES)
def test_group_at_tiny_scale_gives_its_measures(name: str, world: World) -> None:
    document = importlib.import_module(f"benchmarks.{name}").run(world).document()
    assert len(document["measures"]) == MEASURES[name]
    assert document["settings"]
    for measure in document["measures"]:
        assert is_sample(measure["ours"])
        assert "other" not in measure or (measure["other"]["name"] and is_sample(measure["other"]))
        assert (measure["goal"] is None) == (measure["met"] is None)
    json.dumps(document)


def test_mantas_group_asks_a_real_server_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("bucketcatalog.systems.manta.garbage", "benchmarks.manta"):
        monkeypatch.setattr(f"{module}.BATCH", 10)
    path = manta.made(tmp_path / "lake", 2_000, tombstones=300)
    with postgres.server(tmp_path / "postgres") as dsn:
        postgres.load(dsn, path)
        with postgres.psycopg.connect(dsn, autocommit=True) as connection:
            measures = [*manta.listings(Catalog(path), connection, 2_000), *manta.batches(Catalog(path), connection, 300)]
            assert postgres.described(connection).endswith(postgres.psycopg.__version__)
            place = {**manta.PLACE, "prefix": "projects/07/datasets/"}
            theirs = [row for (row,) in connection.execute(postgres.LIST_GROUPS, place).fetchall()]
    assert [measure.goal is not None for measure in measures] == [True, False, True, False, True, False]
    assert Catalog(path).snapshot().list("objects", **place, delimiter="/").groups == theirs != []


def test_spark_group_names_its_measures() -> None:
    samples = {
        name: Sample((2.0, 1.0)) for name in ("ours", "native", "every column", "count", "native count", "sum", "native sum")
    }
    full, *_ = spark_reads.measures_of(samples, 2_000_000)
    assert full.name == "Spark full read of 2,000,000 live objects"
    assert full.compared == 1.0


def test_spark_merge_group_compares_the_cores() -> None:
    seconds = {"one": 4.0, "two": 2.0, "ours": 1.0, "native": 2.0}
    samples = {name: Sample((value,)) for name, value in seconds.items()}
    merge, memory, read = spark_checkpoints.measures_of(samples, Sample((300.0, 800.0), "MB"), 10_000_000)
    assert (merge.name, merge.compared, merge.met) == (
        "jobs.checkpoint, full merge of 10,000,000 objects on two cores",
        2.0,
        True,
    )
    assert (memory.compared, memory.met) == (1_100.0, False)
    assert (read.compared, read.met) == (0.5, True)


def test_spark_harvest_group_compares_the_cores() -> None:
    seconds = {"even 1": 4.0, "even 2": 2.0, "skewed 1": 4.0, "skewed 2": 3.0, "alone": 5.0}
    even, skewed, one = spark_harvest.measures_of({name: Sample((value,)) for name, value in seconds.items()}, 1_000_000)
    assert (even.name, even.compared, even.met) == (
        "jobs.harvest of 1,000,000 files in 1,000 directories on two cores",
        2.0,
        True,
    )
    assert (skewed.compared is not None and skewed.compared < 1.4, skewed.met, one.goal) == (True, False, None)


def test_stream_group_compares_with_a_batch_and_shows_the_slowest_arrival(tmp_path: Path) -> None:
    spark_streams.build(str(tmp_path / "streamed"), 3, 10)
    assert Catalog(tmp_path / "streamed").changes().to_arrow().num_rows == 30
    samples = {name: Sample((value,)) for name, value in {"stream": 3.0, "one batch": 2.5, "batch": 2.0}.items()}
    stream, _, median, worst = spark_streams.measures_of(samples, Sample((0.25, 0.5, 1.5)), 95, 1_000_000)
    assert (stream.name, stream.compared) == ("Spark stream of 1,000,000 events in 95 transactions, 10 batches", 1.5)
    assert [(one.compared, one.met) for one in (stream, median, worst)] == [(1.5, True), (0.5, True), (1.5, False)]


def test_append_group_reads_rows_that_the_catalog_takes(tmp_path: Path) -> None:
    spark_appends.write_source(tmp_path / "source", 10)
    tables = [pa.parquet.read_table(path) for path in sorted((tmp_path / "source").iterdir())]
    assert [len(table) for table in tables] == [3, 3, 3, 1]
    with Catalog(tmp_path / "lake").writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", pa.concat_tables(tables))
    samples = {"ours": Sample((3.0,)), "unmeasured": Sample((2.5,)), "native": Sample((2.0,)), "reading": Sample((1.0,))}
    time, unmeasured, size = spark_appends.measures_of(samples, {name: samples[name] for name in ("ours", "native")}, 10)
    assert (time.compared, time.met, time.details["reading alone"]["median"], size.goal) == (1.5, False, 1.0, None)
    assert (unmeasured.compared, unmeasured.met) == (1.25, True)


def test_delete_group_has_its_goals_against_the_faster_way_of_the_peer() -> None:
    samples = {"ours": Sample((1.0,)), "delta": Sample((8.0,)), "vectors": Sample((4.0,))}
    measures = list(spark_deletes.measures_of(samples, {side: Sample((2.0,), "bytes") for side in samples}, 10_000_000))
    assert [(one.other_name[-8:], one.compared, one.met) for one in measures] == [
        (" vectors", 0.25, True),
        (" vectors", 1.0, False),
        ("s DELETE", 0.125, None),
        ("s DELETE", 1.0, None),
    ]


def test_tables_to_plan_with_say_of_files_what_these_have(tmp_path: Path) -> None:
    rows = pa.concat_tables([iox_rows.measurements(file, iox_rows.PLANNED_ROWS) for file in (3, 4)])
    low, high = iox_rows.looked_for(60)
    assert rows["number"].to_pylist() == list(range(3_000, 5_000))
    for name in iox_rows.SCHEMA.names:
        for file, (least, most) in enumerate(zip(*iox_rows.ends(name, np.array([3_000, 4_000]), 1_000), strict=True)):
            values = rows[name].slice(file * 1_000, 1_000).to_pylist()
            assert least.as_py() <= min(values) and max(values) <= most.as_py()
    iox_data.fill(tmp_path / "ours", 60)
    delta, iceberg = tmp_path / "delta", tmp_path / "iceberg"
    for fill, path in ((iox_peers.fill_delta, delta), (iox_peers.fill_iceberg, iceberg)):
        path.mkdir()
        fill(path, 60)
    said = Catalog(tmp_path / "ours").snapshot().scan("iox.statistics", where={"column": "number"}).to_arrow()
    kept = [row for row in said.to_pylist() if row["max_int"] >= low and row["min_int"] <= high]
    assert [row["min_int"] for row in kept] == [file * 1_000 for file in iox_rows.files_with_rows(60)[1:-1]]
    found = [
        list(find(str(delta if way.startswith("deltalake") else iceberg), low, high)) for way, find in iox_peers.PLANS.items()
    ]
    assert [{Path(path).name for path in paths} for paths in found] == [{Path(path).name for path in found[0]}] * 3
    assert len(found[0]) == len(kept) == iox_rows.FOUND


def test_data_table_group_of_spark_compares_both_ways_with_the_same_files(tmp_path: Path) -> None:
    iox_data.build(str(tmp_path / "lake"), 2, 10)
    assert sum(pa.parquet.read_metadata(path).num_rows for path in iox_data.folder(tmp_path / "lake").iterdir()) == 20
    seconds = {"read": 1.0, "format": 3.0, "native": 2.0}
    samples = {f"{query}, {way}": Sample((each,)) for query in spark_iox.QUERIES for way, each in seconds.items()}
    measures = list(spark_iox.measures_of(samples, 10_000_000))
    assert [(measure.compared, measure.met) for measure in measures] == [(0.5, True)] * 4 + [(1.5, False)] * 4


def test_data_table_group_of_s3_shows_what_both_sides_gave_up() -> None:
    side = {"commits": 30, "failures": 0, "retries": 0, "seconds": 3.0}
    rate, given_up = s3_iox.measures_of({"ours": side, "deltalake": side | {"commits": 15, "failures": 4}})
    assert (rate.ours.median, rate.compared, given_up.ours.median, given_up.other and given_up.other.median) == (
        10.0,
        2.0,
        0.0,
        4.0,
    )


def test_states_are_read_natively_but_for_what_was_overwritten(world: World) -> None:
    for state, touched in ((native_states.MERGED, 0), (native_states.SPREAD, 60), (native_states.TENTH, 600)):
        found = native_states.read_natively(native_states.catalog(world, state, 2))
        assert (found["rows"], found["left out"], found["keys in the overlay"]) == (6_000, touched, touched)
    found = native_states.read_natively(native_states.catalog(world, native_states.WITHIN, 2))
    assert 30 < found["left out"] == found["keys in the overlay"] < 90


def test_native_group_compares_each_query_with_its_own_and_plans_without_a_goal() -> None:
    names = [*native_reads.QUERIES, native_reads.PLANNING]
    samples = {name: Sample((2.0,)) for name in names} | {f"native {name}": Sample((1.0,)) for name in names}
    goals = {}
    for state in native_states.STATES:
        measures = list(native_reads.measures_of(state, samples, 10_000_000, {"native files": 10}))
        assert {measure.compared for measure in measures} == {2.0}
        assert measures[-1].details == {"native files": 10}
        goals[state.name] = [measure.goal and measure.goal.limit for measure in measures]
    assert measures[0].name == "Spark count, 10,000,000 objects, a tenth overwritten, spread evenly"
    assert goals == {
        "merged": [1.1] * 5 + [None],
        "within": [1.3] * 5 + [None],
        "spread": [None, 2.5, 2.5, 2.5, 1.4, None],
        "tenth": [None, None, None, None, 1.8, None],
    }


def test_uncovered_group_compares_both_ways_with_parquet(tmp_path: Path) -> None:
    assert uncovered_reads.build(str(tmp_path / "uncovered"), 400, 4) == {"rows": 400 + 20 * 2}
    ways = {"format": 6.0, "read": 4.0, "native": 2.0}
    samples = {f"{query}, {way}": Sample((seconds,)) for query in ("count", "sum") for way, seconds in ways.items()}
    measures = list(uncovered_reads.measures_of(samples | {"planning": Sample((0.5,))}, 440))
    assert [measure.compared for measure in measures] == [3.0, 2.0, 3.0, 2.0, 0.5]


def test_first_query_is_compared_with_parquet_round_by_round() -> None:
    samples = {"attach, merged": Sample((3.0,)), "sum, merged": Sample((5.0, 9.0)), "native sum, merged": Sample((4.5, 8.0))}
    attach, query = first_queries.measures_of(native_states.MERGED, samples, 10_000_000)
    assert (attach.compared, attach.met) == (3.0, False)
    assert (query.ours.values, query.compared, query.met) == ((0.5, 1.0), 0.75, True)


def test_main_writes_results_and_keeps_other_groups_of_the_scale(
    world: World, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output, work = world.directory / "results.json", world.directory / "below"
    monkeypatch.setitem(run.SCALES, "small", replace(TINY, name="small"))
    output.write_text(json.dumps({"scale": "small", "groups": {"reads": {"measures": []}}}))
    asked = ["--scale", "small", "--only", "harvest", "--tree", str(world.tree), "--workdir", str(work), "--output", str(output)]
    assert run.main(asked) == 0
    document = json.loads(output.read_text())
    assert set(document["groups"]) == {"reads", "harvest"}
    assert {"machine", "versions", "scale"} <= document.keys()
    assert {"began", "seconds", "load", "settings", "measures"} <= document["groups"]["harvest"].keys()
    assert str(world.tree) not in output.read_text()
    assert list(work.iterdir()) == []
    assert "goals met" in capsys.readouterr().out


def test_group_that_fails_is_reported_and_the_others_run(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.memory.run_fresh", lambda *_, **__: 1 / 0)
    console = Console(quiet=True)
    groups = run.run_groups(["memory", "harvest"], TINY, world.directory, world.tree, console)
    assert groups["memory"]["error"] == "ZeroDivisionError: division by zero"
    assert groups["harvest"]["measures"]
    Console(quiet=True).print(table(groups))


def test_dataset_is_as_described_and_repeatable() -> None:
    rows = dataset.objects(5_000)
    rows.validate(full=True)
    names = rows["name"].to_pylist()
    assert rows.column_names == list(dataset.COLUMNS)
    assert len(set(names)) == 5_000
    assert all(re.fullmatch(r"projects/\d\d/datasets/\d\d/picture-[0-9a-f]{8}", name) and len(name) == 40 for name in names)
    assert rows["created"].equals(rows["modified"])
    assert all(len(set(pair)) == 2 for pair in rows["sharks"].to_pylist())
    assert len({shark for pair in rows["sharks"].to_pylist() for shark in pair}) == 6
    assert rows.equals(dataset.objects(5_000))
    assert not rows["name"].equals(dataset.objects(5_000, seed=2)["name"])


def test_upserts_are_half_overwrites_and_half_new() -> None:
    rows = dataset.objects(2_000)
    changed = dataset.upserts(rows, 100)["name"].to_pylist()
    assert len(set(changed)) == 100
    assert len(set(changed) & set(rows["name"].to_pylist())) == 50


def test_text_form_shows_uuids_as_the_catalog_does() -> None:
    text = dataset.as_text(dataset.objects(10))
    assert text["owner"][0].as_py() == "6f1a5d1e-8c5b-4d0c-9f2e-7a3b4c5d6e7f"
    assert text["id"].type == pa.string()
    text.validate(full=True)


def test_both_sides_return_the_same_rows(world: World) -> None:
    from benchmarks import inventories, peer

    mine = Catalog(world.catalog).snapshot().scan("objects", columns=list(dataset.COLUMNS)).to_arrow().to_pylist()
    table_path = str(inventories.as_text(world))
    for read in peer.READS.values():
        theirs = read(peer.deltalake.DeltaTable(table_path), None).to_pylist()
        assert sorted(theirs, key=lambda row: row["name"]) == mine


def test_subjects_take_turns_in_changing_order_and_own_times_count() -> None:
    order: list[str] = []
    samples = in_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b") or 7.0}, 20)
    rounds = {"".join(order[at : at + 2]) for at in range(0, len(order), 2)}
    assert rounds == {"ab", "ba"}
    assert samples["b"].values == (7.0,) * 20
    assert len(samples["a"].values) == 20


@pytest.mark.parametrize(
    ("goal", "compared", "met"),
    [
        (Goal("ours / other", "at most", 1.5), 2.0, False),
        (Goal("other / ours", "at least", 0.5), 0.5, True),
        (Goal("ours", "at most", 4.0), 4.0, True),
    ],
)
def test_goal_compares_what_it_says(goal: Goal, compared: float, met: bool) -> None:
    measure = Measure("m", Sample((4.0, 3.0, 9.0)), Sample((2.0,)), "other", goal)
    assert measure.compared == compared
    assert measure.met is met
    assert Group([measure], {}).document()["measures"][0]["met"] is met


def test_error_of_a_fresh_process_reaches_the_caller() -> None:
    with pytest.raises(FreshProcessFailed, match="no_such_function"):
        run_fresh("ours", "no_such_function")


def test_fresh_process_on_one_core_has_one_thread(world: World) -> None:
    found = run_fresh("ours", "read", cores=1, path=str(world.catalog), columns=["name"], repeats=2)
    assert found["rows"] == TINY.objects
    assert len(found["seconds"]) == 2


def test_the_page_shows_what_the_last_full_run_measured(tmp_path: Path) -> None:
    document = json.loads(run.RESULTS["full"].read_text())
    shown = run.PAGE.read_text()
    assert shown.count(page.BEGIN) == shown.count(page.END) == 1
    assert page.markdown(document) in shown
    goals = [m for group in document["groups"].values() for m in group["measures"] if m["goal"] is not None]
    assert shown.count("| yes |") + shown.count("| **no** |") == len(goals) > 10

    copy = tmp_path / "page.md"
    copy.write_text(shown)
    page.update(copy, document)
    assert copy.read_text() == shown
