"""Zeros in columns without presence, which a row that is carried one by one cannot tell from unset: whatever they may mean is kept."""

from __future__ import annotations

from itertools import product
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.maintain.restore import plan_restore

from ....kit.collecting import Yard, reaped
from ....kit.world import HOUR, messages, names, proto, rows

SOURCE = """
message Holder {
  option (table) = { name: "own.holder" key: "name" id: "id" };
  string name = 1; PRESENCE int64 id = 2; optional bool external = 3;
}
message Piece {
  option (table) = {
    name: "own.piece" key: "name" data_reference: "path" data_reference: "shard" parent: { table: "own.holder" field: "holder" }
  };
  string name = 1; optional string path = 2; uint32 shard = 3; PRESENCE int64 holder = 4;
}
message Note { option (table) = { name: "own.note" key: "name" data_reference: "file" }; string name = 1; string file = 2; }
"""
TYPES = {"shard": pa.uint32()}
FORMS = list(product(("row", "columns"), repeat=2))


def formed(form: str, row: dict[str, Any]) -> Any:
    return row if form == "row" else pa.table({name: pa.array([value], TYPES.get(name)) for name, value in row.items()})


def put(yard: Yard, *calls: tuple[str, str, Any], presence: str = "", checkpoint: bool = False) -> None:
    """A commit, after which what it says is in a checkpoint, or is not."""
    declared = messages(proto(SOURCE.replace("PRESENCE", presence))).values()
    with yard.world.writer() as writer:
        yard.world.commit_unasked(writer, declared, *calls)
        if checkpoint:
            writer.checkpoint()


def collected(yard: Yard) -> tuple[Collected, list[Any]]:
    """A collection a day later, and what it has deleted."""
    yard.world.clock.tick(25 * HOUR)
    asked: list[Any] = []

    def deleter(batch: pa.Table) -> list[bool]:
        asked.extend(tuple(row.values()) for row in batch.to_pylist())
        return [True] * len(batch)

    return yard.collected(deleter=deleter), asked


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_data_that_a_zero_is_part_of_the_name_of_stays_while_a_row_is_live_that_names_it(
    yard: Yard, forms: tuple[str, str], checkpoint: bool
) -> None:
    for form, name in zip(forms, ("live", "dead"), strict=True):
        put(yard, ("put", "own.piece", formed(form, {"name": name, "path": "p", "shard": 0, "holder": 7})), checkpoint=checkpoint)
    put(yard, ("delete", "own.piece", {"name": "dead"}))
    done, asked = collected(yard)
    assert (done.purged, done.shared, asked) == (1, 1, [])
    put(yard, ("delete", "own.piece", {"name": "live"}))
    done, asked = collected(yard)
    assert (done.purged, done.deleted, asked) == (1, 1, [("p", 0)])


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_row_whose_id_is_a_zero_keeps_the_data_of_its_children(yard: Yard, forms: tuple[str, str], checkpoint: bool) -> None:
    put(
        yard,
        ("put", "own.holder", formed(forms[0], {"name": "h", "id": 0, "external": True})),
        ("put", "own.piece", formed(forms[1], {"name": "a", "path": "p", "shard": 1, "holder": 0})),
        checkpoint=checkpoint,
    )
    put(yard, ("delete", "own.piece", {"name": "a"}))
    done, asked = collected(yard)
    assert (done.purged, done.external, asked) == (1, 1, [])


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_row_can_be_named_by_an_id_that_is_a_zero(yard: Yard, forms: tuple[str, str], checkpoint: bool) -> None:
    put(yard, ("put", "own.holder", formed(forms[0], {"name": "h", "id": 0})), checkpoint=checkpoint)
    put(yard, ("update", "own.holder", formed(forms[1], {"name": "h", "id": 0, "external": True})), checkpoint=checkpoint)
    assert rows(yard.world.snapshot(), "own.holder") == [{"name": "h", "id": 0, "external": True}]
    put(yard, ("delete", "own.holder", formed(forms[1], {"name": "h", "id": 1})))
    assert names(yard.world.snapshot(), "own.holder") == ["h"]
    put(yard, ("delete", "own.holder", formed(forms[1], {"name": "h", "id": 0})))
    assert names(yard.world.snapshot(), "own.holder") == []
    put(
        yard,
        ("put", "own.holder", formed(forms[0], {"name": "i", "id": 0})),
        ("delete", "own.holder", formed(forms[1], {"name": "i", "id": 0})),
    )
    assert names(yard.world.snapshot(), "own.holder") == []


@pytest.mark.parametrize("forms", FORMS, ids="-".join)
@pytest.mark.parametrize("presence", ["", "optional"])
def test_a_zero_that_may_not_have_been_said_ends_nothing(yard: Yard, forms: tuple[str, str], presence: str) -> None:
    holders, pieces = ({"name": "h", "id": 0}, {"name": "i", "id": 1}), ({"name": "a", "holder": 0}, {"name": "b", "holder": 1})
    calls = [("put", "own.holder", formed(forms[0], row)) for row in holders]
    put(yard, *calls, *(("put", "own.piece", formed(forms[1], row)) for row in pieces), presence=presence)
    put(yard, ("delete", "own.holder", [{"name": "h"}, {"name": "i"}]), presence=presence)
    yard.world.clock.tick(25 * HOUR)
    assert reaped(yard.world).rows["own.piece"] == (2 if presence else 1)
    assert names(yard.world.snapshot(), "own.piece") == ([] if presence else ["a"])
    planned = plan_restore(yard.world.catalog().database("default"), "own.piece", None, "w@0")
    assert (planned.put, planned.ended_parents) == ((2, 2) if presence else (1, 1))


@pytest.mark.parametrize("presence", ["", "optional"])
def test_rows_are_put_back_whose_parent_may_not_have_been_said(yard: Yard, presence: str) -> None:
    put(yard, ("put", "own.holder", {"name": "h", "id": 0}), ("put", "own.piece", {"name": "a", "holder": 0}), presence=presence)
    put(yard, ("delete", "own.piece", {"name": "a"}), ("delete", "own.holder", {"name": "h"}), presence=presence)
    planned = plan_restore(yard.world.catalog().database("default"), "own.piece", None, "w@0")
    assert (planned.put, planned.ended_parents) == (1, 1 if presence else 0)


@pytest.mark.parametrize("form", ["row", "columns"])
@pytest.mark.parametrize("row", [{"name": "a"}, {"name": "a", "file": ""}], ids=["unset", "empty"])
def test_a_text_without_presence_that_is_empty_names_no_data(yard: Yard, form: str, row: dict[str, Any]) -> None:
    put(yard, ("put", "own.note", formed(form, row)), ("put", "own.note", formed(form, {"name": "b", "file": "f"})))
    put(yard, ("delete", "own.note", [{"name": "a"}, {"name": "b"}]))
    done, asked = collected(yard)
    assert (done.purged, done.deleted, asked) == (2, 1, [("f",)])
