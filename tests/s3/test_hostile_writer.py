"""A writer with her own credentials alone, as the shipped policies give them: what the store refuses her, what readers make of the rest.

Each test has a database of its own below one root, in which ``kit/mallory.py`` has put what there is before.
"""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from bucketcatalog import BucketCatalogError, Catalog, CatalogWarning
from bucketcatalog.errors import AccessDenied
from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.maintain.verify.findings import Severity
from bucketcatalog.model import paths
from bucketcatalog.store.s3.store import S3Store
from minio.clients import client
from minio.process import Server

from ..kit.mallory import OTHERS, PASSED_OVER, REFUSED, Mallory, a_byte, fill, id_of, stolen_rows
from ..kit.roles import credentials
from ..kit.spec_reader import seal
from ..kit.world import BUCKET, OWNER, names, obj, rows

ROOT = "lake/inventory"
ROLES = {"mallory": "writer", "alice": "writer", "bob": "writer", "compactor-1": "compactor", "maintainer-1": "maintainer"}


class Place:
    """A root in a bucket, a store of it with the rights of each name, and beside it one alice's object as data, and one nobody's."""

    def __init__(self, server: Server, s3: Any, bucket: str) -> None:
        self.s3, self.bucket = s3, bucket
        self.url = f"s3://{bucket}/{ROOT}"
        self.options = {name: credentials(server, role, bucket, ROOT, name) for name, role in ROLES.items()}
        self.options["reader"] = credentials(server, "reader", bucket, ROOT)
        self.stores = {name: S3Store(self.url, options) for name, options in self.options.items()}
        self.data: dict[str, Any] = {
            "data_url": f"s3://{bucket}/data/{{owner}}/{{bucket_id}}/{{id}}",
            "data_options": server.storage_options,
        }
        for an_id in (id_of("alice", 100), id_of("nobody", 100)):
            s3.put_object(Bucket=bucket, Key=f"data/{OWNER}/{BUCKET}/{an_id}", Body=b"x")

    def open_as(self, name: str) -> Catalog:
        """A catalog that has read nothing, with the rights of that name."""
        return Catalog(self.stores[name])

    def everything(self) -> dict[str, str]:
        """What lies in the bucket, with what says that it is the same."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {each["Key"]: each["ETag"] for page in pages for each in page.get("Contents", ())}


@pytest.fixture(scope="module")
def place(server: Server, s3: Any) -> Place:
    name = f"test-{uuid.uuid4().hex}"
    s3.create_bucket(Bucket=name)
    return Place(server, s3, name)


def filled(place: Place) -> Mallory:
    """Her, in a database in which everybody has committed."""
    database = f"d{uuid.uuid4().hex[:12]}"
    fill(place.stores.__getitem__, database)
    return Mallory(place.stores["mallory"], database)


@pytest.fixture
def mallory(place: Place) -> Mallory:
    return filled(place)


@pytest.fixture(scope="module")
def refused(place: Place) -> Mallory:
    """The same, for tests that change nothing."""
    return filled(place)


def of_others(place: Place, database: str, **options: Any) -> tuple[Any, ...]:
    """What a reader sees of alice's and bob's: rows, tombstones, and where the tag is."""
    snapshot = place.open_as("reader").snapshot(database=database, **options)
    live, ended = names(snapshot), [row["name"] for row in rows(snapshot, "deleted_objects", ["name"])]
    tags = [(row["name"], row["writer"]) for row in rows(snapshot, "tags")]
    return *([name for name in found if name.startswith(OTHERS)] for found in (live, ended)), tags


def freed(place: Place, database: str) -> tuple[set[str], Collected]:
    """What of alice's and bob's, and of roles', a maintainer would prune now, and what would be collected; nothing is done."""
    catalog = place.open_as("maintainer-1")
    pruned = catalog.prune("0s", grace="0s", force=True, database=database, writer="maintainer-1")
    collected = catalog.collect(older_than="0s", force=True, database=database, **place.data)
    listed = {file.name for file in (*pruned.files, *pruned.waiting) if not file.name.startswith("mallory/")}
    orphans = {orphan.name for orphan in catalog.orphans(older_than="0s", force=True, database=database, **place.data)}
    assert len(orphans) == 1, "what alice names is none"
    return listed, replace(collected, boundary=0)


