"""Collection: what it may forget, whose data it may delete, and when; one rule a test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, IncompatibleTable, InvalidOption
from bucketcatalog.log.entries import boundaries_of
from bucketcatalog.state.contents import TableState

from ....kit.collecting import Yard, an_id, dead, noting, thing
from ....kit.world import BUCKET, HOUR, MINUTE, OTHER, OWNER, bucket, messages, names, obj, proto, rows, version


def test_what_ended_a_day_ago_is_collected_once_its_boundary_was_waited_out(yard: Yard) -> None:
    dead(yard, "a", "b")
    first = yard.collect()
    assert (first.boundary, first.purged, first.waiting) == (0, 0, 2) and first.published and yard.has("a")
    assert boundaries_of(yard.world.snapshot().view).data is not None
    second = yard.collect()
    assert (second.purged, second.published) == (0, 0), "one boundary is waited out at a time"
    assert second.usable_from == first.usable_from
    yard.world.clock.now = first.usable_from - 2 * MINUTE
    assert yard.collect().purged == 0 and yard.has("a")
    yard.world.clock.now = first.usable_from
    done = yard.collect()
    assert (done.purged, done.deleted, done.garbage, done.failed) == (2, 2, 2, 0) and not yard.data
    assert names(yard.world.snapshot(), "deleted_objects") == []
    again = yard.collect()
    assert (again.purged, again.published, again.waiting) == (0, 0, 0), "nothing is left to do, so nothing is published"


def test_a_dry_run_says_what_would_go_and_commits_nothing(yard: Yard) -> None:
    dead(yard, "a")
    before = yard.world.snapshot().version
    told = yard.collect(dry_run=True)
    assert (told.dry_run, told.waiting, told.purged, told.garbage) == (True, 1, 1, 1)
    assert yard.world.snapshot().version == before and yard.has("a") and not yard.asked


def test_what_ended_within_the_grace_period_stays(yard: Yard) -> None:
    writer = dead(yard, "a")
    yard.put(writer, thing("b"))
    yard.world.commit(writer, ("delete", "objects", obj("b")))
    yard.collected()
    assert not yard.has("a") and yard.has("b")
    assert names(yard.world.snapshot(), "deleted_objects") == ["b"]


def test_data_that_a_live_version_names_stays_and_the_tombstone_goes(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    of_a = obj("a", _version=version(obj("a"), yard.world.snapshot()))
    yard.world.clock.tick()
    with writer.transaction(operation="rename") as tx:
        tx.put("objects", thing("b", data="a"), data_of=of_a)
        tx.delete("objects", of_a, moved=True)
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected()
    assert (done.purged, done.shared, done.garbage) == (1, 1, 0) and yard.has("a") and not yard.asked
    assert names(yard.world.snapshot()) == ["b"]
    yard.world.commit(writer, ("delete", "objects", obj("b")))
    yard.world.clock.tick(25 * HOUR)
    assert yard.collected().deleted == 1 and not yard.has("a")


def test_data_that_a_version_of_another_table_names_stays(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    yard.world.commit(writer, ("put", "object_versions", {**thing("a"), "version_id": "1"}))
    yard.world.commit(writer, ("delete", "objects", obj("a")))
    yard.world.clock.tick(25 * HOUR)
    assert yard.collected().shared == 1 and yard.has("a")


def test_whatever_lies_at_a_place_of_data_goes_with_the_row_of_whoever_names_it_unless_another_row_does(yard: Yard) -> None:
    yard.put(yard.world.writer("alice"), thing("of alice"))
    yard.data.add((OWNER, BUCKET, an_id("of nobody")))
    with yard.world.writer("mallory") as mallory:
        yard.put(mallory, thing("one", data="of alice"), thing("two", data="of nobody"))
        yard.world.commit(mallory, ("delete", "objects", [obj("one"), obj("two")]))
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected()
    assert (done.shared, done.deleted) == (1, 1) and yard.has("of alice") and not yard.has("of nobody")


def test_data_named_by_a_version_that_ended_after_the_boundary_stays_even_if_that_is_purged_by_hand(yard: Yard) -> None:
    writer = dead(yard, "a")
    yard.put(writer, thing("b", data="a"))
    named = version(obj("b"), yard.world.snapshot())
    yard.world.commit(writer, ("delete", "objects", obj("b")))
    yard.world.commit(writer, ("purge", "objects", obj("b", _version=named)))
    done = yard.collected()
    assert (done.purged, done.shared) == (1, 1) and yard.has("a")


def test_the_data_of_external_buckets_is_never_touched_and_nobody_forgets_that_they_are(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.world.commit(writer, ("put", "buckets", bucket("theirs", id=BUCKET, external=True)))
    yard.put(writer, thing("a"))
    yard.world.commit(writer, ("delete", "objects", obj("a")), ("delete", "buckets", bucket("theirs")))
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected()
    assert (done.purged, done.external, done.garbage) == (1, 1, 0) and yard.has("a") and not yard.asked
    assert names(yard.world.snapshot(), "deleted_buckets") == ["theirs"]


HOLDERS = """
message Holder {{
  option (table) = {{ name: "own.holder" key: "name" id: "name" }};
  string name = 1;
  {columns}
}}
message File {{
  option (table) = {{
    name: "own.file" key: "name" data_reference: "path" parent: {{ table: "own.holder" field: "holder" }}
  }};
  string name = 1;
  optional string path = 2;
  optional string holder = 3;
}}"""
NAMED, RENAMED = "optional bool external = 2;", "optional bool foreign = 2;"
DECLARED = "optional bool foreign = 2 [(column) = {external: true}];"
OTHERWISE = "optional bool external = 2 [(column) = {external: false}];"


@pytest.mark.parametrize(
    ("then", "now", "stays"),
    [
        (NAMED, NAMED, True),
        (DECLARED, DECLARED, True),
        (OTHERWISE, OTHERWISE, False),
        (RENAMED, RENAMED, False),
        (NAMED, RENAMED, True),
        (NAMED, "optional bool external = 2 [(column) = {external: true}];", True),
        ("optional bool external = 2 [(column) = {external: true}];", NAMED, True),
        (NAMED, OTHERWISE, True),
        (DECLARED, RENAMED, True),
        (RENAMED, DECLARED, True),
        (NAMED, "optional bool foreign = 3 [(column) = {external: true}];", True),
        (NAMED, "", True),
        (DECLARED, "optional string foreign = 4;", True),
    ],
)
def test_a_row_that_any_definition_makes_external_keeps_the_data_of_its_children(
    yard: Yard, then: str, now: str, stays: bool
) -> None:
    for name, columns, row in (("u", then, "theirs"), ("maintainer-v", now, "ours")):
        catalog = yard.world.catalog()
        declared = messages(proto(HOLDERS.format(columns=columns)))
        catalog.register([declared["Holder"], declared["File"]])
        says = {"external" if "external =" in then else "foreign": True} if name == "u" else {}
        with yard.world.writer(name, catalog=catalog) as writer:
            yard.world.commit(writer, ("put", "own.holder", {"name": row, **says}))
            yard.world.commit(writer, ("put", "own.file", {"name": row, "path": row, "holder": row}))
            yard.world.commit(writer, ("delete", "own.file", {"name": row}), ("delete", "own.holder", {"name": row}))
    yard.world.clock.tick(25 * HOUR)
    asked: list[str] = []
    done = yard.collected(deleter=noting(asked, "path"))
    assert sorted(asked) == (["ours"] if stays else ["ours", "theirs"]) and done.external == stays
    yard.collected(deleter=noting(asked, "path"))
    assert [row["name"] for row in rows(yard.world.snapshot(), "deleted_own.holder")] == (["theirs"] if stays else [])


OF_HOLDERS = 'parent: { table: "own.holder" field: "holder" }'


def owned(catalog: Catalog, parent: str = OF_HOLDERS, kind: str = "string", id_kind: str = "string") -> Catalog:
    """The catalog, which knows holders and others by their id, and the files that they own."""
    declared = proto(
        f"""
        message Holder {{
          option (table) = {{ name: "own.holder" key: "name" id: "id" }};
          string name = 1; optional {id_kind} id = 2; optional bool external = 3;
        }}
        message Other {{ option (table) = {{ name: "own.other" key: "id" id: "id" }}; {id_kind} id = 1; }}
        message File {{
          option (table) = {{ name: "own.file" key: "name" data_reference: "path" {parent} }};
          string name = 1; optional string path = 2; optional {kind} holder = 3;
        }}"""
    )
    catalog.register(messages(declared).values())
    return catalog


def deleted_by(yard: Yard) -> list[str]:
    """The paths that two runs of a collection have deleted, a day later."""
    yard.world.clock.tick(25 * HOUR)
    asked: list[str] = []
    yard.collected(deleter=noting(asked, "path"))
    yard.collected(deleter=noting(asked, "path"))
    return sorted(asked)


@pytest.mark.parametrize(
    "declared", [("", OF_HOLDERS), (OF_HOLDERS, ""), (OF_HOLDERS, OF_HOLDERS)], ids=["later", "once", "ever"]
)
def test_rows_have_their_parent_whichever_definition_says_so(yard: Yard, declared: tuple[str, str]) -> None:
    for name, parent in zip("uv", declared, strict=True):
        with yard.world.writer(name, catalog=owned(yard.world.catalog(), parent)) as writer:
            yard.world.commit(writer, ("put", "own.holder", {"name": name, "id": name, "external": name == "u"}))
            yard.world.commit(writer, ("put", "own.file", {"name": name, "path": name, "holder": name}))
            yard.world.commit(writer, ("delete", "own.file", {"name": name}))
    assert deleted_by(yard) == ["v"]


@pytest.mark.parametrize("met", [True, False])
def test_nothing_is_deleted_where_definitions_name_different_parents(yard: Yard, met: bool) -> None:
    first = yard.world.writer("u", catalog=owned(yard.world.catalog()))
    second = yard.world.writer("v", catalog=owned(yard.world.catalog(), OF_HOLDERS.replace("own.holder", "own.other")))
    row = {"name": "a", "path": "theirs", "holder": "1"}
    theirs = [("put", "own.holder", {"name": "h", "id": "1", "external": True}), ("put", "own.file", row)]
    if met:
        yard.world.commit(first, *theirs)
        with pytest.raises(IncompatibleTable, match=r"'own\.file' is defined with two parents"):
            yard.world.commit(second, ("put", "own.file", {"name": "b", "path": "b"}))
    else:
        with second.transaction() as tx:  # begun, and its table looked up, before the other commits
            tx.put("own.file", {"name": "b", "path": "b"})
            yard.world.commit(first, *theirs)
    yard.world.commit(first, ("delete", "own.file", {"name": "a"}))
    if met:
        assert deleted_by(yard) == []
    else:
        with pytest.raises(IncompatibleTable, match=r"'own\.file' is defined with two parents"):
            deleted_by(yard)


INTEGERS = [
    (("int32", "int32"), ("int64", "int32")),
    (("int32", "int32"), ("int32", "int64")),
    (("int64", "int32"), ("int32", "int32")),
    (("uint32", "uint32"), ("uint64", "uint32")),
    (("uint32", "int64"), ("uint32", "int64")),
    (("uint64", "int32"), ("uint64", "int32")),
]
"""Types of a holder's id and of the column of a file that names it, in an earlier and a later definition."""


