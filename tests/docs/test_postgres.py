"""The blocks of the documentation that need a PostgreSQL server run, beside one that has the RFD's tables with rows in a schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..kit.blocks import ROOT, blocks_of, files_with, run_blocks
from ..kit.postgres import Postgres, Schema
from ..kit.postgres import postgres as postgres
from ..kit.world import BUCKET, ID_1, ID_2, OWNER

PAGES = files_with("bash postgres")


def fill(schema: Schema) -> str:
    """A bucket with an object, and one that was deleted; the schema's name."""
    run = schema.connection.execute
    run("INSERT INTO manta_bucket (id, owner, name) VALUES (%s, %s, 'photos')", [BUCKET, OWNER])
    run(
        "INSERT INTO manta_bucket_object (id, owner, bucket_id, name, content_length, sharks) VALUES (%s, %s, %s, 'cat.jpg', 7, %s)",
        [ID_1, OWNER, BUCKET, ["dc1:1.stor", "dc2:7.stor"]],
    )
    run(
        "INSERT INTO manta_bucket_deleted_object (id, owner, bucket_id, name, created, modified, content_length)"
        " VALUES (%s, %s, %s, 'dog.jpg', now(), now(), 3)",
        [ID_2, OWNER, BUCKET],
    )
    (name,) = run("SELECT current_schema()").fetchone() or ("",)
    return str(name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_beside_a_server_run(page: Path, tmp_path: Path, postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> None:
    with postgres.schema() as schema:
        monkeypatch.setenv("MANTA_DSN", postgres.dsn)
        monkeypatch.setenv("MANTA_SCHEMA", fill(schema))
        run_blocks([b for b in blocks_of(page) if b.kind == "bash postgres"], tmp_path, {}, skip=frozenset())


def test_there_is_something_to_run() -> None:
    assert PAGES
