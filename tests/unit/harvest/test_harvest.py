# ruff: noqa: PTH108, PTH211
"""Harvests from directories: what is in the catalog is what is on disk, and what was not seen is not deleted."""

from __future__ import annotations

import os
import random
import shutil
import socket
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogWarning
from bucketcatalog.errors import ForeignBranch, InvalidName, InvalidOption, OutcomeUnknown, SourceNotFound, UnsupportedStore
from bucketcatalog.harvest import EntryError, Harvested, default_writer, harvest, open_source
from bucketcatalog.store.faults import Counting
from bucketcatalog.store.memory import MemoryStore
from bucketcatalog.store.wrappers import Wrapped

from ...kit.trees import HOSTILE, assert_same, in_catalog, locked, make_tree, on_disk, open_folder, touch
from .sources import ListSource

pytestmark = pytest.mark.usefixtures("file_system")


def counts(result: Harvested) -> tuple[int, int, int, int]:
    return result.created, result.overwritten, result.deleted, result.unchanged


def errors(catalog: Catalog) -> list[tuple[str, str]]:
    rows = catalog.snapshot().scan("harvest_errors").to_arrow().to_pylist()
    return [(row["path"], row["code"]) for row in rows]


def test_a_tree_of_hostile_names_is_in_the_catalog_as_on_disk(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", HOSTILE)
    result = harvest(catalog, root)
    assert_same(catalog, root)
    assert counts(result) == (len(HOSTILE), 0, 0, 0)
    assert result.entries == len(HOSTILE) and result.bytes == sum(map(len, HOSTILE)) and result.errors == 0


def test_the_bucket_is_external_and_derived_from_host_and_path(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"dir/x"])
    result = harvest(catalog, root)
    (bucket,) = catalog.snapshot().scan("buckets").to_arrow().to_pylist()
    owner = str(uuid.uuid5(uuid.NAMESPACE_DNS, socket.gethostname()))
    assert (bucket["owner"], bucket["name"], bucket["external"]) == (owner, str(root), True)
    assert bucket["source"] == f"file://{socket.gethostname()}{root}"
    assert (result.bucket_id, result.owner, result.source) == (bucket["id"], owner, bucket["source"])
    row = catalog.snapshot().get("objects", owner=owner, bucket_id=bucket["id"], name="dir/x")
    assert row is not None
    one = (root / "dir/x").stat()
    assert row["id"] == str(uuid.uuid5(uuid.UUID(bucket["id"]), f"dir/x\0{one.st_size} {one.st_mtime_ns}"))
    assert row["created"] == row["modified"]