@pytest.mark.parametrize(("then", "now"), INTEGERS, ids=str)
def test_rows_have_their_parent_whatever_the_width_of_its_id(yard: Yard, then: tuple[str, str], now: tuple[str, str]) -> None:
    for at, (name, (id_kind, kind)) in enumerate(zip("uv", (then, now), strict=True), 1):
        with yard.world.writer(name, catalog=owned(yard.world.catalog(), kind=kind, id_kind=id_kind)) as writer:
            yard.world.commit(writer, ("put", "own.holder", {"name": name, "id": at, "external": name == "u"}))
            yard.world.commit(writer, ("put", "own.file", {"name": name, "path": name, "holder": at}))
            yard.world.commit(writer, ("delete", "own.file", {"name": name}))
    assert deleted_by(yard) == ["v"]


def test_data_of_ours_that_an_external_bucket_names_too_stays(yard: Yard) -> None:
    declared = proto(
        """message File {
          option (table) = {
            name: "own.file" key: "name" data_reference: "path" parent: {table: "buckets" field: "bucket_id"}
          };
          string name = 1;
          optional string path = 2;
          optional bytes bucket_id = 3 [(column) = {type: LOGICAL_TYPE_UUID}];
        }"""
    )
    catalog = yard.world.catalog()
    catalog.register(messages(declared)["File"])
    writer = yard.world.writer(catalog=catalog)
    yard.world.commit(writer, ("put", "buckets", [bucket("theirs", id=OTHER, external=True), bucket("ours", id=BUCKET)]))
    files = [("mine", "shared", BUCKET), ("hers", "shared", OTHER), ("alone", "alone", BUCKET)]
    yard.world.commit(writer, ("put", "own.file", [{"name": n, "path": p, "bucket_id": b} for n, p, b in files]))
    yard.world.commit(writer, ("delete", "own.file", [{"name": name} for name, *_ in files]))
    yard.world.clock.tick(25 * HOUR)
    asked: list[str] = []
    done = yard.collected(deleter=noting(asked, "path"))
    assert (done.purged, done.external, done.shared, asked) == (3, 1, 1, ["alone"])


