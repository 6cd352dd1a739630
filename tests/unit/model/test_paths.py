"""Every name that paths builds parses to what it was built from, sorts as the numbers do, and nothing else parses."""

from __future__ import annotations

import itertools
import uuid

import pytest

from bucketcatalog.model import paths
from bucketcatalog.model.cuts import Head
from bucketcatalog.model.paths import FileKind, LogFile, Parsed
from bucketcatalog.model.uuids import uuid_bytes, uuid_text

REVISIONS = [0, 1, 9, 10, 99, 12_345_678_901, 10**15 - 1]
ONE, TWO = uuid.UUID("00000000-0000-7000-8000-000000000001").bytes, uuid.UUID("e677d21f-dbff-73e7-bfff-ffffffffffff").bytes
PREFIX = paths.transactions_prefix("w", "db")
NEWEST = paths.newest_prefix("w", "db")
SEGMENTS = paths.segments_prefix("w", "db")


@pytest.mark.parametrize(("revision", "name"), [*itertools.product(REVISIONS, (ONE, TWO))])
def test_names_parse_to_what_they_were_built_from(revision: int, name: bytes) -> None:
    transaction, checkpoint = (
        paths.transaction("w", "db", Head(revision, name)),
        paths.checkpoint("w", "db", Head(revision, name)),
    )

    assert paths.parse_log_file(PREFIX, transaction) == LogFile(revision, name, FileKind.TRANSACTION)
    assert paths.parse_log_file(PREFIX, checkpoint) == LogFile(revision, name, FileKind.CHECKPOINT)
    marker = paths.newest_marker("w", "db", Head(revision, name))
    assert paths.parse_newest_marker(NEWEST, marker) == LogFile(revision, name, FileKind.CHECKPOINT)
    assert paths.parse_segment(SEGMENTS, paths.segment("w", "db", name)) == name


@pytest.mark.parametrize(
    ("revision", "name"),
    [
        (10**15, "00000000-0000-7000-8000-000000000001"),
        (10**20 - 1, "00000000-0000-7000-8000-000000000001"),
        (7, "00000000-0000-0000-0000-000000000001"),
        (7, "01a20d0d-7235-43e7-ad63-f749c0a49776"),
        (7, "01a20d0d-7235-73e8-ad63-f749c0a49776"),
        (7, "01a20d0d-7235-7000-2d63-f749c0a49776"),
        (7, "ffffffff-ffff-70f2-ad63-f749c0a49776"),
    ],
)
def test_what_nobody_could_say_anything_of_is_no_file_of_the_log(revision: int, name: str) -> None:
    """Of a file with such a name no entry could say that it is set aside, so nobody may be stopped by it."""
    head = Head(revision, uuid.UUID(name).bytes)
    assert paths.parse_log_file(PREFIX, paths.transaction("w", "db", head)) is None
    assert paths.parse_log_file(PREFIX, paths.checkpoint("w", "db", head)) is None
    assert paths.parse_newest_marker(NEWEST, paths.newest_marker("w", "db", head)) is None


def test_a_name_tells_whose_it_is_and_what_it_stands_for() -> None:
    transaction, checkpoint = (f("w-1", "d.b", Head(7, ONE)) for f in (paths.transaction, paths.checkpoint))
    segment = paths.segment("w-1", "d.b", TWO)

    assert paths.parse(transaction) == Parsed("w-1", "d.b", LogFile(7, ONE, FileKind.TRANSACTION))
    assert paths.parse(checkpoint) == Parsed("w-1", "d.b", LogFile(7, ONE, FileKind.CHECKPOINT))
    assert paths.parse(segment) == Parsed("w-1", "d.b", segment=TWO)
    assert {paths.writer_of(name) for name in (transaction, checkpoint, segment)} == {"w-1"}
    assert [paths.kind_of(name) for name in (transaction, checkpoint, segment)] == [*FileKind]
    for strange in (
        "",
        "w-1",
        "w-1/d.b/",
        paths.newest_marker("w-1", "d.b", Head(7, ONE)),
        f"./{transaction}",
        f"{transaction}/x",
    ):
        assert paths.parse(strange) is None
    assert paths.parse(f".w/{paths.database_prefix('w', 'db')}transactions") is None
    assert paths.kind_of("elsewhere/x.parquet") is FileKind.SEGMENT and paths.kind_of("x.segment") is None


