"""``harvest``, ``checkpoint`` and ``dump``: what they write, what they take, and what they show of files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from bucketcatalog import Catalog
from bucketcatalog.format.dump import inspect
from bucketcatalog.format.footers import footer_start

from ...kit.world import bucket
from .conftest import Cli, Past


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "d").mkdir(parents=True)
    (folder / "a.txt").write_text("a")
    (folder / "d" / "b").write_text("bb")
    return folder


def test_harvest_says_what_it_did(cli: Cli, source: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    assert cli("harvest", source, catalog, "--dry-run").out.startswith("2 entries: 2 would be created, ")
    assert not catalog.exists()
    first = cli("harvest", source, catalog, "--json").document
    assert (first["created"], first["bytes"], len(first["transactions"]), first["dry_run"]) == (2, 3, 1, False)
    (source / "a.txt").unlink()
    assert cli("harvest", source, catalog).out.startswith("1 entry: 0 created, 0 overwritten, 1 deleted, 1 unchanged")


def test_harvest_makes_checksums_where_asked(cli: Cli, source: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    lines = cli("harvest", source, catalog, "--checksum").out.splitlines()
    assert lines[1] == "2 files read for checksums: 3 B"
    found = Catalog(catalog).snapshot().scan("objects", columns=["checksum"]).to_arrow()["checksum"].to_pylist()
    assert all(len(checksum) == 44 for checksum in found)
    again = cli("harvest", source, catalog, "--checksum", "--json").document
    assert (again["hashed"], again["hashed_bytes"], again["transactions"]) == (0, 0, [])


def test_log_says_in_short_what_a_harvest_did_and_as_json_all_of_it(cli: Cli, source: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    with Catalog(catalog).writer("w") as writer, writer.transaction(operation="mine") as tx:
        tx.put("buckets", bucket("x"))
    assert "HARVESTED" not in cli("log", catalog).out
    cli("harvest", source, catalog)
    (source / "a.txt").unlink()
    cli("harvest", source, catalog)
    head, second, first, mine = cli("log", catalog).out.splitlines()
    assert head.split()[-2:] == ["HARVESTED", "METADATA"]
    assert re.search(r"1 deleted in \d+\.\d s", second) and re.search(r"2 created \(3 B\) in \d+\.\d s", first)
    assert mine.split()[-2:] == ["-", "-"]
    row = cli("log", catalog, "--json").lines[0]
    assert (row["deleted"], row["deleted_bytes"], row["unchanged_bytes"], row["bucket"]) == (1, 1, 2, str(source))
    assert row["metrics"]["deleted"] == 1 and "harvested" not in row


def test_harvest_takes_its_options(cli: Cli, source: Path, tmp_path: Path) -> None:
    owner = "11111111-1111-4111-8111-111111111111"
    arguments = (
        "--database",
        "zoo",
        "--writer",
        "me",
        "--bucket",
        "cats",
        "--owner",
        owner,
        "--include",
        "d/*",
        "--exclude",
        "*.txt",
    )
    done = cli("harvest", source, tmp_path / "c", *arguments, "--json").document
    assert (done["database"], done["writer"], done["bucket"], done["owner"], done["created"]) == ("zoo", "me", "cats", owner, 1)
    assert Catalog(tmp_path / "c").databases() == ["zoo"]


def test_harvest_names_what_cannot_be_catalogued(cli: Cli, source: Path, tmp_path: Path) -> None:
    for at in range(11):
        Path(os.fsdecode(os.fsencode(source) + b"/%02d\xff" % at)).write_text("")
    catalog = tmp_path / "the catalog"
    planned = cli("harvest", source, catalog, "--dry-run").out.splitlines()
    assert planned[1:3] == ["11 entries cannot be catalogued:", r"  00\xff: the name is not UTF-8"]
    assert planned[-1] == "  and 1 more" and not catalog.exists()
    done = cli("harvest", source, catalog).out.splitlines()
    assert done[1:3] == ["11 entries could not be catalogued:", r"  00\xff: the name is not UTF-8"]
    shown = shlex.split(done[-2].partition("all that are known: bucketcatalog ")[2])
    assert (
        cli(*[str(tmp_path / "e.parquet") if word == "errors.parquet" else word for word in shown], "--json").document["rows"]
        == 11
    )
    assert len(cli("harvest", source, catalog, "--json").document["failed"]) == 10


def test_harvest_of_an_emptied_source_needs_an_option(cli: Cli, source: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    cli("harvest", source, catalog)
    shutil.rmtree(source)
    source.mkdir()
    refused = cli("harvest", source, catalog)
    assert refused.code == 1 and refused.err.startswith("[SOURCE_NOT_FOUND] Nothing at all is found")
    assert cli("harvest", source, catalog, "--allow-empty", "--json").document["deleted"] == 2


@pytest.mark.parametrize("protocol", ["sftp", "http", "nonsense"])
def test_harvest_to_a_place_that_cannot_be_written_says_so_before_all_else(cli: Cli, source: Path, protocol: str) -> None:
    refused = cli("harvest", source, f"{protocol}://h/x")
    assert refused.code == 1
    assert refused.err.startswith(f"[UNSUPPORTED_STORE] Nothing can be written over {protocol}://") and "pip" not in refused.err


def test_checkpoint_covers_one_writer_or_all(cli: Cli, source: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    cli("harvest", source, catalog, "--writer", "one")
    assert "3 rows in 1 segment" in cli("checkpoint", catalog).out
    assert cli("checkpoint", catalog, "--json").document == {"written": False, "writer": "one"}
    cli("harvest", source, catalog, "--writer", "two", "--bucket", "other")
    refused = cli("checkpoint", catalog)
    assert refused.code == 2 and "--all-writers" in refused.err
    assert cli("checkpoint", catalog, "--writer", "two", "--json").document["written"] is True
    assert cli("checkpoint", catalog, "--all-writers", "--json").document["writer"].startswith("compactor-")
    assert cli("checkpoint", catalog, "--all-writers").out == "Nothing has been committed since the last checkpoint.\n"
    assert [row["in_use"] for row in cli("checkpoints", catalog, "--json").lines].count(True) == 1
    assert len(cli("ls", catalog, "other", "--json").lines) == 2


def test_a_checkpoint_of_a_writer_that_never_wrote_is_refused_with_those_that_did(cli: Cli, source: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    cli("harvest", source, catalog, "--writer", "one")
    refused = cli("checkpoint", catalog, "--writer", "oen")
    assert refused.code == 2 and refused.err.startswith("[INVALID_OPTION] No writer 'oen' ")
    assert "one of one with --writer" in refused.err
    assert cli("checkpoint", catalog, "--writer", "../x").code == 2
    assert cli("checkpoint", catalog, "--writer", "compactor-else", "--all-writers", "--json").document["written"] is True


def test_a_checkpoint_of_all_by_who_is_no_compactor_is_refused_with_what_to_do(cli: Cli, source: Path, tmp_path: Path) -> None:
    catalog = tmp_path / "catalog"
    cli("harvest", source, catalog, "--writer", "one")
    before = sorted(catalog.rglob("*"))
    for writer in ("one", "someone-else"):
        refused = cli("checkpoint", catalog, "--writer", writer, "--all-writers")
        assert refused.code == 2 and refused.err.startswith(
            f"[INVALID_OPTION] The writer '{writer}' cannot write a checkpoint of "
        )
        assert "begins with compactor-" in refused.err
    assert sorted(catalog.rglob("*")) == before


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """One file of each kind: a transaction of rows, one of blocks, a checkpoint, a segment."""
    catalog = Catalog(tmp_path_factory.mktemp("dump") / "catalog")
    with catalog.writer("w") as writer:
        with writer.transaction() as small:
            small.put("buckets", {"owner": "11111111-1111-4111-8111-111111111111", "name": "b\n"})
        with writer.transaction() as large:
            large.put("buckets", [{"owner": "11111111-1111-4111-8111-111111111111", "name": f"n{at}"} for at in range(70)])
        writer.checkpoint()
    stored = sorted(info.name for info in catalog.store.list("") if info.size)
    found = {name.rpartition("/")[2]: catalog.store.get(name) for name in stored}
    assert sorted(name.rpartition(".")[2] for name in found) == ["ckpt", "parquet", "txn", "txn"]
    return found


def test_dump_shows_every_kind_of_file(cli: Cli, files: dict[str, bytes], tmp_path: Path) -> None:
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        document = cli("dump", tmp_path / name, "--rows", 2, "--json").document
        assert (document["kind"], document["intact"], document["problems"]) == (name.rpartition(".")[2], True, [])
        assert "intact" in cli("dump", tmp_path / name).out.splitlines()[0]
    (small, large) = [cli("dump", tmp_path / name, "--rows", 2, "--json").document for name in files if name.endswith("txn")]
    (action,) = small["content"]["actions"]
    assert (action["kind"], action["row"]["name"]) == ("EVENT_KIND_PUT", "b\n")
    (block,) = large["content"]["blocks"]
    assert (block["rows"], [row["name"] for row in block["first_rows"]]) == (70, ["n0", "n1"])
    assert large["content"]["parents"][0]["revision"] == 0


def test_dump_of_a_cut_off_file_shows_the_rest_and_says_so(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        for length in (*range(0, len(data), max(1, len(data) // 40)), len(data) - 1):
            found = inspect(data[:length], name)
            assert found.problems, (name, length)
            assert found.kind == name.rpartition(".")[2]
    whole = inspect(data[:-1], name)
    assert whole.content


def test_dump_of_a_flipped_bit_never_fails_and_says_so(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        for at in range(0, len(data), max(1, len(data) // 150)):
            damaged = bytearray(data)
            damaged[at] ^= 1 << at % 8
            assert inspect(bytes(damaged), name, rows=1).problems, (name, at)


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff" * 100, b"hello, world\n" * 50, bytes(1000)])
def test_dump_of_something_else_shows_problems(cli: Cli, tmp_path: Path, data: bytes) -> None:
    for ending in ("txn", "ckpt", "parquet", "dat"):
        file = tmp_path / f"x.{ending}"
        file.write_bytes(data)
        document = cli("dump", file, "--json").document
        says_nothing = ending in ("parquet", "dat")  # not every Parquet file is a segment
        assert (document["intact"], document["kind"]) == (False, None if says_nothing else ending)
        assert ("no file of a catalog" if says_nothing else "DAMAGED") in cli("dump", file).out


@pytest.fixture
def segment(files: dict[str, bytes], tmp_path: Path) -> Path:
    """A segment where a catalog has it."""
    (name,) = [name for name in files if name.endswith(".parquet")]
    path = tmp_path / "catalog" / "w" / "default" / "segments" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(files[name])
    return path


@pytest.mark.parametrize("left", ["a quarter", "its first bytes", "zeros", "nothing"])
def test_dump_of_a_segment_of_which_nothing_is_left_says_that_it_is_damaged_and_what_to_do(
    cli: Cli, segment: Path, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = segment.read_bytes()
    cut = {"a quarter": data[: len(data) // 4], "its first bytes": b"PAR1 hello", "zeros": bytes(len(data)), "nothing": b""}[left]
    segment.write_bytes(cut)
    monkeypatch.chdir(segment.parent)
    for name in (segment, segment.name) if left != "zeros" else (segment,):
        said = cli("dump", name)
        assert (said.code, "DAMAGED" in said.out, "next: Restore the file" in said.out) == (0, True, True)
        assert cli("dump", name, "--json").document["kind"] == "parquet"
    (segment.parent / "copy.parquet").write_bytes(cut)
    assert ("DAMAGED" in cli("dump", "copy.parquet").out) is (cut[:4] == b"PAR1")


def test_dump_of_what_another_program_wrote_in_place_of_a_segment_says_so(cli: Cli, segment: Path, tmp_path: Path) -> None:
    pq.write_table(pq.read_table(segment), segment)
    said = cli("dump", segment).out
    assert "DAMAGED" in said and "no index before its footer" in said and "of another program" in said
    assert "fields of a message" not in said and said.count("problem: ") == 1
    other = tmp_path / "other.parquet"
    other.write_bytes(segment.read_bytes())
    assert "other.parquet: a Parquet file of another program, no file of a catalog" in cli("dump", other).out


def test_dump_finds_an_index_that_is_not_where_the_end_of_a_segment_says(cli: Cli, segment: Path) -> None:
    data = segment.read_bytes()
    at = footer_start(data[-8:], len(data), "segment") - 4
    for length in (0, 9, 1 << 31):
        segment.write_bytes(data[:at] + length.to_bytes(4, "little") + data[at + 4 :])
        document = cli("dump", segment, "--rows", 1, "--json").document
        assert len(document["problems"]) == 1 and "Where its index lies" in document["problems"][0]
        assert document["content"]["blocks"][0]["first_rows"][0]["name"] == "b\n"


def test_dump_shows_keys_as_values(cli: Cli, files: dict[str, bytes], tmp_path: Path) -> None:
    shown = 0
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        said = cli("dump", tmp_path / name)
        assert "first_key" not in said.out and b"n0".hex() not in said.out.replace(name, "")
        shown += said.out.count("  keys: (owner='11111111-1111-4111-8111-111111111111', name=")
    assert shown == 4  # of the block of events, of the run in the checkpoint and in its segment, and of its block
    *_, large = [cli("dump", tmp_path / name, "--json").document for name in files if name.endswith("txn")]
    (block,) = large["content"]["blocks"]
    assert block["last_key"].endswith(b"n9".hex()) and block["shown"][1].endswith("name='n9'")


def test_dump_shows_the_rows_that_are_asked_for(cli: Cli, files: dict[str, bytes], tmp_path: Path) -> None:
    shown = []
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
        lines = cli("dump", tmp_path / name, "--rows", 3).out.splitlines()
        shown.append([json.loads(line.removeprefix("  row: "))["name"] for line in lines if line.startswith("  row: ")])
        assert "row: " not in cli("dump", tmp_path / name).out
    assert sorted(shown) == [[], [], ["b\n", "n0", "n1"], ["n0", "n1", "n10"]]


def test_dump_of_a_damaged_file_under_another_name_is_still_one_of_ours(
    cli: Cli, files: dict[str, bytes], tmp_path: Path
) -> None:
    for data in files.values():
        (tmp_path / "unnamed").write_bytes(data[:-1])
        assert "DAMAGED" in cli("dump", tmp_path / "unnamed").out


def test_dump_knows_a_file_by_its_content_where_the_name_says_nothing(files: dict[str, bytes]) -> None:
    for name, data in files.items():
        assert inspect(data, "unnamed").kind == name.rpartition(".")[2]


def test_dump_reads_from_a_store(cli: Cli, past: Past) -> None:
    (file, *_) = sorted(past.path.rglob("*.txn"))
    assert cli("dump", f"file://{file}", "--json").document["intact"] is True
