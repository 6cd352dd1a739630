"""Rows that name their bucket where they would have its id: in every form in which rows are given, and by whatever is live then."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any
from uuid import UUID

import pandas as pd
import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, InvalidRows, NotFound
from bucketcatalog.query import named
from bucketcatalog.store.faults import Counting
from bucketcatalog.write.given import GivenRows

from ...kit.world import OTHER, OWNER, World, bucket, messages, obj, proto, rows

Row = dict[str, Any]
FORMS: dict[str, Callable[[list[Row]], Any]] = {
    "dicts": lambda rows: rows,
    "table": pa.Table.from_pylist,
    "batch": pa.RecordBatch.from_pylist,
    "stream": lambda rows: pa.Table.from_pylist(rows).to_reader(),
    "frame": pd.DataFrame,
}


@pytest.fixture
def world() -> World:
    found = World.counting()
    with found.writer() as w:
        found.commit(
            w, ("put", "buckets", [bucket("pets"), bucket("cars"), bucket("shared"), {"owner": OTHER, "name": "shared"}])
        )
    return found


def live(world: World, **asked: Any) -> list[tuple[str, str]]:
    rows = world.snapshot().scan("objects", columns=["bucket", "name"], **asked).to_arrow().to_pylist()
    return sorted((row["bucket"], row["name"]) for row in rows)


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_put_updated_and_deleted_by_the_names_of_their_buckets(world: World, form: str) -> None:
    made = FORMS[form]
    with world.writer() as w:
        world.commit(w, ("put", "objects", made([{"bucket": "pets", "name": "a"}, {"bucket": "cars", "name": "b"}])))
        assert live(world) == [("cars", "b"), ("pets", "a")]
        world.commit(
            w, ("put", "objects", made([{"bucket": "shared", "owner": owner, "name": owner[0]} for owner in (OTHER, OWNER)]))
        )
        assert live(world, owner=OTHER) == [("shared", "2")] and live(world, bucket="shared", owner=OWNER) == [("shared", "1")]
        version = world.snapshot().scan("objects", bucket="pets", columns=["_version"]).to_arrow()["_version"][0].as_py()
        world.commit(w, ("update", "objects", made([{"bucket": "pets", "name": "a", "etag": "x", "_version": version}])))
        found = world.snapshot().get("objects", bucket="pets", name="a")
        assert found is not None and found["etag"] == "x"
        world.commit(w, ("delete", "objects", made([{"bucket": "pets", "name": "a"}])))
        assert live(world, prefix="a") == []


@pytest.mark.parametrize("form", FORMS)
def test_names_that_mean_nothing_certain_are_refused_and_nothing_is_added(world: World, form: str) -> None:
    made = FORMS[form]
    with world.writer() as w, w.transaction() as tx:
        tx.put("objects", {"bucket": "pets", "name": "kept"})
        with pytest.raises(InvalidOption, match=f"2 owners have a bucket 'shared': {OWNER}; {OTHER}"):
            tx.put("objects", made([{"bucket": "pets", "name": "a"}, {"bucket": "shared", "name": "b"}]))
        with pytest.raises(NotFound, match="no bucket 'never'"):
            tx.put("objects", made([{"bucket": "never", "name": "a"}]))
        with pytest.raises(InvalidRows, match=r"says bucket_id '1111.*and the bucket that it names has"):
            tx.put("objects", made([{"bucket": "pets", "bucket_id": OWNER, "name": "a"}]))
        with pytest.raises(InvalidRows, match="column 'bucket', which it does not take"):
            tx.put("buckets", made([{"owner": OWNER, "bucket": "x", "name": "x"}]))
    assert live(world) == [("pets", "kept")]


def test_rows_with_and_without_names_go_together_and_what_says_the_same_is_no_contradiction(world: World) -> None:
    id_ = world.snapshot().scan("buckets", bucket="pets", columns=["id"]).to_arrow()["id"][0].as_py()
    mixed = [
        {"bucket": "pets", "name": "a"},
        obj("b", bucket_id=id_),
        {"bucket": "pets", "bucket_id": id_, "owner": OWNER, "name": "c"},
    ]
    with world.writer() as w:
        world.commit(w, ("put", "objects", mixed))
        columns = dict.fromkeys(("bucket", "owner", "bucket_id"))
        world.commit(w, ("put", "objects", pa.Table.from_pylist([{**columns, **row, "name": row["name"] * 2} for row in mixed])))
    assert live(world) == [("pets", name) for name in ("a", "aa", "b", "bb", "c", "cc")]


def test_what_the_transaction_itself_puts_and_ends_counts(world: World) -> None:
    with world.writer() as w:
        with w.transaction() as tx:
            tx.put("buckets", bucket("new"))
            tx.put("objects", {"bucket": "new", "name": "a"})
            tx.put("buckets", pa.Table.from_pylist([{"owner": OTHER, "name": "pets"}]))
            with pytest.raises(InvalidOption, match="2 owners have a bucket 'pets'"):
                tx.put("objects", {"bucket": "pets", "name": "a"})
            tx.put("objects", {"bucket": "pets", "owner": OTHER, "name": "b"})
            tx.delete("buckets", bucket("cars"))
            with pytest.raises(NotFound, match="'cars' is ended by the same transaction"):
                tx.put("objects", {"bucket": "cars", "name": "a"})
            tx.put("buckets", bucket("cars"))
            tx.put("objects", {"bucket": "cars", "name": "c"})
        again = world.snapshot().scan("buckets", bucket="cars", columns=["id"]).to_arrow()["id"][0].as_py()
        row = world.snapshot().get("objects", bucket="cars", name="c")
        assert row is not None and row["bucket_id"] == again
    assert live(world) == [("cars", "c"), ("new", "a"), ("pets", "b")]


def test_rows_with_ids_cost_no_look_and_names_one_a_transaction(world: World) -> None:
    store = world.store
    assert isinstance(store, Counting)
    with world.writer() as w:
        world.commit(w, ("put", "objects", obj("warm")))
        costs = []
        for rows in (
            [obj("x")],
            [{"bucket": "pets", "name": "a"}],
            [{"bucket": name, "name": f"{n}"} for n in range(50) for name in ("pets", "cars")],
        ):
            store.reset()
            world.commit(w, ("put", "objects", rows))
            costs.append(sum(store.requests.values()))
    assert costs[0] == 1 < costs[2] <= costs[1]


@pytest.mark.parametrize("as_columns", [False, True], ids=["dicts", "table"])
@pytest.mark.parametrize("owner", [{}, {"owner": OWNER}], ids=["by name", "by name and owner"])
def test_all_names_of_a_call_are_looked_up_by_one_scan(
    world: World, monkeypatch: pytest.MonkeyPatch, owner: Row, as_columns: bool
) -> None:
    scans, real = count(), named.Scan

    def counted(*args: Any, **options: Any) -> Any:
        next(scans)
        return real(*args, **options)

    names = [f"b{n:02}" for n in range(20)]
    new = [f"n{n:02}" for n in range(20)]
    given = [{"bucket": name, "name": "x", **owner} for name in (*names, *new)]
    with world.writer() as w:
        world.commit(w, ("put", "buckets", [bucket(name) for name in names]))
        with w.transaction() as tx:
            tx.put("buckets", [bucket(name) for name in new[:10]])
            tx.put("buckets", pa.Table.from_pylist([bucket(name) for name in new[10:]]))
            monkeypatch.setattr(named, "Scan", counted)
            tx.put("objects", pa.Table.from_pylist(given) if as_columns else given)
            monkeypatch.undo()
    assert next(scans) == 1
    assert live(world) == [(name, "x") for name in (*names, *new)]


def test_what_the_transaction_has_put_is_gone_over_once_a_call(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    real, costs = GivenRows.values, []
    for names in (2, 40):
        asked = count()

        def counted(given: GivenRows, column: Any, asked: count[int] = asked) -> list[Any]:
            next(asked)
            return real(given, column)

        with world.writer() as w, w.transaction() as tx:
            tx.put("buckets", [bucket(f"n{n:02}") for n in range(names)])
            with monkeypatch.context() as patched:
                patched.setattr(GivenRows, "values", counted)
                tx.put("objects", [{"bucket": f"n{n:02}", "name": "x"} for n in range(names)])
            costs.append(next(asked))
    assert costs[1] == costs[0]


RAW = UUID(OWNER).bytes
SPELLINGS: dict[str, Callable[[], Any]] = {
    "capitals": lambda: [{"bucket": "shared", "owner": OWNER.upper(), "name": "a"}],
    "without dashes": lambda: [{"bucket": "shared", "owner": OWNER.replace("-", ""), "name": "a"}],
    "a uuid": lambda: [{"bucket": "shared", "owner": UUID(OWNER), "name": "a"}],
    "bytes": lambda: [{"bucket": "shared", "owner": RAW, "name": "a"}],
    "a column of capitals": lambda: column_of(pa.array([OWNER.upper()])),
    "a column of bytes": lambda: column_of(pa.array([RAW], pa.binary(16))),
    "a column of uuids": lambda: column_of(pa.array([RAW], pa.uuid())),
    "a dictionary": lambda: column_of(pa.array([OWNER.upper()]).dictionary_encode()),
}


def column_of(owner: pa.Array) -> pa.Table:
    return pa.table({"bucket": ["shared"], "owner": owner, "name": ["a"]})


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_owners_may_be_spelled_as_in_rows_with_ids(world: World, spelling: str) -> None:
    with world.writer() as w:
        world.commit(w, ("put", "objects", SPELLINGS[spelling]()))
        with w.transaction() as tx:
            tx.put("buckets", bucket("new"))
            tx.put("buckets", {"owner": OTHER, "name": "new"})
            tx.put("objects", [{"bucket": "new", "owner": owner, "name": "b"} for owner in (OWNER.upper(), RAW, OTHER)])
    assert live(world, owner=OWNER) == [("new", "b"), ("shared", "a")]
    assert live(world, owner=OTHER) == [("new", "b")]


@pytest.mark.parametrize("form", FORMS)
def test_an_id_may_stand_for_the_name(world: World, form: str) -> None:
    found = world.snapshot().scan("buckets", owner=OWNER, columns=["name", "id"]).to_arrow().to_pylist()
    given = [{"bucket": row["id"], "name": row["name"]} for row in found]
    with world.writer() as w:
        world.commit(w, ("put", "objects", FORMS[form](given)))
    assert live(world) == [(name, name) for name in ("cars", "pets", "shared")]


@pytest.mark.parametrize("form", FORMS)
def test_an_id_beside_the_name_may_be_spelled_in_any_way(world: World, form: str) -> None:
    id_ = world.snapshot().scan("buckets", bucket="pets", columns=["id"]).to_arrow()["id"][0].as_py()
    spellings = [id_.upper(), id_.replace("-", ""), id_]
    given = [{"bucket": "pets", "bucket_id": said, "name": f"{n}"} for n, said in enumerate(spellings)]
    with world.writer() as w:
        world.commit(w, ("put", "objects", FORMS[form](given)))
        raw = UUID(id_).bytes
        world.commit(w, ("put", "objects", {"bucket": "pets", "bucket_id": raw, "name": "3"}))
        column = pa.array([raw], pa.uuid())
        world.commit(w, ("put", "objects", pa.table({"bucket": ["pets"], "bucket_id": column, "name": ["4"]})))
    assert live(world) == [("pets", f"{n}") for n in range(5)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([obj("x"), {"bucket": ["pets"], "name": "a"}], "Row 1 for table 'objects', column 'bucket': text is expected"),
        ([obj("x"), {"bucket": 7, "name": "a"}], "Row 1 for table 'objects', column 'bucket': text is expected"),
        ([{"bucket": "pets", "owner": [OWNER], "name": "a"}], "Row 0 for table 'objects', column 'owner': a uuid is"),
        ([{"bucket": "pets", "owner": "me", "name": "a"}], "Row 0 for table 'objects', column 'owner': 'me' is not a uuid"),
        ([{"bucket": "pets", "bucket_id": [1], "name": "a"}], "Row 0 for table 'objects', column 'bucket_id': a uuid is"),
        (pa.table({"bucket": [["pets"]], "name": ["a"]}), "Column 'bucket' for table 'objects': .* is expected, not list"),
        (pa.table({"bucket": [7], "name": ["a"]}), "Column 'bucket' for table 'objects': .* is expected, not int64"),
        (pa.table({"bucket": ["pets"], "owner": [[OWNER]], "name": ["a"]}), "Column 'owner' for table 'objects': .* not list"),
        (
            pa.table({"bucket": ["pets"] * 2, "owner": [OWNER, "me"], "name": ["a", "b"]}),
            "Column 'owner' for table 'objects': row 1: 'me' is not a uuid",
        ),
        (
            pa.table({"bucket": ["pets"], "bucket_id": [[OWNER]], "name": ["a"]}),
            "Column 'bucket_id' for table 'objects': .* not list",
        ),
        (pa.table([["pets"], ["cars"], ["a"]], ["bucket", "bucket", "name"]), "have the column 'bucket' twice"),
    ],
    ids=[
        "a list",
        "a number",
        "a list of owners",
        "no owner",
        "a list of ids",
        "a column of lists",
        "a column of numbers",
        "a column of lists of owners",
        "a column of no owners",
        "a column of lists of ids",
        "a column twice",
    ],
)
def test_what_cannot_be_a_name_is_refused_by_row_and_column(world: World, given: Any, message: str) -> None:
    with world.writer() as w, w.transaction() as tx, pytest.raises(InvalidRows, match=message):
        tx.put("objects", given)


RUN = """message Run { option (table) = { name: "lab.runs" key: "at" id: "id" };
  int64 at = 1; optional bytes id = 2 [(column) = {type: LOGICAL_TYPE_UUID, default: COLUMN_DEFAULT_INCARNATION}]; }"""
STEP = """message Step { option (table) = { name: "lab.steps" key: "n" parent: {table: "lab.runs" field: "run_id"} };
  int64 n = 1; optional bytes run_id = 2 [(column) = {type: LOGICAL_TYPE_UUID}]; }"""


@pytest.mark.parametrize("as_columns", [False, True], ids=["dicts", "table"])
def test_a_name_may_be_a_number(as_columns: bool) -> None:
    world = World()
    made = Catalog(world.store)
    made.register(list(messages(proto(RUN, STEP)).values()))

    def steps(*runs: int) -> Any:
        given = [{"n": n, "run": run} for n, run in enumerate(runs)]
        return pa.Table.from_pylist(given) if as_columns else given

    ids = {1: str(UUID(int=1)), 2: str(UUID(int=2))}
    with world.writer(catalog=made) as w:
        world.commit(w, ("put", "lab.runs", {"at": 1, "id": ids[1]}))
        with w.transaction() as tx:
            tx.put("lab.runs", {"at": 2, "id": ids[2]})
            tx.put("lab.steps", steps(1, 2))
            with pytest.raises(NotFound, match="no bucket 3"):
                tx.put("lab.steps", steps(3))
            with pytest.raises(InvalidRows, match="column 'run'"):
                tx.put("lab.steps", {"n": 1, "run": "1"})
    assert [row["run_id"] for row in rows(world.snapshot(), "lab.steps")] == [ids[1], ids[2]]
