"""What orphan deletion takes for data of a place where files of somebody else's lie too."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.maintain.gc.data import DataPlace, Deleting
from bucketcatalog.store import LocalStore, ObjectInfo

from ....kit.collecting import URL, an_id, thing
from ....kit.world import BUCKET, OWNER, messages, proto

FILES = proto(
    """message File {
      option (table) = {name: "iox.file" key: "chunk" data_reference: "path"};
      string chunk = 1;
      optional string path = 2;
    }"""
)
MIXED = """message Part {
  option (table) = {name: "c.part" key: "id" data_reference: "crate" data_reference: "number" data_reference: "count"};
  uint64 id = 1; optional string crate = 2; optional int64 number = 3; optional uint64 count = 4; }"""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    made = Catalog(tmp_path / "lake")
    made.register(messages(FILES)["File"])
    made.register(messages(proto(MIXED))["Part"])
    return made


def commit(catalog: Catalog, table: str, *rows: dict[str, Any]) -> None:
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put(table, list(rows))


def lay(place: Path, *names: str) -> None:
    """Files two days old."""
    for name in names:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"x")
        os.utime(place / name, (time.time() - 2 * 86_400,) * 2)


def deleted(catalog: Catalog, url: str) -> list[str]:
    return sorted(found.name for found in catalog.orphans(data_url=url, dry_run=False, writer="maintainer-1") if found.deleted)


def left(place: Path) -> list[str]:
    return sorted(path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file())


def test_text_that_stands_alone_is_data_only_where_it_is_like_what_rows_name(catalog: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "data"
    live = ["day=1/part-1.parquet", f"{an_id('a')}/x.bin"]
    commit(catalog, "iox.file", *({"chunk": name, "path": name} for name in live))
    orphaned = ["day=1/part-2.parquet", "day=20/part-1.parquet", f"{an_id('b')}/anything.bin"]
    others = [
        "README",
        "thesis.parquet",
        "day=1/notes.txt",
        "day=1/deep/part.parquet",
        "day=1/part",
        "bob/x.bin",
        "night=1/p.parquet",
    ]
    lay(place, *live, *orphaned, *others)
    assert deleted(catalog, f"{place}/{{path}}") == sorted(orphaned)
    assert left(place) == sorted(live + others)


def test_where_no_row_names_anything_nothing_is_an_orphan(catalog: Catalog, tmp_path: Path) -> None:
    commit(catalog, "iox.file", {"chunk": "none"})
    lay(tmp_path / "data", "thesis.pdf", "deep/x")
    assert deleted(catalog, f"{tmp_path}/data/{{path}}") == []


def test_a_template_is_matched_whole(catalog: Catalog, tmp_path: Path) -> None:
    place = tmp_path / "data"
    commit(catalog, "iox.file", {"chunk": "a", "path": "a"})
    others = ["p-b.parquet.bak", "x/p-b.parquet", "p-.parquet", "p-b_parquet", "p-b.parquet/deep", "P-b.parquet"]
    lay(place, "p-a.parquet", "p-b2.parquet", *others)
    assert deleted(catalog, f"{place}/p-{{path}}.parquet") == ["p-b2.parquet"]
    assert left(place) == sorted(["p-a.parquet", *others])


def test_uuids_numbers_and_text_each_have_their_own_shape(catalog: Catalog, tmp_path: Path) -> None:
    with catalog.writer("w") as writer, writer.transaction() as tx:
        tx.put("objects", thing("named"))
    folder, orphan = f"{OWNER}/{BUCKET}", an_id("orphan")
    others = [
        f"{folder}/{orphan}x",
        f"{folder}/{an_id('other')}/x",
        f"x/{folder}/{orphan}",
        f"{folder}/{orphan.upper()}",
        f"{folder}/photo.jpg",
    ]
    lay(tmp_path / "data", f"{folder}/{orphan}", f"{folder}/{an_id('named')}", *others)
    assert deleted(catalog, f"{tmp_path}/data/{URL}") == [f"{folder}/{orphan}"]

    commit(catalog, "c.part", {"id": 1, "crate": "a/b", "number": -1, "count": 5})
    mixed = ["a%2Fb/-7/0", "c.d/0/12"]
    others = ["a b/1/1", "a%2fb/1/1", "%61/1/1", "a/01/1", "a/-0/1", "a/1/-1", "a/1e3/1", "a%2/1/1", f"a/{'9' * 20}/1"]
    lay(tmp_path / "parts", "a%2Fb/-1/5", *mixed, *others)
    assert deleted(catalog, f"{tmp_path}/parts/{{crate}}/{{number}}/{{count}}") == mixed


@pytest.mark.parametrize("link", ["day=2", "day=1/linked", "linked.parquet"])
def test_links_at_a_place_for_data_lead_to_no_orphans(catalog: Catalog, tmp_path: Path, link: str) -> None:
    place, outside = tmp_path / "data", tmp_path / "outside"
    commit(catalog, "iox.file", {"chunk": "a", "path": "day=1/a.parquet"}, {"chunk": "b", "path": "b.parquet"})
    lay(place, "day=1/a.parquet", "day=1/orphan.parquet")
    lay(outside, "thesis.parquet", "deep/x.parquet")
    (place / link).symlink_to(outside / "thesis.parquet" if link.endswith(".parquet") else outside)
    assert deleted(catalog, f"{place}/{{path}}") == ["day=1/orphan.parquet"]
    assert left(outside) == ["deep/x.parquet", "thesis.parquet"] and (place / link).is_symlink()


def test_a_row_that_names_what_lies_behind_a_link_frees_nothing(catalog: Catalog, tmp_path: Path) -> None:
    place, outside = tmp_path / "data", tmp_path / "outside"
    lay(outside, "x")
    place.mkdir()
    (place / "p").symlink_to(outside)
    deleting = Deleting(DataPlace.open(f"{place}/{{path}}", None, catalog.store))
    told = deleting.delete(pa.table({"path": ["p/x"]}))
    assert not told.gone.any() and not told.is_left.any() and "is a symbolic link" in told.problems[0]
    assert left(outside) == ["x"]


def test_what_looks_like_a_log_within_folders_for_data_is_no_orphan(catalog: Catalog, tmp_path: Path) -> None:
    commit(catalog, "iox.file", {"chunk": "a", "path": "w/default/data/a"})
    logged = f"w/default/data/clone/v/default/transactions/{1:020}/{an_id('t')}.txn"
    lay(tmp_path / "lake", "w/default/data/a", "w/default/data/orphan", logged)
    found = list(catalog.orphans(dry_run=False, writer="maintainer-1"))
    assert [orphan.name for orphan in found] == ["w/default/data/orphan"] and (tmp_path / "lake" / logged).exists()


class Rewritten(LocalStore):
    """Somebody puts an object anew once it has been listed."""

    def head(self, name: str) -> ObjectInfo:
        self.put(name, b"y")
        return super().head(name)


def test_what_was_put_anew_since_it_was_listed_is_left(catalog: Catalog, tmp_path: Path) -> None:
    commit(catalog, "iox.file", {"chunk": "a", "path": "w/default/data/a"})
    lay(tmp_path / "lake", "w/default/data/orphan")
    again = Catalog(Rewritten(tmp_path / "lake"))
    assert list(again.orphans(dry_run=False, writer="maintainer-1")) == []
    assert (tmp_path / "lake/w/default/data/orphan").read_bytes() == b"y"


def test_other_files_at_a_place_of_data_are_taken_for_orphans_once_a_row_names_one_like_them(
    catalog: Catalog, tmp_path: Path
) -> None:
    place = tmp_path / "data"
    commit(catalog, "iox.file", {"chunk": "a", "path": "day=1/part-1.parquet"})
    lay(place, "day=1/part-1.parquet", "thesis.docx")
    assert deleted(catalog, f"{place}/{{path}}") == []
    with catalog.writer("mallory") as writer, writer.transaction() as tx:
        tx.put("iox.file", [{"chunk": "m", "path": "x.docx"}])
    assert deleted(catalog, f"{place}/{{path}}") == ["thesis.docx"]
