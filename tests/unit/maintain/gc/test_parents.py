"""Rows of which nobody can tell whose they are, by definitions that no writer of ours commits: read, never ended, their data kept."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.descriptor import Descriptor

from bucketcatalog.maintain.gc.collect import Collected
from bucketcatalog.maintain.restore import plan_restore

from ....kit.collecting import Yard, noting, reaped
from ....kit.world import HOUR, messages, names, proto

STRING = ("optional string {} = 2;", "x")
KINDS: dict[str, tuple[str, Any]] = {
    "double": ("optional double {} = 2;", 1.5),
    "float": ("optional float {} = 2;", 1.5),
    "bool": ("optional bool {} = 2;", True),
    "list": ("repeated string {} = 2;", ["x"]),
    "map": ("map<string, string> {} = 2;", {"x": "y"}),
    "message": ("message M {{ string x = 1; }} optional M {} = 2;", {"x": "y"}),
}
"""What no id can be compared with: a field, and a value of it."""


def declared(of_id: str, of_field: str) -> list[Descriptor]:
    """Holders with such an id, and files whose holder such a field names."""
    found = messages(
        proto(
            f"""
            message Holder {{
              option (table) = {{ name: "own.holder" key: "name" id: "id" }};
              string name = 1; {of_id.format("id")} optional bool external = 3;
            }}
            message File {{
              option (table) = {{
                name: "own.file" key: "name" data_reference: "path" parent: {{ table: "own.holder" field: "holder" }}
              }};
              string name = 1; {of_field.format("holder")} optional string path = 3;
            }}"""
        )
    )
    return [found["Holder"], found["File"]]


CASES = [(kind, side) for kind in KINDS for side in ("id", "field", "both")]


def filled(kind: str, side: str, *, external: bool = True) -> Yard:
    """A holder and three files that have ended, of which one says that it is the holder's; so does one that has not ended."""
    of_id, id_ = KINDS[kind] if side != "field" else STRING
    of_field, holder = KINDS[kind] if side != "id" else STRING
    yard, tables = Yard(), declared(of_id, of_field)
    with yard.world.writer() as writer:
        files = [{"name": "theirs", "path": "p", "holder": holder}, {"name": "nobody's", "path": "q"}, {"name": "dataless"}]
        yard.world.commit_unasked(
            writer,
            tables,
            ("put", "own.holder", {"name": "h", "id": id_, "external": external}),
            ("put", "own.file", [*files, {"name": "live", "holder": holder}]),
        )
        ended = [{"name": file["name"]} for file in files]
        yard.world.commit_unasked(writer, tables, ("delete", "own.file", ended), ("delete", "own.holder", {"name": "h"}))
    yard.world.clock.tick(25 * HOUR)
    return yard


@pytest.fixture(params=CASES, ids="-".join)
def yard(request: pytest.FixtureRequest) -> Yard:
    return filled(*request.param)


def collected(yard: Yard) -> tuple[Collected, list[str]]:
    """A collection, and the paths that it has deleted."""
    asked: list[str] = []
    return yard.collected(deleter=noting(asked, "path")), asked


def test_what_may_be_somebody_elses_is_kept_and_the_rest_is_collected(yard: Yard) -> None:
    done, asked = collected(yard)
    assert (done.purged, done.external, done.deleted, asked) == (3, 1, 1, ["q"])


@pytest.mark.parametrize(("kind", "side"), CASES, ids=str)
def test_where_no_parent_is_somebody_elses_no_row_is(kind: str, side: str) -> None:
    done, asked = collected(filled(kind, side, external=False))
    assert (done.external, done.deleted, sorted(asked)) == (0, 2, ["p", "q"])


def test_no_row_is_ended_whose_parent_nobody_can_tell(yard: Yard) -> None:
    assert reaped(yard.world).rows["own.file"] == 0
    assert names(yard.world.snapshot(), "own.file") == ["live"]


def test_rows_of_which_nobody_can_tell_whose_they_are_are_restored_without_a_parent(yard: Yard) -> None:
    planned = plan_restore(yard.world.catalog().database("default"), "own.file", None, "w@0")
    assert (planned.put, planned.ended_parents) == (3, 0)