def test_a_database_of_a_writer_has_nothing_but_its_folders() -> None:
    below = paths.database_prefix("w", "db")
    of_folders = [PREFIX, NEWEST, SEGMENTS, paths.data_prefix("w", "db")]

    assert below.startswith(paths.writer_prefix("w"))
    assert sorted(f"{below}{folder}/" for folder in paths.FOLDERS) == sorted(of_folders)
    assert sorted(f"{below}{folder}/" for folder in paths.TIMELINE_FOLDERS) == sorted([PREFIX, NEWEST])
    assert [paths.is_of_a_catalog(f"{folder}x") for folder in of_folders] == [True] * 4
    assert [paths.is_data_of_a_catalog(f"{folder}x") for folder in of_folders] == [False, False, False, True]
    for strange in (f"{below}other/x", f"{below}data", f".{below}data/x", "w/.db/data/x", "data/x"):
        assert not paths.is_of_a_catalog(strange) and not paths.is_data_of_a_catalog(strange)


def test_names_are_those_of_the_layout() -> None:
    text = "00000000-0000-7000-8000-000000000001"

    assert paths.transaction("w", "db", Head(7, ONE)) == f"w/db/transactions/00000000000000000007/{text}.txn"
    assert paths.checkpoint("w", "db", Head(7, ONE)) == f"w/db/transactions/00000000000000000007/{text}.ckpt"
    assert paths.newest_marker("w", "db", Head(7, ONE)) == f"w/db/newest/99999999999999999992-{text}"
    assert paths.segment("w", "db", ONE) == f"w/db/segments/{text}.parquet"


def test_transactions_sort_by_revision_and_markers_the_other_way() -> None:
    transactions = [paths.transaction("w", "db", Head(revision, ONE)) for revision in REVISIONS]
    markers = [paths.newest_marker("w", "db", Head(revision, ONE)) for revision in REVISIONS]

    assert transactions == sorted(transactions)
    assert markers == sorted(markers, reverse=True)


@pytest.mark.parametrize("revision", REVISIONS[1:])
def test_revision_start_sorts_between_the_revisions(revision: int) -> None:
    start = paths.revision_start("w", "db", revision)

    last_before = paths.transaction("w", "db", Head(revision - 1, uuid.UUID(int=2**128 - 1).bytes))
    first = paths.transaction("w", "db", Head(revision, bytes(16)))
    assert last_before < start < first
    assert first.startswith(paths.revision_prefix("w", "db", revision)) and not last_before.startswith(start)


GOOD = paths.transaction("w", "db", Head(7, ONE))
STRANGE = [
    "",
    PREFIX,
    GOOD + ".tmp",
    GOOD.upper(),
    GOOD.replace(".txn", ".TXN"),
    GOOD.replace(".txn", ".parquet"),
    GOOD.replace("0000000000000000000", "000000000000000000", 1),
    GOOD.replace("transactions/0", "transactions/\u0660"),
    GOOD.replace("/0", "//0", 1),
    GOOD + "\n",
    "x" + GOOD,
    GOOD.replace("w/", "v/", 1),
    GOOD.replace(".txn", "/x.txn"),
]


@pytest.mark.parametrize("name", STRANGE)
def test_other_names_are_nobodys(name: str) -> None:
    assert paths.parse_log_file(PREFIX, name) is None
    assert paths.parse_newest_marker(NEWEST, name.replace("transactions", "newest")) is None
    assert paths.parse_segment(SEGMENTS, name.replace("transactions", "segments")) is None


def test_uuids_read_as_they_are_written() -> None:
    assert uuid_text(TWO) == str(uuid.UUID(bytes=TWO))
    assert uuid_bytes(uuid_text(TWO)) == uuid_bytes(TWO.hex()) == TWO