def test_a_second_run_without_changes_commits_nothing(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", HOSTILE)
    (root / "link").symlink_to("a0")
    harvest(catalog, root)
    before = catalog.snapshot().version
    again = harvest(catalog, root)
    assert (again.transactions, counts(again)) == ((), (0, 0, 0, len(HOSTILE) + 1))
    assert catalog.snapshot().version == before


def test_a_second_run_commits_what_changed_and_nothing_else(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", HOSTILE)
    harvest(catalog, root)
    before = catalog.snapshot().version
    touch(root / "a.txt", "other")
    touch(root / "new", "new")
    (root / "a0").unlink()
    shutil.rmtree(root / "z")
    result = harvest(catalog, root)
    assert_same(catalog, root)
    assert counts(result) == (1, 1, 2, len(HOSTILE) - 3)
    change = catalog.diff(start=before).to_arrow()
    assert dict(zip(change["name"].to_pylist(), change["_change_type"].to_pylist(), strict=True)) == {
        "a.txt": "overwritten",
        "a0": "deleted",
        "new": "created",
        "z/y/x/w/v/u/t.tar.gz": "deleted",
    }
    assert catalog.changes(start=before).to_arrow().num_rows == 4


def test_a_file_of_the_same_size_and_another_time_is_another_version(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"x"])
    harvest(catalog, root)
    os.utime(root / "x", ns=(0, 7))
    assert counts(harvest(catalog, root)) == (0, 1, 0, 0)


def test_a_directory_that_becomes_a_file_and_back_is_followed(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a/b", b"a/c", b"a-"])
    harvest(catalog, root)
    shutil.rmtree(root / "a")
    touch(root / "a", "a file now")
    assert counts(harvest(catalog, root)) == (1, 0, 2, 1)
    (root / "a").unlink()
    make_tree(root, [b"a/b"])
    assert counts(harvest(catalog, root)) == (1, 0, 1, 1)
    assert_same(catalog, root)


def test_an_empty_source_makes_a_bucket_and_then_nothing(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [])
    assert len(harvest(catalog, root).transactions) == 1
    assert harvest(catalog, root).transactions == ()
    assert in_catalog(catalog, str(root)) == {}


def test_everything_gone_deletes_everything_and_keeps_tombstones(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", HOSTILE)
    harvest(catalog, root)
    shutil.rmtree(root)
    with pytest.raises(SourceNotFound):
        harvest(catalog, root)
    assert len(in_catalog(catalog)) == len(HOSTILE)
    root.mkdir()
    assert counts(harvest(catalog, root, allow_empty=True)) == (0, 0, len(HOSTILE), 0)
    assert catalog.snapshot().scan("deleted_objects").to_arrow().num_rows == len(HOSTILE)


@pytest.mark.parametrize("dry_run", [False, True])
def test_a_source_that_has_become_empty_deletes_nothing_unasked(catalog: Catalog, tmp_path: Path, dry_run: bool) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b/c"])
    harvest(catalog, root)
    before = catalog.snapshot().version
    shutil.rmtree(root)
    root.mkdir()
    for scope in ({}, {"include": ["b/*"]}):
        with pytest.raises(
            SourceNotFound, match=r"Nothing at all is found in file://.*Next: See that it is mounted.*allow_empty=True"
        ):
            harvest(catalog, root, dry_run=dry_run, **scope)
    assert harvest(catalog, root, dry_run=dry_run, include=["never/*"]).changes == 0
    assert catalog.snapshot().version == before
    assert counts(harvest(catalog, root, dry_run=dry_run, allow_empty=True)) == (0, 0, 2, 0)
    assert len(in_catalog(catalog)) == (2 if dry_run else 0)


def test_harvests_that_overlap_as_one_writer_do_not_claim_success(catalog: Catalog) -> None:
    other = Catalog(catalog.store)

    def meanwhile() -> None:
        with suppress(ForeignBranch):  # where the other's next commit comes first
            harvest(other, ListSource([("a", "1"), ("c", "3"), ("d", "3"), ("e", "3")]), chunk_events=1)

    overlapped = ListSource([("a", "1"), ("b", "2"), meanwhile, *((name, "4") for name in "defg")])
    with pytest.raises(ForeignBranch, match=r"Next: Let no two harvests of a source run at a time.*writer="):
        harvest(catalog, overlapped, chunk_events=1)
    with pytest.raises(ForeignBranch, match=r"is forked: .*Next: Let no two harvests of a source run at a time.*writer="):
        harvest(Catalog(catalog.store), ListSource([("a", "1")]))
    assert harvest(Catalog(catalog.store), ListSource([("new", "5")]), writer="another").created == 1
    with pytest.warns(CatalogWarning, match="forked"):
        found = in_catalog(Catalog(catalog.store))
    assert set(found) == {"new"}


def test_a_source_with_nothing_but_errors_is_not_taken_for_empty(catalog: Catalog) -> None:
    harvest(catalog, ListSource([("a", "1"), ("b", "1")]))
    result = harvest(catalog, ListSource([EntryError(b"a", "EACCES", "no")]))
    assert (counts(result), [(failed.path, failed.code, failed.message) for failed in result.failed]) == (
        (0, 0, 1, 0),
        [("a", "EACCES", "no")],
    )


@pytest.mark.parametrize("checkpoints", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_changes_and_runs_ends_with_what_is_on_disk(tmp_path: Path, seed: int, checkpoints: bool) -> None:
    chance = random.Random(seed)
    catalog = Catalog(MemoryStore())
    root = make_tree(tmp_path / "tree", HOSTILE)
    pool = [*HOSTILE, *(b"d%d/f%d" % (at % 5, at) for at in range(60))]
    for round_ in range(5):
        before = {} if round_ == 0 else in_catalog(catalog)
        for name in chance.sample(pool, 20):
            path = Path(os.fsdecode(os.fsencode(root) + b"/" + name))
            if chance.random() < 0.4 and path.exists():
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                touch(path, "x" * chance.randrange(4))
        small: dict[str, Any] = {"chunk_events": chance.choice([1, 3, 1000]), "checkpoint_events": 10 if checkpoints else 10**6}
        result = harvest(catalog, open_source(root) if chance.random() < 0.5 else root, **small)
        assert_same(catalog, root)
        now = on_disk(root)
        assert (result.created, result.deleted) == (len(now.keys() - before.keys()), len(before.keys() - now.keys()))
        assert harvest(catalog, root).transactions == ()
    assert bool(catalog.snapshot().scan("checkpoints").to_arrow().num_rows) is checkpoints


def test_what_is_out_of_scope_is_neither_added_nor_deleted(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"keep/a", b"cache/b", b"c.tmp"])
    harvest(catalog, root, exclude=["cache/*", "*.tmp"])
    assert set(in_catalog(catalog)) == {"keep/a"}
    harvest(catalog, root)
    shutil.rmtree(root / "cache")
    shutil.rmtree(root / "keep")
    assert counts(harvest(catalog, root, exclude=["cache/*", "*.tmp"], allow_empty=True)) == (0, 0, 1, 0)
    assert set(in_catalog(catalog)) == {"cache/b", "c.tmp"}
    assert counts(harvest(catalog, root, include=["cache/*"], allow_empty=True)) == (0, 0, 1, 0)
    assert_same(catalog, root)


def test_two_writers_take_parts_of_one_source_into_one_bucket(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"lib/a", b"lib/b", b"share/c", b"d"])
    harvest(catalog, root, writer="one", include=["lib/*"])
    harvest(Catalog(catalog.store), root, writer="two", exclude=["lib/*"])
    assert_same(catalog, root)
    assert set(catalog.snapshot().cut.heads) == {"one", "two"}
    assert catalog.snapshot().scan("buckets").to_arrow().num_rows == 1


def test_a_newer_version_of_another_writer_survives_a_delete(catalog: Catalog) -> None:
    first = harvest(catalog, ListSource([("a", "1"), ("b", "1"), ("c", "1")]))
    key = {"owner": first.owner, "bucket_id": first.bucket_id, "name": "b"}

    def meanwhile() -> None:
        with Catalog(catalog.store).writer("other") as other, other.transaction() as tx:
            tx.put("objects", {**key, "content_length": 77})

    result = harvest(catalog, ListSource([("a", "1"), meanwhile, ("c", "1")]))
    assert result.deleted == 1
    row = catalog.snapshot().get("objects", **key)
    assert row is not None and row["content_length"] == 77


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [*HOSTILE, b"bad\xff"])
    catalog = Catalog(tmp_path / "catalog")
    result = harvest(catalog, root, dry_run=True)
    assert (result.created, result.errors, result.transactions) == (len(HOSTILE), 1, ())
    assert not (tmp_path / "catalog").exists()
    real = harvest(catalog, root)
    assert (real.bucket_id, real.created) == (result.bucket_id, result.created)
    (root / "a0").unlink()
    before = catalog.snapshot().version
    assert harvest(catalog, root, dry_run=True).deleted == 1
    assert catalog.snapshot().version == before


def test_errors_are_listed_and_go_when_they_are_over(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"ok", b"bad\xff", b"dir\xff/x", b"worse\xff"])
    assert harvest(catalog, root).errors == 3
    assert errors(catalog) == [(r"bad\xff", "NOT_UTF8"), (r"dir\xff/", "NOT_UTF8"), (r"worse\xff", "NOT_UTF8")]
    assert harvest(catalog, root).transactions == ()
    os.unlink(os.fsencode(root) + b"/bad\xff")
    assert len(harvest(catalog, root).transactions) == 1
    assert errors(catalog) == [(r"dir\xff/", "NOT_UTF8"), (r"worse\xff", "NOT_UTF8")]
    shutil.rmtree(os.fsencode(root) + b"/dir\xff")
    assert harvest(catalog, root, include=["w*"]).errors == 1
    assert len(errors(catalog)) == 2, "what is out of scope is left alone"
    harvest(catalog, root)
    assert errors(catalog) == [(r"worse\xff", "NOT_UTF8")]


