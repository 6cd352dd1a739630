"""Tables that name the same data by other columns: what one of them needs nobody deletes for another."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pytest

from bucketcatalog import Catalog
from bucketcatalog.maintain.gc.collect import Collected, InProcess
from bucketcatalog.maintain.gc.data import DataPlace, Deleters, Deleting, InCatalog
from bucketcatalog.store.local import LocalStore
from bucketcatalog.store.wrappers import Wrapped

from ....kit.world import HOUR, Clock, World, declaring

PATH = "good/default/data/x.parquet"
AN_ID = "aaaaaaaa-0000-4000-8000-000000000001"
UUID, STRING = "optional bytes {} = 2 [(column).type = LOGICAL_TYPE_UUID];", "optional string {} = 2;"
INTEGER, WIDER, BYTES = "optional int32 {} = 2;", "optional uint64 {} = 2;", "optional bytes {} = 2;"


def message(name: str, *columns: tuple[str, str]) -> str:
    """A table ``own.NAME`` whose rows name data by these columns, each a name and a field as above."""
    fields = " ".join(text.replace("= 2", f"= {2 + number}").format(of) for number, (of, text) in enumerate(columns))
    named = " ".join(f'data_reference: "{of}"' for of, _ in columns)
    return f'message {name.title()} {{ option (table) = {{ name: "own.{name}" key: "k" {named} }}; string k = 1; {fields} }}'


def collected(world: World, **options: Any) -> Collected:
    """A run that publishes, the wait, and the run that collects."""
    for hours in (26, 7):
        world.clock.tick(hours * HOUR)
        done = Catalog(world.store).collect(dry_run=False, writer="maintainer-1", clock=world.clock, **options)
    return done


def used_again(world: World, *tables: str, live: dict[str, Any], ended: dict[str, Any]) -> None:
    """A row of ``own.live`` stays, and one of ``own.ended`` ends, by who has a say in anybody's data."""
    catalog = world.catalog()
    catalog.register(declaring(*tables))
    writer = world.writer("maintainer-w", catalog=catalog)
    world.commit(writer, ("put", "own.live", {"k": "a", **live}), ("put", "own.ended", {"k": "b", **ended}))
    world.commit(writer, ("delete", "own.ended", {"k": "b"}))


def in_catalog(world: World, *tables: str) -> Any:
    by_table = {table: InCatalog(world.store, "default") for table in tables}
    return lambda _: InProcess(Deleters(by_table))


def objects(world: World) -> list[str]:
    return [info.name for info in world.store.list("good/")]


@pytest.mark.parametrize("says", [["own.live", "own.ended"], ["own.ended"], []], ids=["both", "one", "a callable"])
def test_a_path_in_the_catalog_is_one_whatever_its_column_is_called(says: Sequence[str]) -> None:
    world = World()
    world.store.put(PATH, b"rows")
    tables = message("live", ("path", STRING)), message("ended", ("manifest", STRING))
    used_again(world, *tables, live={"path": PATH}, ended={"manifest": PATH})

    def deleter(batch: pa.Table) -> list[bool]:
        for name in batch.column(0).to_pylist():
            world.store.delete(name)
        return [True] * len(batch)

    options: Any = {"workers": in_catalog(world, *says)} if says else {"deleter": deleter}
    done = collected(world, **options)
    assert (done.shared, done.purged, done.garbage) == (1, 1, 0) and objects(world) == [PATH]
    world.commit(world.writer("maintainer-w"), ("delete", "own.live", {"k": "a"}))
    if says != ["own.ended"]:
        assert collected(world, **options).deleted == 1 and not objects(world)


OTHERWISE: dict[str, tuple[list[tuple[str, str]], list[tuple[str, str]], dict[str, Any], dict[str, Any]]] = {
    "text and a uuid": ([("of", STRING)], [("of", UUID)], {"of": AN_ID}, {"of": AN_ID}),
    "a uuid and text": ([("of", UUID)], [("of", STRING)], {"of": AN_ID}, {"of": AN_ID}),
    "text and a number": ([("of", STRING)], [("of", INTEGER)], {"of": "7"}, {"of": 7}),
    "a number and a wider one": ([("of", WIDER)], [("of", INTEGER)], {"of": 7}, {"of": 7}),
    "bytes and text": ([("of", BYTES)], [("of", STRING)], {"of": b"a\xc3\xa4"}, {"of": "a\u00e4"}),
    "another order": (
        [("of", UUID), ("to", STRING)],
        [("to", STRING), ("of", UUID)],
        {"of": AN_ID, "to": "7"},
        {"of": AN_ID, "to": "7"},
    ),
    "another order and type": (
        [("of", STRING), ("to", STRING)],
        [("to", INTEGER), ("of", UUID)],
        {"of": AN_ID, "to": "7"},
        {"of": AN_ID, "to": 7},
    ),
}


