"""A system in a package of its own: what it declares is there in Python and on the command line, with no line of the engine touched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from bucketcatalog import BrokenSystem, Catalog, InvalidOption, InvalidRows, UnknownTable, between, prefix
from bucketcatalog.cli import run
from bucketcatalog.query.reads import Read
from bucketcatalog.query.views import Computed, View, ViewScan
from bucketcatalog.store.wrappers import Counting

from ...kit.collecting import noting
from ...kit.installing import BOXES
from ...kit.world import HOUR, World, compiled, rows, stored

pytestmark = pytest.mark.usefixtures("with_boxes")

HAMMERS = [{"size": 1, "name": "tack"}, {"size": 9, "name": "sledge"}]


@pytest.fixture
def world() -> World:
    """Three boxes, of which one is lost, and two parts in one of them."""
    world = World()
    writer = world.writer()
    given = [{"name": name, "label": f"L-{name}", "grams": grams} for name, grams in [("a", 500), ("b", 2_500), ("c", None)]]
    world.commit(writer, ("put", "boxes.boxes", given))
    world.commit(writer, ("put", "packed.a", HAMMERS), ("put", "packed.a", pa.table({"size": [3], "name": ["claw"]})))
    world.commit(writer, ("delete", "boxes.boxes", {"name": "c"}))
    return world


def test_its_tables_need_not_be_registered_to_be_written(world: World) -> None:
    assert [row["name"] for row in rows(world.snapshot(), "boxes.boxes")] == ["a", "b"]


def test_what_it_shows_stands_among_the_tables(world: World) -> None:
    shown = {"box_weights", "heavy_boxes", "lost_boxes", "packed.a"}
    assert shown <= set(world.snapshot().tables)


def test_a_database_without_its_tables_shows_none_of_its_views(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "c")
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "b"})
    snapshot = catalog.snapshot()
    assert not {"box_weights", "lost_boxes"} & set(snapshot.tables)
    with pytest.raises(UnknownTable):
        snapshot.scan("box_weights")


def test_a_view_renames_computes_and_keeps_what_can_be_null(world: World) -> None:
    found = world.snapshot().scan("box_weights").to_arrow()
    assert found.select(["box", "kilograms"]).to_pylist() == [{"box": "a", "kilograms": 0.5}, {"box": "b", "kilograms": 2.5}]
    assert found.schema == pa.schema(
        [pa.field("box", pa.string(), False), ("kilograms", pa.float64()), found.schema.field("since")]
    )


def test_a_view_of_tombstones_shows_when_they_ended(world: World) -> None:
    (lost,) = rows(world.snapshot(), "lost_boxes")
    (row,) = world.snapshot().scan("deleted_boxes.boxes").to_arrow().to_pylist()
    assert lost == {"box": "c", "lost": row["deleted_at"]}


@pytest.mark.parametrize(
    ("view", "where", "expected"),
    [
        ("box_weights", {"box": prefix("b")}, ["b"]),
        ("box_weights", {"box": ["a", "b", "z"], "kilograms": between(None, 1)}, ["a"]),
        ("box_weights", {"kilograms": 2.5}, ["b"]),
        ("heavy_boxes", {}, ["b"]),
        ("heavy_boxes", {"grams": between(None, 2_000)}, []),
        ("heavy_boxes", {"grams": 2_500}, ["b"]),
        ("heavy_boxes", {"grams": 2_500, "again": between(None, 2_000)}, []),
        ("heavy_boxes", {"grams": between(None, 3_000), "again": 2_500, "box": ["a", "b"]}, ["b"]),
    ],
)
def test_conditions_on_a_view_are_those_on_its_rows(
    world: World, view: str, where: dict[str, object], expected: list[str]
) -> None:
    scan = world.snapshot().scan(view, columns=["box"], where=where)
    assert scan.to_arrow()["box"].to_pylist() == expected


def test_a_condition_on_the_key_of_a_view_narrows_what_is_read(world: World) -> None:
    scan = world.snapshot().scan("box_weights", where={"box": "a"})
    assert "requests: 0" in scan.explain() and "view box_weights of boxes.boxes" in scan.explain()
    assert "not covered: 1 of" in scan.explain()
    assert scan.explain().startswith("view box_weights of boxes.boxes, computed in Python: kilograms\n")
    checked = world.snapshot().scan("box_weights", columns=["box"], where={"kilograms": 2.5}).explain().splitlines()
    assert checked[0] == "view box_weights of boxes.boxes, checked on its rows: kilograms"
    assert "not natively: box_weights has conditions that are checked on its rows" in checked


def test_a_view_is_read_in_parts_by_tasks_that_travel(world: World) -> None:
    import pickle

    scan = world.snapshot().scan("box_weights", columns=["_writer", "kilograms"])
    assert isinstance(scan, Read)
    tasks = pickle.loads(pickle.dumps(scan.tasks(1)))
    found = pa.concat_tables([part for task in tasks for part in task.read(world.store)])
    assert found == scan.to_arrow()
    assert found["_writer"].to_pylist() == ["w", "w"]


def test_a_view_shows_another_cut_as_its_table_does(world: World) -> None:
    assert [row["box"] for row in rows(world.snapshot(version="w@0"), "box_weights")] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("columns", "where"),
    [(["name"], None), (["box", "box"], None), (None, {"name": "a"}), (None, {"kilograms": "heavy"}), (None, {"box": 7})],
)
def test_what_a_view_has_not_is_an_error_that_names_it(
    world: World, columns: list[str] | None, where: dict[str, object] | None
) -> None:
    with pytest.raises(InvalidOption):
        world.snapshot().scan("box_weights", columns=columns, where=where)


@pytest.mark.parametrize("view", ["heavy_boxes", "lost_boxes"])
def test_a_condition_that_does_not_fit_is_told_in_the_words_of_the_view(world: World, view: str) -> None:
    with pytest.raises(InvalidOption, match=f"'box' of table '{view}' does not fit"):
        world.snapshot().scan(view, where={"box": 7})


def test_rows_put_under_a_name_of_its_own_are_written_by_it_and_named_by_one_commit(world: World) -> None:
    assert sorted(row["size"] for row in rows(world.snapshot(), "packed.a")) == [1, 3, 9]
    assert len(stored(world, ".parquet")) == 2
    assert {row["rows"] for row in rows(world.snapshot(), "boxes.parts")} == {1, 2}
    assert world.snapshot(version="w@1").version != world.snapshot().version
    with pytest.raises(UnknownTable):
        world.snapshot(version="w@0").scan("packed.a")


def test_a_transaction_that_fails_names_nothing_that_was_written(world: World) -> None:
    transaction = world.writer().transaction()
    with transaction as tx:
        tx.put("packed.a", HAMMERS)
        transaction.__exit__(InvalidRows, InvalidRows("no"), None)
    assert len(stored(world, ".parquet")) == 3
    assert len(rows(world.snapshot(), "packed.a")) == 3


def test_only_putting_is_possible_where_a_system_keeps_the_rows(world: World) -> None:
    with world.writer().transaction() as tx:
        for method in (tx.update, tx.delete, tx.purge):
            with pytest.raises(UnknownTable, match=r"packed\.a"):
                method("packed.a", HAMMERS)
        with pytest.raises(UnknownTable):
            tx.put("packed.a", HAMMERS, expect="absent")
        with pytest.raises(InvalidRows):
            tx.put("packed.a", 7)  # type: ignore[arg-type]
        with pytest.raises(UnknownTable):
            tx.put("unpacked.a", HAMMERS)


def test_a_job_is_planned_done_and_committed_once(world: World) -> None:
    catalog = world.catalog()
    assert catalog.run_job("boxes.repack", writer="compactor-x", clock=world.clock) == 1
    assert sorted(row["size"] for row in rows(world.snapshot(), "packed.a")) == [1, 3, 9]
    (part,) = rows(world.snapshot(), "boxes.parts")
    assert part["path"].startswith("compactor-x/default/data/") and part["rows"] == 3
    assert catalog.run_job("boxes.repack", writer="compactor-x", clock=world.clock) == 0


def test_an_option_that_a_job_does_not_take_is_an_error_that_lists_those_that_it_does(world: World) -> None:
    with pytest.raises(InvalidOption, match="Its options are least"):
        world.catalog().run_job("boxes.repack", writer="compactor-x", bogus=1)
    with pytest.raises(InvalidOption, match="'node-a' is not a compactor"):
        world.catalog().run_job("boxes.repack", writer="node-a")


def test_a_view_that_was_read_once_is_read_without_its_indexes_and_from_what_was_decoded(world: World) -> None:
    writer = world.writer()
    world.commit(writer, ("put", "boxes.boxes", [{"name": f"{number:04}", "grams": number} for number in range(300)]))
    writer.checkpoint()
    store = Counting(world.store)
    snapshot = Catalog(store).snapshot()
    snapshot.scan("box_weights", where={"box": "0007"}).to_arrow()
    before = store.requests["get_range"]
    snapshot.scan("box_weights", where={"box": "0008"}).to_arrow()
    assert store.requests["get_range"] == before
    snapshot.scan("box_weights").to_arrow()
    assert store.requests["get_range"] == before + 1


def _all_but_one(grams: pa.Array) -> pa.Array:
    return grams.slice(1)


def _as_float(grams: pa.Array) -> pa.Array:
    return grams.cast(pa.float64())


def _nothing(grams: pa.Array) -> pa.Array:
    return pa.nulls(len(grams), pa.int64())


@pytest.mark.parametrize(
    ("compute", "nullable", "why"),
    [(_all_but_one, True, "1 of int64"), (_as_float, True, "2 of double"), (len, True, "not 2"), (_nothing, False, "nulls")],
)
def test_what_a_view_computes_wrongly_is_its_systems_error(
    world: World, compute: Callable[[pa.Array], pa.Array], nullable: bool, why: str
) -> None:
    view = View("odd", "boxes.boxes", {"x": Computed(pa.int64(), ("grams",), compute, nullable)})
    with pytest.raises(BrokenSystem, match="The system 'boxes' failed at the column 'x' of its view 'odd': ") as caught:
        ViewScan(view, world.snapshot(), None, {}, system="boxes").to_arrow()
    assert why in str(caught.value)


@pytest.mark.parametrize("job", ["boxes.burn", "chests.repack", "repack"])
def test_a_job_that_is_not_there_is_an_error_that_lists_those_that_are(world: World, job: str) -> None:
    with pytest.raises(InvalidOption, match=job):
        world.catalog().run_job(job)


def test_its_data_is_deleted_as_it_says(world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = tmp_path / "labels"
    labels.mkdir()
    for name in "abc":
        (labels / f"L-{name}").touch()
    monkeypatch.setenv("BOXES_LABELS", str(labels))
    world.catalog().run_job("boxes.repack", writer="compactor-x", clock=world.clock)
    world.clock.tick(48 * HOUR)
    asked = {"writer": "maintainer-m", "clock": world.clock, "force": True, "dry_run": False}

    done = world.catalog().collect(**asked)

    assert (done.garbage, done.deleted, done.left, done.problems) == (3, 3, 0, ())
    assert sorted(path.name for path in labels.iterdir()) == ["L-a", "L-b"]
    assert len(stored(world, ".parquet")) == 1
    assert sorted(row["size"] for row in rows(world.snapshot(), "packed.a")) == [1, 3, 9]


def test_a_deleter_of_the_users_own_is_asked_for_everything(world: World) -> None:
    asked: list[str] = []
    world.clock.tick(48 * HOUR)
    world.catalog().collect(deleter=noting(asked, "label"), writer="maintainer-m", clock=world.clock, force=True, dry_run=False)
    assert asked == ["L-c"]


def test_its_commands_stand_below_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c"
    with Catalog(path).writer("w") as writer, writer.transaction() as tx:
        tx.put("boxes.boxes", [{"name": "a", "grams": 1_500}, {"name": "b", "grams": 250}])
        tx.put("packed.a", HAMMERS)

    assert run(["boxes", "weigh", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"boxes": 2, "kilograms": 1.75}
    assert run(["export", str(path), "box_weights", str(tmp_path / "w.parquet")]) == 0
    assert run(["export", str(path), "packed.a", str(tmp_path / "p.parquet")]) == 0
    assert "2 rows" in capsys.readouterr().out
    assert run(["--help"]) == 0
    assert "Commands of the system boxes." in capsys.readouterr().out
    assert run(["chests", "weigh"]) == 2


def test_what_it_has_written_can_be_read_without_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.path", [folder for folder in __import__("sys").path if "boxes" not in folder])
    snapshot = world.snapshot()
    assert [row["name"] for row in rows(snapshot, "boxes.boxes")] == ["a", "b"]
    assert not {"box_weights", "packed.a"} & set(snapshot.tables)
    with pytest.raises(UnknownTable):
        snapshot.scan("packed.a")


def test_its_declarations_are_those_of_its_proto() -> None:
    from boxes import tables_pb2

    files = FileDescriptorSet.FromString(compiled((BOXES / "boxes" / "tables.proto").read_text())).file
    (written,) = [file for file in files if file.package == "boxes"]
    kept = FileDescriptorProto.FromString(tables_pb2.DESCRIPTOR.serialized_pb)
    written.name = kept.name
    for field in (field for message in written.message_type for field in message.field):
        field.ClearField("json_name")  # which protoc writes into files of descriptors alone
    assert written == kept
