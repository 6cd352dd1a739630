"""Parents that must exist: rows that name one which is not live are refused, by what was read and what the transaction does itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidRows
from bucketcatalog.model.events import EventKind
from bucketcatalog.write import parents
from bucketcatalog.write.shares import share_task
from bucketcatalog.write.writer import Writer

from ...kit.world import BUCKET, ID_1, ID_2, World, messages, obj, proto, rows

UUID = "[(column) = {type: LOGICAL_TYPE_UUID}]"
RUN = f'message Run {{ option (table) = {{ name: "lab.runs" key: "name" id: "id" }}; string name = 1; optional bytes id = 2 {UUID}; }}'
STEP = f"""message Step {{ option (table) = {{ name: "lab.steps" key: "n" parent: {{table: "lab.runs" field: "run" must_exist: MUST}} }};
  int64 n = 1; optional bytes run = 2 {UUID}; }}"""
ABSENT = r"Row {} for table 'lab\.steps', column 'run': no row of 'lab\.runs' that is live has the id '{}'\."


def catalog(world: World, *declared: str) -> Catalog:
    made = Catalog(world.store)
    found = messages(proto(*(declared or (RUN, STEP.replace("MUST", "true")))))
    made.register(list(found.values()))
    return made


def run(name: str, id_: str = ID_1) -> dict[str, Any]:
    return {"name": name, "id": id_}


def given(steps: Iterable[tuple[int, str | None]], as_columns: bool) -> Any:
    listed = [{"n": n, "run": id_} for n, id_ in steps]
    return (
        pa.table({"n": [step["n"] for step in listed], "run": pa.array([s["run"] for s in listed], pa.string())})
        if as_columns
        else listed
    )


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture(params=[False, True], ids=["rows", "columns"])
def as_columns(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def refuses(world: World, writer: Writer, *calls: tuple[str, str, Any], row: int = 0, id_: str = ID_1) -> None:
    """The last of these calls in one transaction is refused."""
    with pytest.raises(InvalidRows, match=ABSENT.format(row, id_)) as caught:
        world.commit(writer, *calls)
    assert caught.value.next_step == "Put that first, in the same transaction or in one before, or leave run out."


def test_a_row_whose_parent_is_not_there_is_refused_by_row_and_column(world: World, as_columns: bool) -> None:
    with world.writer(catalog=catalog(world)) as writer:
        refuses(world, writer, ("put", "lab.steps", given([(1, ID_1)], as_columns)))
        world.commit(writer, ("put", "lab.runs", run("a")))
        refuses(world, writer, ("put", "lab.steps", given([(1, ID_1), (2, None), (3, ID_2)], as_columns)), row=2, id_=ID_2)
        world.commit(writer, ("put", "lab.steps", given([(1, ID_1), (2, None)], as_columns)))
    assert rows(world.snapshot(), "lab.steps") == [{"n": 1, "run": ID_1}, {"n": 2, "run": None}]


@pytest.mark.parametrize("checkpoint", [False, True])
def test_what_the_transaction_itself_puts_before_is_there_and_what_it_ends_is_not(
    world: World, as_columns: bool, checkpoint: bool
) -> None:
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "lab.runs", [run("a"), run("b", ID_2)]))
        if checkpoint:
            writer.checkpoint()
        (version, *_) = world.snapshot().scan("lab.runs", columns=["_version"]).to_arrow()["_version"].to_pylist()
        step = given([(1, ID_1)], as_columns)
        third = "cccccccc-0000-4000-8000-000000000003"
        refuses(world, writer, ("delete", "lab.runs", {"name": "a"}), ("put", "lab.steps", step))
        refuses(world, writer, ("delete", "lab.runs", {"name": "a", "_version": version}), ("put", "lab.steps", step))
        refuses(world, writer, ("delete", "lab.runs", {"name": "a", "id": ID_1}), ("put", "lab.steps", step))
        refuses(world, writer, ("put", "lab.runs", run("a", third)), ("put", "lab.steps", step))
        ended = [("put", "lab.runs", run("x", third)), ("delete", "lab.runs", {"name": "x"})]
        refuses(world, writer, *ended, ("put", "lab.steps", given([(1, third)], as_columns)), id_=third)
        assert len(rows(world.snapshot(), "lab.runs")) == 2
        world.commit(
            writer,
            ("delete", "lab.runs", {"name": "b"}),
            ("put", "lab.runs", run("c")),
            ("put", "lab.steps", step),
            ("put", "lab.runs", run("b", ID_2)),
            ("put", "lab.runs", run("d", third)),
            ("put", "lab.steps", given([(2, ID_2), (3, third), (4, ID_1)], as_columns)),
        )
    assert [row["n"] for row in rows(world.snapshot(), "lab.steps")] == [1, 2, 3, 4]


def test_a_parent_that_has_ended_is_not_there_and_rows_from_before_stay(world: World, as_columns: bool) -> None:
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "lab.runs", run("a")), ("put", "lab.steps", given([(1, ID_1)], as_columns)))
        world.commit(writer, ("delete", "lab.runs", {"name": "a"}))
        refuses(world, writer, ("put", "lab.steps", given([(2, ID_1)], as_columns)))
        (version,) = world.snapshot().scan("lab.steps", columns=["_version"]).to_arrow()["_version"].to_pylist()
        updated = (
            pa.table({"n": [1], "run": [ID_1], "_version": [version]})
            if as_columns
            else {"n": 1, "run": ID_1, "_version": version}
        )
        refuses(world, writer, ("update", "lab.steps", updated))
        assert rows(world.snapshot(), "lab.steps") == [{"n": 1, "run": ID_1}]
        world.commit(writer, ("delete", "lab.steps", {"n": 1}))
    assert rows(world.snapshot(), "lab.steps") == []


def test_what_does_not_have_to_exist_is_not_looked_for(world: World) -> None:
    with world.writer(catalog=catalog(world, RUN, STEP.replace("MUST", "false"))) as writer:
        world.commit(writer, ("put", "lab.steps", {"n": 1, "run": ID_1}), ("put", "objects", obj("x")))
    assert rows(world.snapshot(), "objects")[0]["bucket_id"] == BUCKET


KINDS = [
    ("string", "optional string id = 2;", "optional string run = 2;", "x", "y"),
    ("bytes for text", "optional bytes id = 2;", "optional string run = 2;", b"x", "y"),
    ("uuid for bytes", f"optional bytes id = 2 {UUID};", "optional bytes run = 2;", ID_1, b"0123456789abcdef"),
    ("numbers", "optional uint64 id = 2;", "optional int32 run = 2;", 7, -7),
    ("the same numbers", "optional int64 id = 2;", "optional int64 run = 2;", -7, 7),
    ("enumeration", "enum E { NONE = 0; ONE = 1; } optional E id = 2;", "optional int64 run = 2;", "ONE", 0),
]


@pytest.mark.parametrize("where", ["in the same transaction", "in one before", "in a checkpoint"])
@pytest.mark.parametrize(("id_", "field", "one", "other"), [each[1:] for each in KINDS], ids=[each[0] for each in KINDS])
def test_ids_are_compared_as_reaping_compares_them(world: World, id_: str, field: str, one: Any, other: Any, where: str) -> None:
    parent = RUN.replace(f"optional bytes id = 2 {UUID};", id_)
    child = STEP.replace("MUST", "true").replace(f"optional bytes run = 2 {UUID};", field)
    named = {b"x": "x", ID_1: bytes.fromhex(ID_1.replace("-", "")), "ONE": 1}.get(one, one)
    runs = ("put", "lab.runs", [{"name": "a", "id": one}, {"name": "b"}])
    with world.writer(catalog=catalog(world, parent, child)) as writer:
        if where != "in the same transaction":
            world.commit(writer, runs)
        if where == "in a checkpoint":
            writer.checkpoint()
        first = [runs] if where == "in the same transaction" else []
        world.commit(writer, *first, ("put", "lab.steps", {"n": 1, "run": named}))
        with pytest.raises(InvalidRows, match=r"Row 1 .*no row of 'lab\.runs' that is live"), writer.transaction() as tx:
            tx.put("lab.steps", [{"n": 2, "run": named}, {"n": 3, "run": other}])
    assert [row["n"] for row in rows(world.snapshot(), "lab.steps")] == [1]


@pytest.mark.parametrize("count", [3, 40_000])
def test_an_id_that_is_the_key_is_looked_up_however_many_are_named(world: World, count: int) -> None:
    parent = 'message Run { option (table) = { name: "lab.runs" key: "id" id: "id" }; int64 id = 1; }'
    child = STEP.replace("MUST", "true").replace(f"optional bytes run = 2 {UUID};", "optional int64 run = 2;")
    steps = pa.table({"n": range(count), "run": range(count)})
    with world.writer(catalog=catalog(world, parent, child)) as writer:
        world.commit(writer, ("put", "lab.runs", pa.table({"id": range(count)})))
        writer.checkpoint()
        world.commit(writer, ("put", "lab.steps", steps))
        with pytest.raises(InvalidRows, match=f"Row {count} .* has the id {count}"), writer.transaction() as tx:
            tx.put("lab.steps", pa.table({"n": range(count + 1), "run": range(count + 1)}))


def test_only_what_the_transaction_has_not_put_is_looked_for_and_that_once(
    world: World, as_columns: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, real = [], parents.Scan

    def counted(*args: Any, **options: Any) -> Any:
        asked.append(options["where"])
        return real(*args, **options)

    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "lab.runs", run("before", ID_2)))
        monkeypatch.setattr(parents, "Scan", counted)
        with writer.transaction() as tx:
            for n in range(20):
                id_ = f"cccccccc-0000-4000-8000-{n:012}"
                tx.put("lab.runs", run(f"{n}", id_))
                tx.put("lab.steps", given([(n, id_), (n + 100, ID_2)], as_columns))
    assert asked == [{"id": [ID_2]}]
    assert len(rows(world.snapshot(), "lab.steps")) == 40


def test_a_call_costs_as_much_after_many_as_after_few(world: World, as_columns: bool) -> None:
    pool = pa.default_memory_pool()
    costs = []
    with world.writer(catalog=catalog(world)) as writer:
        world.commit(writer, ("put", "lab.runs", [run(f"before {n}", f"dddddddd-0000-4000-8000-{n:012}") for n in range(300)]))
        with writer.transaction() as tx:
            for n in range(300):
                new, old = (f"{first}-0000-4000-8000-{n:012}" for first in ("cccccccc", "dddddddd"))
                tx.put("lab.runs", run(f"{n}", new))
                before = pool.total_bytes_allocated()
                tx.put("lab.steps", given([(2 * n, new), (2 * n + 1, old)], as_columns))
                costs.append(pool.total_bytes_allocated() - before)
    assert sum(costs[250:]) < 1.2 * sum(costs[50:100])


def test_rows_of_a_tree_may_belong_to_rows_of_the_same_call(world: World) -> None:
    tree = """message Folder { option (table) = { name: "lab.folders" key: "id" id: "id" parent: {table: "lab.folders" field: "within"
      must_exist: true} }; int64 id = 1; optional int64 within = 2; }"""
    with world.writer(catalog=catalog(world, tree)) as writer:
        world.commit(writer, ("put", "lab.folders", [{"id": 1}, {"id": 2, "within": 1}, {"id": 3, "within": 2}]))
        with pytest.raises(InvalidRows, match=r"Row 1 .* has the id 9"), writer.transaction() as tx:
            tx.put("lab.folders", [{"id": 4, "within": 3}, {"id": 5, "within": 9}])
    assert len(rows(world.snapshot(), "lab.folders")) == 3


def test_an_update_says_nothing_of_a_parent_that_is_part_of_the_key(world: World) -> None:
    child = f"""message Step {{
      option (table) = {{ name: "lab.steps" key: "run" parent: {{table: "lab.runs" field: "run" must_exist: true}} }};
      bytes run = 1 {UUID}; optional int64 n = 2; }}"""
    with world.writer(catalog=catalog(world, RUN, child)) as writer:
        world.commit(writer, ("put", "lab.runs", run("a")), ("put", "lab.steps", {"run": ID_1}))
        world.commit(writer, ("delete", "lab.runs", {"name": "a"}))
        world.commit(writer, ("update", "lab.steps", {"run": ID_1, "n": 1}))
        with pytest.raises(InvalidRows) as caught, writer.transaction() as tx:
            tx.put("lab.steps", {"run": ID_1})
        assert caught.value.next_step == "Put that first, in the same transaction or in one before."
    assert rows(world.snapshot(), "lab.steps") == [{"run": ID_1, "n": 1}]


def test_shares_look_in_the_cut_that_all_of_them_look_in(world: World) -> None:
    known = catalog(world)
    with world.writer(catalog=known) as writer:
        world.commit(writer, ("put", "lab.runs", run("a")), ("put", "lab.steps", {"n": 0}))
    task = share_task(known.database("default"), "w", "lab.steps", EventKind.PUT)
    with world.writer(catalog=known) as writer:
        world.commit(writer, ("put", "lab.runs", run("b", ID_2)))
    with pytest.raises(InvalidRows, match=ABSENT.format(1, ID_2)):
        task.write(world.store, given([(1, ID_1), (2, ID_2)], True).to_batches())
    share = task.write(world.store, given([(1, ID_1)], True).to_batches())
    with world.writer(catalog=known) as writer, writer.transaction() as tx:
        tx.adopt([share])
    assert [row["n"] for row in rows(world.snapshot(), "lab.steps")] == [0, 1]
