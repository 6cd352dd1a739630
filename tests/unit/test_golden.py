"""Golden catalogs: what the script makes shows what it noted, to this build and to one that knows a feature more."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogWarning, UnsupportedFormat
from bucketcatalog.format import sealing
from bucketcatalog.write.writer import Writer

from ..kit.spoiling import resealed

SCRIPT = Path(__file__).parents[2] / "scripts" / "make-golden"
FEATURE = "tomorrow"


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("golden") / "v1"
    subprocess.run([sys.executable, SCRIPT, folder], check=True)
    return folder


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("make_golden", str(SCRIPT))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


@pytest.fixture
def lake(golden: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden / "lake", tmp_path / "lake"))


@contextmanager
def newer_build(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This build with one feature more."""
    with monkeypatch.context() as patch:
        patch.setattr(sealing, "KNOWN_FEATURES", sealing.KNOWN_FEATURES | {FEATURE})
        yield


PLACE = {"owner": "22222222-2222-4222-8222-222222222222", "bucket_id": "33333333-3333-4333-8333-333333333333"}


def put(writer: Writer, name: str) -> None:
    """An object of a writer's, for which nothing has to be looked up."""
    with writer.transaction() as tx:
        tx.put("objects", {**PLACE, "name": name})


def put_by(lake: Path, writer: str, name: str) -> None:
    with Catalog(lake).writer(writer, database="golden") as held:
        put(held, name)


def require_feature(lake: Path, writer: str) -> str:
    """Make a writer's last transaction one that needs the feature; returns its name."""
    path = max(lake.glob(f"{writer}/golden/transactions/*/*.txn"))
    path.write_bytes(resealed(path.read_bytes(), lambda message: message.required_features.append(FEATURE)))
    return path.relative_to(lake).as_posix()


def objects(lake: Path, **options: Any) -> set[str]:
    snapshot = Catalog(lake).snapshot(database="golden", **options)
    return set(snapshot.scan("objects", columns=["name"], where=PLACE).to_arrow()["name"].to_pylist())


def test_every_version_shows_what_was_noted_when_it_was_made(golden: Path, script: ModuleType) -> None:
    shown = json.loads((golden / "shown.json").read_text())
    steps = [noted["step"] for noted in shown.values()]
    assert sorted(steps) == ["changed_since", "checkpointed", "data_table", "deleted", "inventory", "own_table"]
    catalog = Catalog(golden / "lake")
    for version, noted in shown.items():
        found = script.tables_of(catalog.snapshot(database="golden", version=version))
        assert found == {name: rows for name, rows in noted["tables"].items() if name in found}
        assert {*noted["tables"]} == {*found}
    assert list(catalog.verify(database="golden", deep=True)) == []


def test_a_build_with_a_feature_more_reads_both(
    lake: Path, golden: Path, script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_by(lake, "carol", "of a newer build")
    require_feature(lake, "carol")
    with newer_build(monkeypatch):
        assert objects(lake) == {"of a newer build"}
        shown = json.loads((golden / "shown.json").read_text())
        for version, noted in shown.items():
            assert script.tables_of(Catalog(lake).snapshot(database="golden", version=version)) == noted["tables"]


def test_a_build_that_does_not_know_the_feature_refuses_it_by_name_and_reads_on_where_it_is_told_to(lake: Path) -> None:
    put_by(lake, "alice", "of this build")
    put_by(lake, "carol", "of a newer build")
    name = require_feature(lake, "carol")
    with pytest.raises(UnsupportedFormat, match=rf"{name} needs the feature 'tomorrow', which this release does not know"):
        objects(lake)
    with pytest.warns(CatalogWarning, match="tomorrow"):
        assert objects(lake, ignore_corruption=True) == {"of this build"}


def test_older_and_newer_writers_at_once_lose_nothing_of_each_other(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Catalog(lake).writer("bob", database="golden") as older:
        for number in range(3):
            with newer_build(monkeypatch):
                put_by(lake, "carol", f"newer-{number}")
                require_feature(lake, "carol")
            put(older, f"older-{number}")
    with pytest.raises(UnsupportedFormat), Catalog(lake).writer("compactor-old", database="golden") as compactor:
        compactor.checkpoint(scope="all")
    with newer_build(monkeypatch):
        every = {f"{age}-{number}" for age in ("older", "newer") for number in range(3)}
        assert objects(lake) == every
        with Catalog(lake).writer("compactor-new", database="golden") as compactor:
            compactor.checkpoint(scope="all")
        assert objects(lake) == every