@pytest.mark.parametrize("what", OTHERWISE)
def test_what_has_one_name_at_a_url_is_one_whatever_the_types_and_order_of_its_columns(what: str, tmp_path: Path) -> None:
    live, ended, by_live, by_ended = OTHERWISE[what]
    world = World()
    used_again(world, message("live", *live), message("ended", *ended), live=by_live, ended=by_ended)
    name = "/".join(value.decode() if isinstance(value, bytes) else str(value) for _, value in sorted(by_live.items()))
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("data")
    url = f"{tmp_path}/{'/'.join(f'{{{column}}}' for column in sorted(by_live))}"
    done = collected(world, data_url=url)
    assert (done.shared, done.purged, done.garbage) == (1, 1, 0) and file.exists()
    world.commit(world.writer("maintainer-w"), ("delete", "own.live", {"k": "a"}))
    assert collected(world, data_url=url).deleted == 1 and not file.exists()


@pytest.mark.parametrize(
    ("live", "ended", "by_live", "by_ended"),
    [
        ([("of", INTEGER)], [("to", INTEGER)], {"of": 7}, {"to": 7}),
        ([("of", STRING)], [("to", INTEGER)], {"of": "7"}, {"to": 7}),
        ([("of", STRING), ("at", STRING)], [("to", STRING), ("at", STRING)], {"of": "7", "at": "7"}, {"to": "7", "at": "7"}),
        ([("of", STRING), ("to", STRING)], [("of", STRING), ("to", STRING)], {"of": "7", "to": "8"}, {"of": "8", "to": "7"}),
        ([("of", BYTES)], [("of", STRING)], {"of": b"\xff"}, {"of": "\u00ff"}),
    ],
)
def test_what_no_place_can_name_alike_is_not_kept(live: Any, ended: Any, by_live: Any, by_ended: Any) -> None:
    world = World()
    used_again(world, message("live", *live), message("ended", *ended), live=by_live, ended=by_ended)
    done = collected(world, deleter=lambda batch: [batch.to_pylist() == [by_ended]])
    assert (done.shared, done.deleted, done.purged) == (0, 1, 1)


class Timed(Wrapped):
    """A store with the clock of a world."""

    def __init__(self, inner: LocalStore) -> None:
        super().__init__(inner)
        self.clock = Clock()

    def now_us(self, below: str | None = None) -> int:
        return self.clock()


INSIDE: dict[str, tuple[list[tuple[str, str]], dict[str, Any], str, str]] = {
    "within": ([("of", UUID), ("to", INTEGER)], {"of": AN_ID, "to": 7}, "lake/good/default/data/{of}/{to}", f"{AN_ID}/7"),
    "encoded": ([("of", STRING), ("to", STRING)], {"of": "a b", "to": "/"}, "lake/good/default/data/{to}/{of}", "%2F/a%20b"),
    "above": ([("of", STRING)], {"of": "lake/good/default/data/x/7"}, "{of}", "x/7"),
    "one column": ([("path", STRING)], {"path": "x/7"}, "lake/good/default/data/{path}", "x/7"),
}


@pytest.mark.parametrize("by_url", [True, False], ids=["the url's ends", "the path's ends"])
@pytest.mark.parametrize("how", INSIDE)
def test_a_url_in_the_catalog_names_what_a_path_does(how: str, by_url: bool, tmp_path: Path) -> None:
    columns, of, url, below = INSIDE[how]
    world = World(store := Timed(LocalStore(tmp_path / "lake")))
    world.clock = store.clock
    store.put(name := f"good/default/data/{below}", b"data")
    path: Any = ([("manifest", STRING)], {"manifest": name})
    live, ended = (path, (columns, of)) if by_url else ((columns, of), path)
    used_again(world, message("live", *live[0]), message("ended", *ended[0]), live=live[1], ended=ended[1])
    world.commit(world.writer("maintainer-w"), ("put", "own.ended" if by_url else "own.live", {"k": "of no data"}))
    by_table = {"own.live" if by_url else "own.ended": InCatalog(store, "default")}
    deleters = Deleters(by_table, Deleting(DataPlace.open(f"{tmp_path}/{url}", None, store)))
    done = collected(world, workers=lambda _: InProcess(deleters))
    assert (done.shared, done.purged, done.garbage) == (1, 1, 0) and objects(world) == [name]
    world.commit(world.writer("maintainer-w"), ("delete", "own.live", {"k": "a"}))
    assert collected(world, workers=lambda _: InProcess(deleters)).deleted == 1 and not objects(world)


