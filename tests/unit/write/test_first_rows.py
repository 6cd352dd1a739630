"""What the first transaction of a table can say of its rows, while the database knows nothing of the table."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import Catalog, DataCollected, InvalidRows

from ...kit.world import BUCKET, World, messages, names, proto, rows

SOURCE = proto(
    """message Row {
      option (table) = { name: "own.rows" key: "name" id: "id" data_reference: "path" };
      string name = 1; optional string path = 3;
      optional bytes id = 2 [(column) = {type: LOGICAL_TYPE_UUID default: COLUMN_DEFAULT_INCARNATION}];
    }"""
)


@pytest.fixture
def catalog(world: World) -> Catalog:
    catalog = world.catalog()
    catalog.register(messages(SOURCE)["Row"])
    return catalog


def formed(form: str, *given: dict[str, Any]) -> Any:
    return list(given) if form == "rows" else pa.Table.from_pylist(list(given))


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_ids_of_the_first_rows_are_derived(world: World, catalog: Catalog, form: str) -> None:
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "own.rows", formed(form, {"name": "a"}, {"name": "b"})))
        first = rows(world.snapshot(), "own.rows", ["id"])
        world.commit(writer, ("put", "own.rows", formed(form, {"name": "a"}, {"name": "b"})))
    assert rows(world.snapshot(), "own.rows", ["id"]) == first
    assert len({row["id"] for row in first}) == 2 and {uuid.UUID(row["id"]).version for row in first} == {5}


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_where_there_are_no_rows_none_is_found(world: World, catalog: Catalog, form: str) -> None:
    with world.writer(catalog=catalog) as writer, writer.transaction() as tx:
        with pytest.raises(InvalidRows, match=r"Row 0 for table 'own\.rows' names no live version by its id"):
            tx.update("own.rows", formed(form, {"name": "a", "id": BUCKET}))
        of = {"name": "a", "_version": f"{BUCKET}:0"}
        with pytest.raises(DataCollected, match="the version is not there"):
            tx.put("own.rows", formed(form, {"name": "b", "id": BUCKET, "path": "p"}), data_of=formed(form, of))
        tx.delete("own.rows", formed(form, {"name": "a", "id": BUCKET}))
        tx.put("own.rows", formed(form, {"name": "c", "id": BUCKET}))
    assert names(world.snapshot(), "own.rows") == ["c"]
