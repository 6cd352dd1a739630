"""What the search in tests/property has found, as the smallest case that shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from .helpers import OWNER, World

ID = "aaaaaaaa-0000-4000-8000-000000000001"


@pytest.mark.parametrize("form", [list, pa.Table.from_pylist], ids=["dicts", "Arrow"])
def test_bucket_put_again_in_one_call_keeps_the_id_that_the_call_gave_it(form: Callable[[Any], Any]) -> None:
    """The second PUT finds a live version, the first, so it gets that one's id (docs/spec/ids.md, rule 1)."""
    world = World()
    world.commit(world.writer(), ("put", "buckets", form([{"owner": OWNER, "name": "b", "id": id_} for id_ in (ID, None)])))
    (bucket,) = world.snapshot().scan("buckets", columns=["id"]).to_arrow().to_pylist()
    assert bucket["id"] == ID