OTHER_ID = "bbbbbbbb-0000-4000-8000-000000000002"
VALUES: dict[str, list[Any]] = {
    STRING: ["7", "8", AN_ID, "\u00e4/ b", "%2F"],
    UUID: [AN_ID, OTHER_ID],
    INTEGER: [7, 8],
    BYTES: [b"7", AN_ID.encode(), "\u00e4/ b".encode()],
}


@pytest.mark.parametrize("is_in_catalog", [False, True])
def test_of_tables_of_all_types_and_orders_the_data_stays_whose_name_a_live_row_has(is_in_catalog: bool, tmp_path: Path) -> None:
    chance = random.Random(is_in_catalog)
    world = World(store := Timed(LocalStore(tmp_path / "lake")))
    world.clock, folder = store.clock, tmp_path / ("lake/good/default/data" if is_in_catalog else "data")
    catalog, live, everything = world.catalog(), set[str](), set[str]()
    gone: list[tuple[Any, ...]] = []
    puts: list[tuple[Any, ...]] = []
    for at, (of, to) in enumerate(product(VALUES, VALUES)):
        columns = [("of", of), ("to", to)][:: chance.choice([1, -1])]
        catalog.register(declaring(message(f"t{at}", *columns)))
        rows = [{"k": f"{n}", "of": a, "to": b} for n, (a, b) in enumerate(product(VALUES[of], VALUES[to]))]
        kept = [row for row in rows if chance.random() < 0.03]
        puts.append(("put", f"own.t{at}", rows))
        gone.append(("delete", f"own.t{at}", [{"k": row["k"]} for row in rows if row not in kept]))
        everything |= {named(row) for row in rows}
        live |= {named(row) for row in kept}
    if is_in_catalog:
        catalog.register(declaring(message("paths", ("path", STRING))))
        found = sorted(everything)
        rows = [{"k": name, "path": f"good/default/data/{name}"} for name in found]
        puts.append(("put", "own.paths", rows))
        kept_names = set(found[::9])
        gone.append(("delete", "own.paths", [{"k": name} for name in found if name not in kept_names]))
        live |= kept_names
    for name in everything:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    world.commit(world.writer("maintainer-w", catalog=catalog), *puts)
    world.commit(world.writer("maintainer-w", catalog=catalog), *gone)
    deleters = Deleters(
        {"own.paths": InCatalog(store, "default")}, Deleting(DataPlace.open(f"{folder}/{{of}}/{{to}}", None, store))
    )
    done = collected(world, workers=lambda _: InProcess(deleters))
    assert not done.failed and not done.left
    assert {file.read_text() for file in folder.rglob("*") if file.is_file()} == live


def named(row: dict[str, Any]) -> str:
    """What the object of the row's data is called at the URL."""
    values = (row[column] for column in ("of", "to"))
    return "/".join(quote(value if isinstance(value, bytes) else str(value), safe="") for value in values)


@pytest.mark.parametrize("url", ["{of}", "{to}/{of}"])
def test_bytes_that_are_no_text_name_no_object_and_the_rest_is_collected(tmp_path: Path, url: str) -> None:
    world, columns = World(), [("of", BYTES), ("to", STRING)] if "to" in url else [("of", BYTES)]
    catalog = world.catalog()
    catalog.register(declaring(message("ended", *columns)))
    writer = world.writer("maintainer-w", catalog=catalog)
    rows = [{"k": key, **{name: {"of": of, "to": "t"}[name] for name, _ in columns}} for key, of in (("a", b"\xff"), ("b", b"b"))]
    world.commit(writer, ("put", "own.ended", rows))
    world.commit(writer, *(("delete", "own.ended", {"k": key}) for key in "ab"))
    file = tmp_path / url.format(of="b", to="t")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"rows")
    done = collected(world, data_url=f"{tmp_path}/{url}")
    assert (done.deleted, done.left, done.failed) == (1, 1, 0) and not file.exists()
    assert ["no text" in why for why in done.why_left] == [True]
    world.commit(writer, ("put", "own.ended", rows[0]))
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(b"nobody's")
    found = Catalog(world.store).orphans(data_url=f"{tmp_path}/{url}", older_than="0s", force=True)
    assert [orphan.name for orphan in found] == [url.format(of="b", to="t")]