def test_a_table_that_cannot_be_read_stops_a_collection_for_it_may_name_any_data(yard: Yard) -> None:
    dead(yard, "a")
    body = 'message Own {{ option (table) = {{name: "own.t" key: "name"}}; string name = 1; optional {} x = 2; }}'
    catalogs = [yard.world.catalog() for _ in range(2)]
    for catalog, kind in zip(catalogs, ("string", "int64"), strict=True):
        catalog.register(messages(proto(body.format(kind)))["Own"])
    one, other = (yard.world.writer(f"w{number}", catalog=catalog) for number, catalog in enumerate(catalogs))
    with other.transaction() as tx:
        tx.put("own.t", {"name": "a", "x": 1})
        yard.world.commit(one, ("put", "own.t", {"name": "a", "x": "1"}))
    with pytest.raises(IncompatibleTable, match=r"own\.t"):
        yard.collected()
    assert yard.has("a")


def test_a_row_without_a_complete_reference_is_forgotten_and_nothing_is_deleted(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.world.commit(writer, ("put", "objects", obj("a")))
    yard.world.commit(writer, ("delete", "objects", obj("a")))
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected()
    assert (done.purged, done.garbage) == (1, 0) and not yard.asked


def test_only_what_the_deleter_says_is_gone_is_purged_and_the_rest_is_tried_again(yard: Yard) -> None:
    dead(yard, "a", "b", "c")
    yard.refuses = {an_id("b")}
    done = yard.collected()
    assert (done.purged, done.deleted, done.failed) == (2, 2, 1) and "left the data of 1" in done.problems[0]
    assert names(yard.world.snapshot(), "deleted_objects") == ["b"]
    yard.refuses = set()
    assert yard.collect().purged == 1 and not yard.data


@pytest.mark.parametrize(
    "answer", [lambda batch: [True], lambda batch: None, lambda batch: ["yes"] * len(batch), lambda batch: 1 / 0]
)
def test_a_deleter_that_answers_nonsense_has_deleted_nothing(yard: Yard, answer: Any) -> None:
    dead(yard, "a", "b")
    done = yard.collected(deleter=answer)
    assert (done.purged, done.failed, len(done.problems)) == (0, 2, 1)
    assert names(yard.world.snapshot(), "deleted_objects") == ["a", "b"]


def test_without_a_deleter_what_has_data_is_left(yard: Yard) -> None:
    writer = dead(yard, "a")
    yard.world.commit(writer, ("put", "objects", obj("no data")))
    yard.world.commit(writer, ("delete", "objects", obj("no data")))
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected(deleter=None)
    assert (done.purged, done.left) == (1, 1) and names(yard.world.snapshot(), "deleted_objects") == ["a"]


def test_a_bucket_is_forgotten_after_its_objects(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)))
    yard.put(writer, thing("a"))
    yard.world.commit(writer, ("delete", "objects", obj("a")), ("delete", "buckets", bucket("cats")))
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected()
    assert (done.purged, done.owners) == (1, 1) and names(yard.world.snapshot(), "deleted_buckets") == ["cats"]
    yard.collect()
    assert names(yard.world.snapshot(), "deleted_buckets") == []


