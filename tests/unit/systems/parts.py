"""Rows of the system of boxes whose data lies in the catalog, put with and without the system, and paths that nobody can delete."""

from __future__ import annotations

from typing import Any

from bucketcatalog import Catalog

from ...kit.world import World, messages, proto

UUID = "0190b0b0-0000-7000-8000-000000000000"
ELSEWHERE = [
    "",
    "/",
    "/tmp/x.bin",
    "../..",
    "x/b.bin",
    "v/default/data",
    "v/default/data/",
    "v/default/datum/x",
    "v/other/data/x",
    "v/default/segments/x",
    "v//data/x",
    "/v/default/data/x",
    "./v/default/data/x",
    ".v/default/data/x",
    "v v/default/data/x",
    "v/default/data/../x",
    "v/default/data/x/..",
    "v/default/data/./x",
    "v/default/data//x",
    "v/default/data/x/",
    "v/default/data/.put-x",
    f"v/default/data/.nfs{'0' * 24}",
    "v/default/data/a\x00b",
    f"v/default/data/segments/{UUID}.parquet",
    f"v/default/data/x/transactions/{'0' * 20}/{UUID}.txn",
    f"v/default/data/newest/{'9' * 20}-{UUID}",
    "s3://bucket/v/default/data/x",
]
"""What nobody can delete as data of the database ``default``."""


def part(path: str) -> dict[str, Any]:
    return {"box": "a", "path": path, "rows": 1}


def knowing(world: World, source: str) -> Catalog:
    catalog = world.catalog()
    catalog.register(messages(proto(source)).values())
    return catalog


PART = """message Part {
  option (table) = { name: "boxes.parts" key: "box" key: "path" data_reference: "path" };
  string box = 1; string path = 2; int64 rows = 3;
}"""
