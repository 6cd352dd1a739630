"""Names of several catalogs: a bucket is that of each that has one so called, and a catalog without it has no rows of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, InvalidOption, NotFound, UnknownTable
from bucketcatalog.federation import Federation

from ...kit.world import OTHER, OWNER

SHARED = {"north": "aaaaaaaa-0000-4000-8000-000000000001", "south": "aaaaaaaa-0000-4000-8000-000000000002"}
ALONE = "bbbbbbbb-0000-4000-8000-000000000001"
LARGE = 2**60 + 1


@pytest.fixture
def both(tmp_path: Path) -> Federation:
    """Each has a bucket ``photos`` under an id of its own, and the north alone ``logs``; an object of each was overwritten since."""
    for name, bucket in SHARED.items():
        catalog = Catalog(tmp_path / name)
        with catalog.writer("w") as w:
            with w.transaction() as tx:
                tx.put("buckets", {"owner": OWNER, "name": "photos", "id": bucket})
                rows = [("photos", "a/1", LARGE), ("photos", "b/1", 2)]
                if name == "north":
                    tx.put("buckets", {"owner": OTHER, "name": "logs", "id": ALONE})
                    rows.append(("logs", "a/2", 3))
                tx.put("objects", [{"bucket": b, "name": n, "content_length": size} for b, n, size in rows])
            with w.transaction() as tx:
                tx.put("objects", {"bucket": "photos", "name": "a/1", "content_length": 4})
    return Catalog({name: str(tmp_path / name) for name in SHARED})


def shown(rows: Any, *columns: str) -> list[tuple[Any, ...]]:
    table: pa.Table = rows.to_arrow().select(list(columns))
    return [tuple(row.values()) for row in table.to_pylist()]


def test_a_bucket_is_that_of_each_that_has_it(both: Federation) -> None:
    snapshot, columns = both.snapshot(), ["_catalog", "bucket", "name"]
    found = shown(snapshot.scan("objects", columns=columns, bucket="photos", prefix="a/"), *columns)
    assert found == [("north", "photos", "a/1"), ("south", "photos", "a/1")]
    assert shown(snapshot.scan("objects", columns=columns, bucket="logs"), *columns) == [("north", "logs", "a/2")]
    assert shown(snapshot.scan("objects", columns=columns, owner=OTHER), *columns) == [("north", "logs", "a/2")]
    told = shown(snapshot.scan("objects", columns=columns, where="bucket = 'photos' and name < 'b'"), *columns)
    assert told == found


def test_rows_are_looked_up_and_listed_by_the_name(both: Federation) -> None:
    snapshot = both.snapshot()
    row = snapshot.get("objects", bucket="logs", name="a/2")
    assert row is not None and row["content_length"] == 3
    page = snapshot.list("objects", bucket="logs", delimiter="/")
    assert list(page.groups) == ["a/"]
    assert list(snapshot.list("objects", bucket="photos", delimiter="/").groups) == ["a/", "b/"]
    with pytest.raises(InvalidOption, match="north and in south"):
        snapshot.get("objects", bucket="photos", name="b/1")


@pytest.mark.parametrize("method", ["changes", "diff"])
def test_what_has_changed_is_asked_for_by_the_name_and_with_what_was_before(both: Federation, method: str) -> None:
    columns = ["_catalog", "name", "_change_type", "_before"]
    since = {"start": '{"north": "w@0", "south": "w@0"}', "table": "objects"}
    found = getattr(both, method)(**since, columns=columns, bucket="photos", pre_images=["content_length"])
    assert found.schema.names == columns
    assert [(row[0], row[1], row[3]["content_length"]) for row in shown(found, *columns)] == [
        ("north", "a/1", LARGE),
        ("south", "a/1", LARGE),
    ]
    assert shown(getattr(both, method)(**since, bucket="photos", prefix="b/"), "name") == []
    assert {row[0] for row in shown(getattr(both, method)(columns=columns[:3], bucket="logs"), *columns[:3])} == {"north"}
    pandas = found.to_pandas()
    assert [before["content_length"] for before in pandas["_before"]] == [LARGE, LARGE]


def test_the_names_of_all_that_there_are_stand_in_at_most_one_error_of_five_and_one_that_ended_says_so(both: Federation) -> None:
    for member in both.members:
        with member.writer("w") as w, w.transaction() as tx:
            tx.put("buckets", [{"owner": OWNER, "name": f"a{n} of {member.url.rpartition('/')[2]}"} for n in range(6)])
    with pytest.raises(
        NotFound, match=r"is: 'a0 of north', 'a0 of south', 'a1 of north', 'a1 of south', 'a2 of north', [.]{3}[.]"
    ):
        both.snapshot().scan("objects", bucket="phtos")
    with both.members[1].writer("w") as w, w.transaction() as tx:
        tx.delete("buckets", {"owner": OWNER, "name": "a5 of south"})
    with pytest.raises(NotFound, match=r"'a5 of south'.*it has ended"):
        both.snapshot().scan("objects", bucket="a5 of south")


def test_a_name_that_none_has_is_an_error_and_so_is_one_of_several_owners(both: Federation) -> None:
    with both.members[1].writer("w") as w, w.transaction() as tx:
        tx.put("buckets", [{"owner": OWNER, "name": f"of south {n}"} for n in range(2)])
    for read in (both.snapshot().scan, both.snapshot().list):
        with pytest.raises(
            NotFound, match=r"'phtos'.*Next: Use the name of one that there is: 'photos', 'of south 0', 'logs', 'of south 1'[.]"
        ):
            read("objects", bucket="phtos")
    with pytest.raises(NotFound, match="'phtos'"):
        both.changes(bucket="phtos")
    with pytest.raises(UnknownTable):
        both.diff(table="things", bucket="photos")
    with both.members[1].writer("w") as w, w.transaction() as tx:
        tx.put("buckets", {"owner": OTHER, "name": "photos", "id": ALONE})
    with pytest.raises(InvalidOption, match=r"2 owners have a bucket 'photos'.*south"):
        both.snapshot().scan("objects", bucket="photos")