def test_a_replaced_row_of_a_bucket_that_is_live_is_forgotten(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET)))
    yard.put(writer, thing("a"))
    yard.world.commit(writer, ("put", "buckets", bucket("cats", id=BUCKET, region="elsewhere")))
    yard.world.clock.tick(25 * HOUR)
    assert yard.collected().purged == 1 and names(yard.world.snapshot(), "buckets") == ["cats"]


def test_several_tombstones_of_one_datum_are_one_deletion(yard: Yard) -> None:
    writer = yard.world.writer()
    for name in ("a", "b", "a"):
        yard.put(writer, thing(name, data="same"))
    yard.world.commit(writer, ("delete", "objects", [obj("a"), obj("b")]))
    yard.world.clock.tick(25 * HOUR)
    done = yard.collected()
    assert (done.purged, done.deleted) == (3, 1) and yard.asked == [[an_id("same")]]


def test_more_candidates_than_are_held_are_collected_in_parts(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bucketcatalog.maintain.gc.collect.AT_ONCE", 10)
    monkeypatch.setattr("bucketcatalog.maintain.gc.collect.BATCH", 4)
    monkeypatch.setitem(TableState.plan.__kwdefaults__, "target", 16)
    dead(yard, *(f"{number:03}" for number in range(50)))
    assert yard.collected().deleted == 50 and not yard.data
    assert max(map(len, yard.asked)) <= 4


def test_collection_reads_checkpoints_as_it_reads_transactions(yard: Yard) -> None:
    writer = dead(yard, "a", "b")
    writer.checkpoint()
    yard.put(writer, thing("c", data="b"))
    with yard.world.writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    done = yard.collected()
    assert (done.purged, done.deleted, done.shared) == (2, 1, 1) and yard.has("b")


@pytest.mark.parametrize("age", ["5h", "0s", 0])
def test_an_age_that_readers_may_need_is_refused_unless_forced(yard: Yard, age: Any) -> None:
    dead(yard, "a")
    with pytest.raises(InvalidOption, match="may be in use"):
        yard.collect(older_than=age)
    done = yard.collect(older_than=age, force=True)
    assert done.purged == 1 and not yard.has("a")


def test_no_force_reaches_past_what_is_settled(yard: Yard) -> None:
    writer = yard.world.writer()
    yard.put(writer, thing("a"))
    yard.world.commit(writer, ("delete", "objects", obj("a")))
    yard.world.clock.tick(5 * MINUTE)
    assert yard.collect(older_than=0, force=True).purged == 0 and yard.has("a")
    yard.world.clock.tick(2 * MINUTE)
    assert yard.collect(older_than=0, force=True).purged == 1


def test_of_several_boundaries_the_one_that_reaches_farthest_counts(yard: Yard) -> None:
    writer = dead(yard, "a")
    yard.put(writer, thing("b"))
    yard.world.commit(writer, ("delete", "objects", obj("b")))
    yard.world.clock.tick(10 * HOUR)
    farthest = yard.collect(older_than="8h")
    yard.world.clock.tick(7 * HOUR)
    assert yard.collect(older_than="24h", writer="maintainer-2").published == 0
    found = boundaries_of(yard.world.snapshot().view).data
    assert found is not None and found.data == farthest.published
    assert not yard.has("a") and yard.has("b"), "each run has a grace period of its own"


def test_a_deleter_and_a_url_at_once_are_refused(yard: Yard) -> None:
    dead(yard, "a")
    with pytest.raises(InvalidOption, match="not by both"):
        yard.collect(data_url="/data/{owner}/{bucket_id}/{id}")
    with pytest.raises(InvalidOption, match="is not a deleter"):
        yard.collect(deleter="s3://data")


@pytest.mark.parametrize("names", ["{owner}/{id}", "{nope}/{id}", "{owner}/{bucket_id}/{id}/{name}"])
@pytest.mark.parametrize("dry_run", [True, False])
def test_a_url_without_just_the_columns_of_a_data_reference_is_refused_before_anything_is_purged(
    yard: Yard, tmp_path: Path, names: str, dry_run: bool
) -> None:
    dead(yard, "a")
    before = [info.name for info in yard.world.store.list("")]
    with pytest.raises(InvalidOption, match="No table has the data reference"):
        yard.collect(deleter=None, data_url=f"{tmp_path}/{names}", dry_run=dry_run)
    assert [info.name for info in yard.world.store.list("")] == before


def test_only_maintainers_collect(yard: Yard) -> None:
    dead(yard, "a")
    with pytest.raises(InvalidOption, match="'alice' is not a maintainer"):
        yard.collect(writer="alice")
