"""A link to a directory below a catalog's folder: it stops by default, and who reads past damage, verifies or repairs goes on beside it."""

from __future__ import annotations

import os
import pickle
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bucketcatalog import AccessDenied, Catalog, CatalogNotFound, CatalogWarning
from bucketcatalog.cli import run
from bucketcatalog.maintain.repair import Repair
from bucketcatalog.store.obstacles import PastObstacles

from ...kit.world import bucket

IN_EVERY_WAY = ["x/linked", "x/default", "x/default/transactions", "x/default/transactions/linked", "linked"]
"""Below the prefix of the writer x; the last is beside all writers."""
LINKS = [*IN_EVERY_WAY, "x/default/newest/linked", "x/default/segments", "x/default/data/linked"]
"""Also where not everybody looks: among the checkpoints of a plain writer, and where nobody who reads lists anything."""


@pytest.fixture
def place() -> Iterator[Path]:
    """A catalog of two writers that anybody may read."""
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        path = Path(directory) / "catalog"
        for name in ("w", "x"):
            with Catalog(path).writer(name) as writer, writer.transaction() as tx:
                tx.put("buckets", bucket(f"of {name}"))
        yield path


def link(place: Path, name: str) -> Path:
    """Puts a link to a directory under a name; what was there lies behind it."""
    path, outside = place / name, place.parent / "outside"
    if path.exists():
        path.rename(outside)
    else:
        outside.mkdir()
        path.parent.mkdir(parents=True, exist_ok=True)
        (outside / "theirs").write_bytes(b"theirs")
    path.symlink_to(outside)
    return path


def told(name: str) -> str:
    return f"{re.escape(repr(name))} in .* is a symbolic link"


def rows(catalog: Catalog, *, ignore_corruption: bool = True) -> set[str]:
    snapshot = catalog.snapshot(ignore_corruption=ignore_corruption)
    return set(snapshot.scan("buckets").to_arrow()["name"].to_pylist())


@pytest.mark.parametrize("name", IN_EVERY_WAY)
def test_by_default_a_link_stops_whoever_gets_to_it(place: Path, name: str) -> None:
    link(place, name)
    calls: list[Callable[[Catalog], object]] = [
        lambda c: rows(c, ignore_corruption=False),
        lambda c: c.changes(table="buckets"),
        lambda c: c.prune("7d"),
        lambda c: c.collect(),
        lambda c: c.tag("t"),
    ]
    for call in calls:
        with pytest.raises(AccessDenied, match="is a symbolic link") as caught:
            call(Catalog(place))
        assert str(place / name) in caught.value.message and caught.value.next_step.startswith("Remove the link")


@pytest.mark.parametrize("name", IN_EVERY_WAY)
def test_reading_past_damage_gives_everything_beside_a_link_and_names_it(place: Path, name: str) -> None:
    link(place, name)
    with pytest.warns(CatalogWarning, match=told(name)):
        snapshot = Catalog(place).snapshot(ignore_corruption=True)
    hidden = name in ("x/default", "x/default/transactions")
    found = set(snapshot.scan("buckets").to_arrow()["name"].to_pylist())
    assert found == ({"of w"} if hidden else {"of w", "of x"})
    if name == "x/linked":
        return  # it is in no listing of the database's timelines
    assert [(loss.file, loss.code) for loss in snapshot.missing] == [(name, "ACCESS_DENIED")]
    (row,) = snapshot.scan("damage").to_arrow().to_pylist()
    assert (row["file"], row["code"], row["table"]) == (name, "ACCESS_DENIED", None)
    assert "is a symbolic link" in row["message"]


def test_a_copy_in_another_process_reads_past_a_link_too(place: Path) -> None:
    """As executors do, which open the catalog anew."""
    link(place, "x/default/transactions")
    with pytest.warns(CatalogWarning):
        snapshot = Catalog(place).snapshot(ignore_corruption=True)
    files = pickle.loads(pickle.dumps(snapshot.files))
    assert isinstance(files.store, PastObstacles)
    assert [*files.timeline("x")] == [] and [loss.file for loss in files.on_damage.found] == ["x/default/transactions"]
    with pytest.warns(CatalogWarning):
        again = Catalog(place).snapshot(version=snapshot.version, database="default", ignore_corruption=True)
    assert [loss.file for loss in again.missing] == ["x/default/transactions"]


def test_what_others_have_read_is_found_by_its_name(place: Path) -> None:
    """Reading by name goes through a link, as it does for everybody: what a cut is said to have is in it."""
    catalog = Catalog(place)
    catalog.snapshot()
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("buckets", bucket("more"))
    link(place, "x/default/transactions")
    with pytest.warns(CatalogWarning, match=told("x/default/transactions")):
        assert rows(Catalog(place)) == {"of w", "of x", "more"}


def test_where_everything_is_behind_a_link_there_is_no_catalog_and_the_link_is_told(place: Path) -> None:
    for name in ("w", "x"):
        (place / name).rename(place.parent / name)
        (place / name).symlink_to(place.parent / name)
    with pytest.warns(CatalogWarning, match="is a symbolic link"), pytest.raises(CatalogNotFound):
        Catalog(place).snapshot(ignore_corruption=True)
    for call in (lambda: list(Catalog(place).verify()), lambda: Catalog(place).repair()):
        with pytest.raises(AccessDenied, match="is a symbolic link"):
            call()


