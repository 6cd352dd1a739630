"""A harvest by workers: the same rows as without them, in one commit, whatever becomes of their work."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bucketcatalog import Catalog, clock
from bucketcatalog.errors import InvalidOption, InvalidRows, SourceNotFound, StoreUnavailable
from bucketcatalog.harvest import EntryError, Harvested, harvest, rounds, sections
from bucketcatalog.harvest.ranges import ALL_NAMES, NameRange
from bucketcatalog.harvest.scope import Scope
from bucketcatalog.harvest.sources.local import LocalSource
from bucketcatalog.harvest.sources.s3 import S3Source
from bucketcatalog.store.memory import MemoryStore

from ...kit.harvested import Workers, counted, everything
from ...kit.trees import HOSTILE, assert_same, locked, make_tree, open_folder, touch
from .inventories import ListInventory, listed, version
from .sources import ListSource

NAMES = [*HOSTILE, b"bad\xff/x", b"bad\xff\xfe", *(b"big/%03d" % at for at in range(60)), *(b"d%d/e/f" % at for at in range(9))]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sections of few entries, and files of few events."""
    monkeypatch.setattr(rounds, "FIRST_ENTRIES", 7)
    monkeypatch.setattr(rounds, "GROWTH", 2)
    monkeypatch.setattr(sections, "CARRIED_EVENTS", 3)
    monkeypatch.setattr(sections, "PORTION_EVENTS", 5)