def test_what_cannot_be_read_any_more_is_not_deleted(catalog: Catalog) -> None:
    with open_folder() as folder:
        root = make_tree(folder / "tree", [b"a", b"b/c", b"b/d/e", b"b0", b"z"])
        harvest(catalog, root)
        (root / "b0").unlink()
        with locked(root / "b"):
            assert counts(harvest(catalog, root)) == (0, 0, 1, 2)
        assert set(in_catalog(catalog)) == {"a", "b/c", "b/d/e", "z"}
        assert errors(catalog) == [("b/", "EACCES")]
        (root / "b" / "c").unlink()
        assert counts(harvest(catalog, root)) == (0, 0, 1, 3)
        assert_same(catalog, root)
        assert errors(catalog) == []


def test_one_entry_that_cannot_be_read_keeps_its_row(catalog: Catalog) -> None:
    harvest(catalog, ListSource([("a", "1"), ("b", "1"), ("b/x", "1"), ("ba", "1"), ("z", "1")]))
    unreadable = EntryError(b"b", "EIO", "Input/output error")
    assert counts(harvest(catalog, ListSource([unreadable, ("z", "1")]))) == (0, 0, 3, 1)
    assert set(in_catalog(catalog)) == {"b", "z"}


def test_a_link_whose_target_cannot_be_said_is_not_shown_with_the_old_one(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a"])
    (root / "link").symlink_to("a")
    harvest(catalog, root)
    (root / "link").unlink()
    os.symlink(b"\xff", os.fsencode(root / "link"))
    assert counts(harvest(catalog, root)) == (0, 0, 1, 1)
    assert errors(catalog) == [("link", "TARGET_NOT_UTF8")]


@pytest.mark.parametrize("below", ["lake", "lake/", "lake/w1", "link"])
def test_the_catalog_and_what_lies_in_it_is_no_source(tmp_path: Path, below: str) -> None:
    catalog = Catalog(tmp_path / "lake")
    (tmp_path / "lakes").mkdir()
    (tmp_path / "link").symlink_to("lake")
    harvest(catalog, tmp_path / "lakes", writer="w1", allow_empty=True)
    what = "a part of the catalog" if below == "lake/w1" else "the catalog itself"
    with pytest.raises(InvalidOption, match=f"The source .* is {what}"):
        harvest(catalog, f"{tmp_path}/{below}")


def test_the_catalog_below_its_own_source_is_left_out(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a"])
    catalog = Catalog(root / "catalog")
    harvest(catalog, root)
    assert set(in_catalog(catalog)) == {"a"}
    assert harvest(catalog, root).transactions == ()


def test_a_bucket_that_is_not_the_sources_is_refused(catalog: Catalog, tmp_path: Path) -> None:
    one, two = make_tree(tmp_path / "one", [b"a"]), make_tree(tmp_path / "two", [b"b"])
    first = harvest(catalog, one, bucket="pets")
    with pytest.raises(InvalidOption, match=r"'pets' holds an inventory of 'file://.*/one'"):
        harvest(catalog, two, bucket="pets")
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": first.owner, "name": "mine"})
    with pytest.raises(InvalidOption, match="'mine' holds objects of its own"):
        harvest(catalog, two, bucket="mine")
    assert_same(catalog, one)


def test_a_directory_stays_the_same_where_its_machine_is_called_otherwise(catalog: Catalog) -> None:
    class Moved(ListSource):
        url = "file://there/data"

    class Source(ListSource):
        url = "file://here/data"

    first = harvest(catalog, Source([("a", "1")]), bucket="b", owner=str(uuid.UUID(int=5)))
    second = harvest(catalog, Moved([("a", "1")]), bucket="b", owner=str(uuid.UUID(int=5)))
    assert (second.bucket_id, counts(second), len(second.transactions)) == (first.bucket_id, (0, 0, 0, 1), 1)
    (bucket,) = catalog.snapshot().scan("buckets").to_arrow().to_pylist()
    assert (bucket["id"], bucket["source"]) == (first.bucket_id, "file://there/data")


def test_owner_bucket_and_writer_can_be_given(catalog: Catalog, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a"])
    owner = str(uuid.UUID(int=7))
    result = harvest(catalog, root, owner=owner, bucket="cats", writer="me", database="pets")
    assert (result.owner, result.bucket, result.writer, result.database) == (owner, "cats", "me", "pets")
    assert list(catalog.snapshot(database="pets").cut.heads) == ["me"]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"owner": "somebody"}, InvalidOption),
        ({"bucket": ""}, InvalidName),
        ({"bucket": "x" * 1025}, InvalidName),
        ({"bucket": "\ud800"}, InvalidName),
        ({"writer": "../up"}, InvalidName),
        ({"database": "a/b"}, InvalidName),
        ({"include": ["[z-a]"]}, InvalidOption),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_a_wrong_option_is_an_error_before_anything_is_written(
    catalog: Catalog, tmp_path: Path, options: dict[str, Any], error: type[Exception], dry_run: bool
) -> None:
    with pytest.raises(error):
        harvest(catalog, make_tree(tmp_path / "tree", [b"a"]), dry_run=dry_run, **options)
    assert list(catalog.store.list("")) == []


def test_a_source_of_an_unknown_kind_says_so(catalog: Catalog) -> None:
    with pytest.raises(UnsupportedStore, match="nonsense:// is unknown"):
        harvest(catalog, "nonsense://bucket/prefix")


def test_a_directory_takes_neither_options_nor_has_it_tags(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match="takes no source options"):
        harvest(catalog, tmp_path, source_options={"key": "k"})
    for asked in ({"tags": True}, {"metadata": True}):
        with pytest.raises(InvalidOption, match="no metadata or tags"):
            harvest(catalog, tmp_path, **asked)
        with pytest.raises(InvalidOption, match="open already"):
            harvest(catalog, ListSource([]), **asked)


def test_the_default_writer_is_stable_and_another_for_each_source(tmp_path: Path) -> None:
    one, two = open_source(tmp_path / "one"), open_source(tmp_path / "two")
    assert default_writer(one) == default_writer(open_source(one.url)) != default_writer(two)
    assert default_writer(one).startswith("harvest-")


def test_progress_tells_what_is_done_so_far(catalog: Catalog) -> None:
    told: list[Harvested] = []
    result = harvest(catalog, ListSource([(f"n{at:02}", "1") for at in range(20)], batch=5), progress=told.append, chunk_events=5)
    assert [state.entries for state in told] == [5, 10, 15, 20, 20]
    assert told[-1].created == result.created == 20
    assert len(result.transactions) == 4


def test_chunks_are_transactions_that_name_their_source(catalog: Catalog) -> None:
    harvest(catalog, ListSource([(f"n{at:02}", "1") for at in range(20)]), chunk_events=8)
    log = catalog.snapshot().scan("log").to_arrow().to_pylist()
    assert [row["events"] for row in log] == [9, 8, 4]
    assert {row["operation"] for row in log} == {"harvest"}
    assert dict(log[0]["metadata"]) == {"bucket": "bucket", "source": "list://here/bucket"}


def test_a_source_that_breaks_off_deletes_nothing_behind_that(catalog: Catalog) -> None:
    names = [f"n{at:02}" for at in range(20)]
    harvest(catalog, ListSource([(name, "1") for name in names]))

    def breaks() -> None:
        raise ConnectionError("the source is gone")

    with pytest.raises(ConnectionError):
        harvest(catalog, ListSource([("n03", "1"), ("n05", "1"), breaks, ("n09", "1")]), chunk_events=1)
    gone = {row["name"] for row in catalog.snapshot().scan("deleted_objects").to_arrow().to_pylist()}
    assert gone == {"n00", "n01", "n02", "n04"}


def test_a_second_run_asks_for_nothing_but_reads(tmp_path: Path) -> None:
    store = Counting(MemoryStore())
    root = make_tree(tmp_path / "tree", [b"f%04d" % at for at in range(500)])
    harvest(Catalog(store), root, chunk_events=100, checkpoint_events=1)
    store.reset()
    assert harvest(Catalog(store), root).unchanged == 500
    assert store.requests["put"] == store.requests["delete"] == 0


def test_who_interrupts_a_harvest_does_not_wait_for_a_store_that_is_away(tmp_path: Path) -> None:
    """Without the end that an interrupt makes, the commit under way is tried again for the commit delay."""
    put_again = threading.Event()

    class Away(Wrapped):
        def put(self, name: str, data: bytes) -> None:
            if self.tries:
                put_again.set()
            self.tries += 1
            raise OutcomeUnknown(f"The response to putting {name!r} was lost.", next_step="Put it again.")

        tries = 0

    def interrupt(state: Harvested) -> None:
        if state.entries == 1:
            assert put_again.wait(20)
            raise KeyboardInterrupt

    source = ListSource([("a", "1"), ("b", "2"), ("c", "3")])
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        harvest(Catalog(Away(MemoryStore())), source, chunk_events=1, progress=interrupt)
    assert time.monotonic() - begun < 60


def test_a_path_may_be_bytes_or_give_bytes(catalog: Catalog, tmp_path: Path) -> None:
    class AsBytes(os.PathLike[bytes]):
        def __fspath__(self) -> bytes:
            return os.fsencode(tmp_path) + b"/tree"

    root = make_tree(tmp_path / "tree", [b"a", b"b/c"])
    assert harvest(catalog, root).created == 2
    for path in (os.fsencode(root), AsBytes(), str(root)):
        assert counts(harvest(catalog, path)) == (0, 0, 0, 2)
    make_tree(tmp_path / "other", [b"x"]).rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    assert harvest(catalog, os.fsencode(tmp_path) + b"/\xff", bucket="b").created == 1


@pytest.mark.parametrize("source", [None, 7, object(), ["a"], "a\0b", b"a\0b"])
def test_what_names_no_source_is_refused(catalog: Catalog, source: Any) -> None:
    with pytest.raises(InvalidOption, match="names no source"):
        harvest(catalog, source)
    with pytest.raises(InvalidOption, match="is neither a path nor a url"):
        harvest(catalog, b"s3:/bucket")
