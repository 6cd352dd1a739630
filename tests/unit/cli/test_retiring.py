"""``retire``: a dry run says which writers, ``--yes`` does it, and what cannot be is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from bucketcatalog import Catalog, limits

from ...kit.world import World, obj
from .conftest import Cli


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    """A catalog in a directory of which two writers committed last years ago."""
    world, place = World(), tmp_path / "catalog"
    for name in ("old", "new"):
        world.commit(world.writer(name), ("put", "objects", obj(name)))
    copy = Catalog(place).store
    for info in world.store.list(""):
        copy.put(info.name, world.store.get(info.name))
    return place


def test_a_dry_run_says_which_and_writes_nothing(cli: Cli, catalog: Path) -> None:
    told = cli("retire", catalog, "old")
    assert told.code == 0 and "old, last commit 0 of 2023-11-14" in told.out and "--yes does it" in told.out
    assert not list(catalog.glob("compactor-*"))
    document = cli("retire", catalog, "old", "--json").document
    assert (document["done"], document["checkpoint"], document["writers"][0]["retired"]) == (False, None, False)


def test_yes_retires_and_says_from_when_on_it_is_sealed(cli: Cli, catalog: Path) -> None:
    told = cli("retire", catalog, "old", "new", "--yes", "--writer", "compactor-1")
    assert told.code == 0 and told.out.count("it commits no more") == 2 and "seals what is not yet from 20" in told.out
    document = cli("retire", catalog, "old", "--yes", "--json").document
    assert document["writers"] == [{**document["writers"][0], "writer": "old", "retired": True, "sealed": False}]
    assert document["seals_at"] > limits.SEALED_AFTER and document["checkpoint"]["rows"] == 2
    assert [row["retired"] for row in cli("writers", catalog, "--json").lines if row["writer"] == "old"] == [True]


@pytest.mark.parametrize(("asked", "code", "why"), [("none", 1, "NOT_FOUND"), ("compactor-1", 2, "INVALID_OPTION")])
def test_who_cannot_be_retired_is_refused_by_name(cli: Cli, catalog: Path, asked: str, code: int, why: str) -> None:
    refused = cli("retire", catalog, asked, "--yes")
    assert refused.code == code and refused.err.startswith(f"[{why}]") and asked in refused.err