@contextmanager
def quietly() -> Iterator[None]:
    """Warnings about what is read past are expected."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CatalogWarning)
        yield


def set_aside(place: Place, database: str, name: str) -> None:
    made = place.open_as("maintainer-1").repair(writer="maintainer-1", database=database, set_aside=[name], dry_run=False)
    assert [f"{action.what} {action.subject}" for action in made.actions if action.done] == [f"set aside {name}"]


class TestWhatTheStoreRefuses:
    @pytest.mark.parametrize("other", ["alice", "compactor-1", "maintainer-1", "mallory2", "mallor"])
    def test_nothing_is_put_below_anothers_prefix(self, place: Place, refused: Mallory, other: str) -> None:
        before = place.everything()
        for ending in ("transactions/00000000000000000009/x.txn", "newest/x", "segments/x.parquet"):
            with pytest.raises(AccessDenied) as caught:
                refused.store.put(f"{other}/{refused.database}/{ending}", b"x")
            assert caught.value.code == "ACCESS_DENIED"
        assert place.everything() == before

    def test_nothing_is_deleted_not_even_her_own(self, place: Place, refused: Mallory) -> None:
        before = place.everything()
        for name in [info.name for info in refused.store.list("") if f"/{refused.database}/" in info.name]:
            with pytest.raises(AccessDenied):
                refused.store.delete(name)
        assert place.everything() == before

    def test_no_other_way_of_putting_or_naming_leads_out_of_her_prefix(self, place: Place, refused: Mallory) -> None:
        before = place.everything()
        s3 = client(place.options["mallory"])
        below = f"{ROOT}/alice/{refused.database}/segments"
        own = next(refused.store.list("mallory/")).name
        calls: list[Callable[[], Any]] = [
            lambda: s3.create_multipart_upload(Bucket=place.bucket, Key=f"{below}/a"),
            lambda: s3.copy_object(Bucket=place.bucket, Key=f"{below}/a", CopySource=f"{place.bucket}/{ROOT}/{own}"),
            lambda: s3.put_object(Bucket=place.bucket, Key=f"{ROOT}/mallory/../alice/{refused.database}/a", Body=b"x"),
            lambda: s3.put_object(Bucket=place.bucket, Key=f"{ROOT}/mallory", Body=b"x"),
            lambda: s3.put_object(Bucket=place.bucket, Key=f"{ROOT}//alice/a", Body=b"x"),
            lambda: s3.delete_objects(Bucket=place.bucket, Delete={"Objects": [{"Key": f"{ROOT}/{own}"}]})["Deleted"],
            lambda: s3.delete_bucket_policy(Bucket=place.bucket),
        ]
        for call in calls:
            with pytest.raises((ClientError, KeyError)):
                call()
        s3.close()
        assert place.everything() == before


class TestWhatSheOverwritesOfHerOwn:
    """The store lets her, where it has no conditional writes: see docs/guide/security.md."""

    def overwritten(self, mallory: Mallory, back: int) -> str:
        """Her last transaction, or one before, put again without its events and with a right checksum."""
        head = sorted(mallory.files.transactions("mallory"))[-1 - back]
        name = paths.transaction("mallory", mallory.database, head)
        made = type(mallory.last("mallory")).FromString(mallory.store.get(name))
        for field in ("actions", "blocks", "segments", "checksum"):
            made.ClearField(field)
        mallory.store.put(name, seal(made.SerializeToString()))
        return name

    def test_her_last_commit_changes_for_who_reads_it_anew_and_others_rows_stay(self, place: Place, mallory: Mallory) -> None:
        with place.open_as("mallory").writer("mallory", database=mallory.database) as writer, writer.transaction() as tx:
            tx.put("objects", obj("mallory again"))
        expected, listed = of_others(place, mallory.database), freed(place, mallory.database)
        self.overwritten(mallory, 0)
        assert of_others(place, mallory.database) == expected
        assert "mallory again" not in names(place.open_as("reader").snapshot(database=mallory.database))
        assert freed(place, mallory.database)[0] <= listed[0]

    def test_what_something_follows_or_covers_is_noticed_and_others_rows_stay(self, place: Place, mallory: Mallory) -> None:
        expected = of_others(place, mallory.database)
        name = self.overwritten(mallory, 1)
        assert of_others(place, mallory.database) == expected
        found = place.open_as("reader").verify(database=mallory.database, deep=True)
        assert {f.file for f in found if f.severity is Severity.ERROR} & {name, *_of(mallory)}


def _of(mallory: Mallory) -> set[str]:
    return {info.name for info in mallory.store.list("mallory/")}


class TestWhatSheForges:
    def test_what_she_cannot_say_counts_for_nobody(self, place: Place, mallory: Mallory) -> None:
        database = mallory.database
        expected, (listed, collected) = of_others(place, database), freed(place, database)
        at_release = of_others(place, database, version="release")
        assert any(name.startswith(OTHERS) for name in listed) and collected.purged
        for forge in PASSED_OVER.values():
            forge(mallory)
            assert of_others(place, database) == expected, forge
            assert of_others(place, database, version="release") == at_release
            now_listed, now_collected = freed(place, database)
            assert now_listed <= listed and now_collected == collected, forge
        with place.open_as("alice").writer("alice", database=database) as alice, alice.transaction() as tx:
            tx.put("objects", obj("alice again"))
        assert "alice again" in of_others(place, database)[0]

    def test_a_bad_file_stops_readers_by_name_until_it_is_set_aside(self, place: Place, mallory: Mallory) -> None:
        database = mallory.database
        expected, (listed, collected) = of_others(place, database), freed(place, database)
        for forge in REFUSED.values():
            name = forge(mallory)
            for call in (lambda: of_others(place, database), lambda: freed(place, database)):
                with pytest.raises(BucketCatalogError) as caught:
                    call()
                assert name in str(caught.value)
            with quietly():
                assert of_others(place, database, ignore_corruption=True) == expected, forge
            set_aside(place, database, name)
            assert of_others(place, database) == expected, forge
            now_listed, now_collected = freed(place, database)
            assert now_listed <= listed and now_collected == collected, forge

    def test_others_commit_beside_a_bad_file(self, place: Place, mallory: Mallory) -> None:
        name = a_byte(mallory)
        for who in OTHERS:
            with place.open_as(who).writer(who, database=mallory.database) as writer, writer.transaction() as tx:
                tx.put("objects", obj(f"{who} again"))
        for who in ("mallory", "alice", "compactor-1", "reader"):
            with pytest.raises(AccessDenied, match="maintainer-1"):
                place.open_as(who).repair(writer="maintainer-1", database=mallory.database, set_aside=[name], dry_run=False)
        set_aside(place, mallory.database, name)
        assert {"alice again", "bob again"} <= set(of_others(place, mallory.database)[0])

    def test_rows_of_others_in_her_checkpoint_are_read_past(self, place: Place, mallory: Mallory) -> None:
        expected = of_others(place, mallory.database)
        name = stolen_rows(mallory)
        with pytest.raises(BucketCatalogError, match=name):
            of_others(place, mallory.database)
        with quietly():
            assert of_others(place, mallory.database, ignore_corruption=True) == expected
        made = place.open_as("maintainer-1").repair(writer="maintainer-1", database=mallory.database, dry_run=False)
        assert made.lost == () and of_others(place, mallory.database) == expected