@pytest.mark.parametrize("name", LINKS)
def test_verify_names_each_link_and_goes_on(place: Path, name: str) -> None:
    link(place, name)
    (place / "w" / "more").symlink_to(place.parent)
    (damaged,) = (place / "w/default/transactions").rglob("*.txn")
    damaged.write_bytes(b"spoilt")
    found = [(f.severity.value, f.code, f.file) for f in Catalog(place).verify()]
    assert ("error", "NOT_LISTED", name) in found and ("error", "NOT_LISTED", "w/more") in found
    assert ("error", "DAMAGED_TRANSACTION", damaged.relative_to(place).as_posix()) in found
    assert len(found) == len(set(found)) == 3
    (finding,) = (f for f in Catalog(place).verify() if f.file == name)
    assert "is a symbolic link" in finding.message and finding.remedy.startswith("Remove a link")


def test_a_link_is_named_once_though_several_databases_have_it_in_the_way(place: Path) -> None:
    with Catalog(place).writer("w", database="second") as writer, writer.transaction() as tx:
        tx.put("buckets", bucket("second"))
    link(place, "linked")
    assert [(f.code, f.file) for f in Catalog(place).verify()] == [("NOT_LISTED", "linked")]


def repaired(place: Path, **named: object) -> Repair:
    return Catalog(place).repair(dry_run=False, writer="maintainer-1", **named)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", LINKS)
def test_repair_lists_a_link_as_lost_and_sets_aside_what_is_bad_beside_it(place: Path, name: str) -> None:
    (bad,) = (place / "w/default/transactions").rglob("*.txn")
    bad.write_bytes(b"spoilt")
    path = link(place, name)
    made = repaired(place, set_aside=[bad.relative_to(place).as_posix()])
    assert [(action.what, action.done) for action in made.actions] == [("set aside", True)]
    assert [(f.code, f.file) for f in made.lost] == [("NOT_LISTED", name)]
    assert path.is_symlink()
    path.unlink()
    if (place.parent / "outside" / "theirs").exists():
        assert rows(Catalog(place), ignore_corruption=False) == {"of x"}


def test_repair_writes_no_checkpoint_of_what_it_cannot_see(place: Path) -> None:
    with Catalog(place).writer("compactor-1") as compactor:
        compactor.checkpoint(scope="all")
    (checkpoint,) = (place / "compactor-1").rglob("*.ckpt")
    checkpoint.write_bytes(b"spoilt")
    path = link(place, "x/default/transactions/linked")
    made = repaired(place)
    assert {action.what: action.done for action in made.actions} == {"drop": False, "checkpoint": False}
    assert all("x/default/transactions/linked" in action.obstacle for action in made.actions)
    assert [f.code for f in made.lost].count("NOT_LISTED") == 1
    assert len([*(place / "compactor-1").rglob("newest/*")]) == 1 and not [*(place / "maintainer-1").rglob("*.ckpt")]
    path.unlink()
    made = repaired(place)
    assert {action.what: action.done for action in made.actions} == {"drop": True, "checkpoint": True} and not made.lost
    assert rows(Catalog(place), ignore_corruption=False) == {"of w", "of x"}


def test_who_repairs_commits_nothing_where_its_own_timeline_cannot_be_listed(place: Path) -> None:
    with Catalog(place).writer("maintainer-1") as maintainer:
        maintainer.tag("t")
    (bad,) = (place / "x/default/transactions").rglob("*.txn")
    bad.write_bytes(b"spoilt")
    link(place, "maintainer-1/default/transactions/linked")
    name = bad.relative_to(place).as_posix()
    made = repaired(place, set_aside=[name])
    assert [(action.what, action.done) for action in made.actions] == [("set aside", False)]
    assert "maintainer-1/default/transactions/linked" in made.actions[0].obstacle
    assert len([*(place / "maintainer-1").rglob("*.txn")]) == 1


def test_commands_read_past_a_link_and_tell_it_once(place: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    link(place, "x/default/transactions")
    assert run(["ls", str(place)]) == 1
    assert "is a symbolic link" in capsys.readouterr().err
    for command in (["ls", place], ["export", place, "buckets", tmp_path / "out.parquet"]):
        assert run([str(argument) for argument in (*command, "--ignore-corruption")]) == 0
        out, err = capsys.readouterr()
        assert err.count("is a symbolic link") == 1, err
        assert command[0] == "export" or ("of w" in out and "of x" not in out)
    assert run(["verify", str(place)]) == 1
    out, err = capsys.readouterr()
    assert "error NOT_LISTED x/default/transactions: " in out and "1 error." in out


@pytest.mark.parametrize(
    ("closed", "code"), [("x/default/transactions/*/*.txn", "DAMAGED_TRANSACTION"), ("x/default/transactions", "NOT_LISTED")]
)
def test_what_may_not_be_read_or_listed_stops_by_its_name_and_is_read_past(place: Path, closed: str, code: str) -> None:
    """Whoever wrote it may close it to everybody else."""
    (bad,) = place.glob(closed)
    name = bad.relative_to(place).as_posix()
    bad.chmod(0)
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(AccessDenied, match=name):
            Catalog(place).snapshot()
        with pytest.warns(CatalogWarning, match=name):
            assert rows(Catalog(place)) == {"of w"}
        assert [(f.code, f.file) for f in Catalog(place).verify()] == [(code, name)]
    finally:
        os.seteuid(was)
        bad.chmod(0o755)
