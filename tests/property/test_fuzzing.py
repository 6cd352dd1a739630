"""The fuzzer itself: its cases are the same each time, and what it is there to find it finds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from bucketcatalog.errors import CorruptionError

from ..kit.fuzzing.base import FORGER, OTHERS, Base, made
from ..kit.fuzzing.forge import Case, Forger
from ..kit.fuzzing.oracle import judge, judge_error, touched
from ..kit.fuzzing.parts import closed, opened
from ..kit.fuzzing.readers import Answer, Failed, lay_data, readers
from ..kit.fuzzing.running import Watched

NOTHING: frozenset[str] = frozenset()


@cache
def base() -> Base:
    return made()


@pytest.fixture(scope="module")
def watched() -> Iterator[Watched]:
    with Watched() as found:
        yield found


def test_base_has_a_file_of_each_kind_of_every_writer() -> None:
    for writer in ("alice", FORGER):
        assert all(base().of(writer, ending) for ending in (".txn", ".ckpt", ".parquet")), writer
    assert {name.partition("/")[0] for name in base().files} == {*OTHERS, FORGER, "maintainer-2"}


def test_base_and_cases_are_the_same_each_time() -> None:
    again = made()
    assert again.files == base().files and again.modified == base().modified
    one, two = Forger(base()), Forger(again)
    assert [one.case(7, n) for n in range(40)] == [two.case(7, n) for n in range(40)]
    assert one.case(7, 0) != one.case(8, 0)


def test_cases_change_nothing_but_the_forgers_own_files() -> None:
    forger = Forger(base())
    cases = [forger.case(3, number) for number in range(150)]
    assert all(name.startswith(f"{FORGER}/") for case in cases for name in case.files)
    endings = {name.rpartition(".")[2] for case in cases for name in case.files}
    assert endings >= {"txn", "ckpt", "parquet"}


def test_file_that_is_put_together_again_is_the_same() -> None:
    for name in (*base().of(FORGER, ".txn"), *base().of(FORGER, ".ckpt")):
        message = opened(name, base().files[name])
        assert opened(name, closed(message)) == message, name


def test_sound_catalog_is_read_without_findings(tmp_path: Path) -> None:
    folder = tmp_path / "catalog"
    base().write(folder)
    lay_data(folder, [])
    for name, read in readers(base().of(FORGER, ".txn")[:1]).items():
        assert judge(name, answer := read(folder), answer, NOTHING, frozenset(base().files)) == [], name


ROW = {"name": "victim-a-0001", "size": 1, "_writer": "alice"}
HERS = {"name": "m-1", "size": 1, "_writer": FORGER}


@pytest.mark.parametrize(
    ("after", "kinds"),
    [
        ([ROW, HERS], []),
        ([ROW], []),
        ([HERS], ["rows"]),
        ([{**ROW, "size": 2}, HERS], ["rows"]),
        ([ROW, ROW], ["rows"]),
        ([ROW, {**HERS, "_writer": "bob"}], ["rows"]),
    ],
)
def test_rows_of_others_must_be_what_they_were(after: list[dict[str, object]], kinds: list[str]) -> None:
    sound, found = Answer({"t": [ROW, HERS]}), Answer({"t": after})
    assert [each.kind for each in judge("scan", sound, found, NOTHING, NOTHING)] == kinds


def test_rows_that_her_events_are_about_are_left_to_her() -> None:
    name = next(name for name in base().of(FORGER, ".txn") if opened(name, base().files[name]).actions)
    message = opened(name, base().files[name])
    message.actions[0].row = b"\x1a\x0dvictim-a-0001"
    allowed = touched(Case({name: closed(message)}))
    assert allowed == {"victim-a-0001"}
    assert judge("scan", Answer({"t": [ROW]}), Answer({"t": []}), allowed, NOTHING) == []


def test_rows_in_her_checkpoint_are_not_hers_where_a_stamp_is_anothers() -> None:
    name = next(name for name in base().files if name.startswith("maintainer-2/") and name.endswith(".ckpt"))
    message = opened(name, base().files[name])
    assert any(b"victim" in run.run.first_key for run in message.runs)
    assert touched(Case({name: closed(message)})) == NOTHING


def test_deletion_and_blame_are_found() -> None:
    there = frozenset({"alice/default/transactions/x.txn"})
    found = judge("prune", Answer(), Answer(files=["alice/default/transactions/x.txn", f"{FORGER}/y"]), NOTHING, there)
    assert [each.kind for each in found] == ["deletes"]
    said = Answer(findings=["alice/default/x: CORRUPT", f"{FORGER}/default/x: CORRUPT"])
    assert [each.kind for each in judge("verify", Answer(), said, NOTHING, NOTHING)] == ["blames"]


@pytest.mark.parametrize(
    ("reader", "error", "kind"),
    [
        ("scan", CorruptionError(f"{FORGER}/default/x is damaged."), None),
        ("scan past damage", CorruptionError(f"{FORGER}/default/x is damaged."), "refused"),
        ("scan", CorruptionError("alice/default/x is damaged."), "blames"),
        ("scan", KeyError("x"), "traceback"),
        ("scan", MemoryError(), "memory"),
        ("command ls", Failed(1, f"[CORRUPT] {FORGER}/default/x is damaged."), None),
        ("command ls", Failed(1, f"warning: {FORGER}/x\n[CORRUPT] alice/default/x is damaged."), "blames"),
        ("command ls", Failed(1, "[INTERNAL] KeyError: 'x'."), "traceback"),
    ],
)
def test_errors_are_judged_by_whom_they_name(reader: str, error: Exception, kind: str | None) -> None:
    found = judge_error(reader, error, NOTHING)
    assert (found.kind if found is not None else None) == kind


def test_child_that_a_signal_ends_is_a_finding_and_another_goes_on(watched: Watched) -> None:
    first = watched.run(1, 0, count=1)
    assert watched.child is not None
    watched.child.kill()
    (found,) = watched.run(1, 0, count=1).found
    assert found.kind == "signal"
    assert watched.run(1, 0, count=1) == first


def test_child_that_takes_too_long_is_a_finding(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    watched.run(1, 0, count=1)
    monkeypatch.setattr("tests.kit.fuzzing.running.SECONDS", 0)
    monkeypatch.setattr("tests.kit.fuzzing.running.FORGING_SECONDS", 0)
    monkeypatch.setattr("tests.kit.fuzzing.running.MOMENT", 0.001)
    assert [each.kind for each in watched.run(1, 1, count=30).found] == ["time"]