class Pair:
    """Two catalogs of one source: harvested by workers, and without."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.divided, self.alone = Catalog(self.store), Catalog(MemoryStore())
        self.workers = Workers(self.store)

    def harvest(self, source: Any, **options: Any) -> Harvested:
        """Both; all that they tell is the same."""
        self.workers.rounds.clear()
        result = harvest(self.divided, source, workers=self.workers, **options)
        assert counted(result) == counted(harvest(self.alone, source, **options))
        assert everything(self.divided) == everything(self.alone)
        return result


@pytest.fixture
def both() -> Pair:
    return Pair()


def small_batches(root: Path) -> LocalSource:
    return LocalSource(root, batch_rows=4)


def test_a_tree_of_odd_names_is_harvested_row_for_row_in_one_commit(both: Pair, small: None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    (root / "link").symlink_to("big")
    (root / "loop").symlink_to("loop")
    os.mkfifo(root / "pipe")
    result = both.harvest(small_batches(root), bucket="tree")

    assert_same(both.divided, root)
    assert len(result.transactions) == 1 and result.errors == 2
    assert len(both.workers.rounds) > 2 and len(both.workers.rounds[0]) > 2
    log = both.divided.snapshot().scan("log").to_arrow().to_pylist()
    assert [row["operation"] for row in log] == ["harvest"]


def test_another_run_commits_what_changed_and_the_next_one_nothing(both: Pair, small: None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    both.harvest(small_batches(root))
    for at in range(0, 60, 5):
        touch(root / "big" / f"{at:03}", "other")
        (root / "big" / f"{at + 1:03}").unlink()
    (root / "d3" / "e" / "f").unlink()
    make_tree(root, [b"0", b"big/zz", b"new/a/b", b"zzz"])
    result = both.harvest(small_batches(root))

    assert (result.created, result.overwritten, result.deleted) == (4, 12, 13) and len(result.transactions) == 1
    before = {info.name for info in both.store.list("")}
    again = both.harvest(small_batches(root))
    assert (again.changes, again.transactions) == (0, ())
    assert {info.name for info in both.store.list("")} == before


def test_few_changes_are_carried_by_the_transaction_and_make_no_files(both: Pair, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    both.harvest(small_batches(root))
    touch(root / "a.txt", "other")
    both.harvest(small_batches(root))

    assert not [info.name for info in both.store.list("") if "/segments/" in info.name]


def test_only_segments_of_the_outcomes_that_came_back_are_named(both: Pair, small: None, tmp_path: Path) -> None:
    both.harvest(small_batches(make_tree(tmp_path / "tree", NAMES)))
    put = {Path(info.name).stem for info in both.store.list("") if "/segments/" in info.name}
    (transaction,) = both.divided.snapshot().view.tail

    assert 0 < len(transaction.segments) == len(put) // 2


def test_what_cannot_be_read_is_reported_and_spared_wherever_the_source_is_divided(small: None) -> None:
    with open_folder() as folder:
        root = make_tree(folder / "tree", [b"%c/%c/%02d" % (65 + at % 3, 97 + at % 4, at) for at in range(60)])
        both = Pair()
        both.harvest(small_batches(root))
        make_tree(root, [b"A/new"])
        (root / "B" / "a" / "04").unlink()
        with locked(root / "A" / "a", root / "C"):
            result = both.harvest(small_batches(root))
            assert (result.errors, result.created, result.deleted) == (2, 1, 1)
            assert both.harvest(small_batches(root)).transactions == ()
        result = both.harvest(small_batches(root))
        assert (result.errors, result.changes, len(result.transactions)) == (0, 0, 1)


def test_globs_and_a_dry_run_hold_for_workers_too(both: Pair, small: None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    told = harvest(both.divided, small_batches(root), workers=both.workers, dry_run=True)
    assert (told.created, told.transactions, list(both.store.list(""))) == (told.entries, (), [])
    result = both.harvest(small_batches(root), include=["big/*", "d*"], exclude=["*5"])
    assert result.created == 54 + 9
    assert both.harvest(small_batches(root), exclude=["big/*"]).deleted == 0


def test_a_source_without_anything_is_refused_before_anything_is_committed(both: Pair, small: None, tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", NAMES)
    both.harvest(small_batches(root), bucket="tree")
    empty = make_tree(tmp_path / "empty", [])
    root.rename(tmp_path / "away")
    empty.rename(root)
    with pytest.raises(SourceNotFound, match="Nothing at all is found"):
        harvest(both.divided, small_batches(root), bucket="tree", workers=both.workers)
    assert everything(both.divided) == everything(both.alone)
    result = both.harvest(small_batches(root), bucket="tree", allow_empty=True)
    assert result.deleted == result.changes > 60
    root.rmdir()
    with pytest.raises(SourceNotFound, match="is not a directory that can be listed"):
        harvest(both.divided, small_batches(root), bucket="tree", workers=both.workers)


def test_more_changes_than_a_transaction_holds_are_refused_by_name(
    both: Pair, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "LAST_SEQUENCE", 50)
    with pytest.raises(InvalidRows, match=r"more changes than one transaction can hold.*include="):
        harvest(both.divided, make_tree(tmp_path / "tree", NAMES), workers=both.workers)
    assert not both.divided.databases()


def test_a_source_that_cannot_be_divided_is_refused(both: Pair) -> None:
    with pytest.raises(InvalidOption, match=r"cannot be divided.*without them"):
        harvest(both.divided, ListSource([("a", "1")]), workers=both.workers)


def test_a_section_that_fails_commits_nothing(both: Pair, small: None, tmp_path: Path) -> None:
    class Failing(Workers):
        def run(self, task: Any, sections: Any) -> Any:
            yield from super().run(task, sections)[:-1]
            if len(self.rounds) > 1:
                raise StoreUnavailable("the store is away")

    root = make_tree(tmp_path / "tree", NAMES)
    with pytest.raises(StoreUnavailable):
        harvest(both.divided, small_batches(root), workers=Failing(both.store))
    assert not both.divided.databases()
    both.harvest(small_batches(root))


def test_another_machine_with_another_directory_of_that_path_lists_nothing(
    both: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Elsewhere(Workers):
        meanwhile = staticmethod(lambda: None)

        def run(self, task: Any, sections: Any) -> Any:
            packed = pickle.dumps(task)
            monkeypatch.setattr(clock, "host_name", lambda: "executor-1")
            self.meanwhile()
            copy = pickle.loads(pickle.dumps(pickle.loads(packed)))
            return [copy.run(section, self.store) for section in sections]

    root = make_tree(tmp_path / "tree", [b"a", b"b"])
    assert harvest(both.divided, root, workers=Elsewhere(both.store), writer="w").created == 2
    monkeypatch.undo()

    class Unmounted(Elsewhere):
        @staticmethod
        def meanwhile() -> None:
            root.rename(tmp_path / "mounted-elsewhere")
            make_tree(root, [b"other"])

    with pytest.raises(SourceNotFound, match=r"on executor-1 is another directory than on .*local\[\*\]"):
        harvest(both.divided, root, workers=Unmounted(both.store), writer="w")
    assert [row["name"] for row in everything(both.divided)["objects"]] == ["a", "b"]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tree(tmp_path_factory.mktemp("ranges") / "tree", NAMES)


POINTS = st.one_of(
    st.sampled_from(NAMES), st.sampled_from([name.partition(b"/")[0] + b"/" for name in NAMES]), st.binary(max_size=4)
)


@given(st.lists(POINTS.filter(bool), max_size=6))
def test_ranges_of_a_tree_together_are_the_tree(tree: Path, points: list[bytes]) -> None:
    errors: list[EntryError] = []
    source = LocalSource(tree, batch_rows=3)
    found = [name for part in ALL_NAMES.divided(points) for name in names_in(source, part, errors)]

    assert found == list(names_in(source, ALL_NAMES, []))
    assert {error.raw for error in errors} == {b"bad\xff/", b"bad\xff\xfe"}


def names_in(source: LocalSource | S3Source, within: NameRange, errors: list[EntryError]) -> Iterator[str]:
    for batch in source.entries(Scope(), errors.append, within):
        for name in batch.column("name").to_pylist():
            assert within.holds(name.encode())
            yield name


@pytest.mark.parametrize(
    ("first", "last", "rest"),
    [
        (b"a/b/1", b"a/b/2", [(b"a/b/2", b"a/b0"), (b"a/b0", b"z")]),
        (b"a/b/1", b"a/b/c/2", [(b"a/b/c/2", b"a/b0"), (b"a/b0", b"z")]),
        (b"a/b1", b"a/c/2", [(b"a/c/2", b"a0"), (b"a0", b"z")]),
        (b"a/1", b"b/1", [(b"b/1", b"z")]),
        (b"1", b"2", [(b"2", b"z")]),
        (b"y/1", b"y/2", [(b"y/2", b"y0"), (b"y0", b"z")]),
        (b"z/1", b"z/2", [(b"z/2", b"z0"), (b"z0", None)]),
    ],
)
def test_what_is_left_of_the_directory_that_has_proven_large_is_a_range_of_its_own(
    first: bytes, last: bytes, rest: list[tuple[bytes, bytes | None]]
) -> None:
    within = NameRange(b"", rest[-1][1])
    assert within.behind(first, last) == [NameRange(*ends) for ends in rest]


def test_one_directory_with_nearly_everything_is_shared_by_all_workers(
    both: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "FIRST_ENTRIES", 100)
    root = make_tree(tmp_path / "tree", [b"large/%03d" % at for at in range(900)] + [b"p%02d/x" % at for at in range(40)])
    both.harvest(small_batches(root))
    _, second = both.workers.rounds
    assert sum(section.within.enters(b"large/") for section in second) == 3


@given(st.integers(2, 9), st.sampled_from([b"", b"big/020", b"d4/", b"zz"]))
def test_a_tree_is_divided_within_the_range_and_about_as_often_as_asked(tree: Path, parts: int, after: bytes) -> None:
    points = LocalSource(tree).divide(NameRange(after, b"zz"), parts)

    assert points == sorted(set(points)) and all(after < point < b"zz" for point in points)
    assert len(points) == (0 if after == b"zz" else parts - 1)


KEYS = st.lists(st.text(alphabet="ab/\u00e9 \U0010ffff", min_size=1, max_size=5), unique=True, max_size=40)


@given(KEYS, st.integers(1, 9), st.data())
def test_ranges_of_a_bucket_together_are_the_bucket(keys: list[str], parts: int, data: st.DataObject) -> None:
    ordered = sorted(keys, key=str.encode)
    source = S3Source(ListInventory([listed(f"at/{key}") for key in ordered], folder="at/", page=2))
    after = data.draw(st.sampled_from([b"", *(key.encode() for key in keys)]))
    within = NameRange(after, data.draw(st.sampled_from([None, *(key.encode() for key in keys if key.encode() > after)])))
    points = source.divide(within, parts)

    assert points == sorted(set(points)) and all(within.holds(point) for point in points) and len(points) <= max(parts - 1, 0)
    found = [name for part in within.divided(points) for name in names_in(source, part, [])]
    assert found == [key for key in ordered if within.holds(key.encode())]


@pytest.mark.parametrize("prefix", ["", "a/very/long/way/down/to/where/everything/lies/"])
def test_a_flat_bucket_is_divided_between_its_keys_with_few_requests(prefix: str) -> None:
    keys = [f"{prefix}IMG_2024_{at:06}.jpg" for at in range(3_000)]
    inventory = ListInventory([listed(key) for key in keys], page=1_000)
    points = S3Source(inventory).divide(NameRange(keys[500].encode()), 8)
    sizes = [sum(part.holds(key.encode()) for key in keys) for part in NameRange(keys[500].encode()).divided(points)]

    assert len(sizes) == 8 and max(sizes) < 800 and len(inventory.asked) < 100


def test_a_bucket_of_versions_is_harvested_row_for_row(both: Pair, small: None) -> None:
    def source(found: list[dict[str, Any]]) -> S3Source:
        return S3Source(ListInventory(found, status="Enabled", page=7))

    first = [version(f"k{at // 4:03}", f"v{at}", 9 - at % 4, latest=at % 4 == 0, marker=at % 12 == 0) for at in range(400)]
    result = both.harvest(source(first))
    assert (result.versions, len(result.transactions)) == (400, 1) and 0 < result.created < 100
    later = [one for at, one in enumerate(first) if at % 7 and not 100 < at < 160]
    result = both.harvest(source(later))
    assert result.version_changes > 50 and result.deleted and len(both.workers.rounds) > 1
    assert both.harvest(source(later)).transactions == ()
