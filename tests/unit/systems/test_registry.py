"""Systems that cannot be used: a typed error where one is asked for by name, a warning where all are looked at, and the engine goes on."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import EntryPoint
from pathlib import Path

import pyarrow as pa
import pytest

from bucketcatalog import BrokenSystem, Catalog, CatalogWarning, IncompatibleTable, InvalidOption
from bucketcatalog.cli import run
from bucketcatalog.registry import IN_CATALOG, System
from bucketcatalog.registry.installed import Registry, system
from bucketcatalog.registry.own_code import OwnWrites
from bucketcatalog.registry.system import system_names

from ...kit.installing import boxes, installed
from ...kit.world import OWNER, World, declaring

OF = "from bucketcatalog.registry import System\nfrom bucketcatalog.query.views import SqlView, View\n"
CONSTANT = f"{OF}import pyarrow as pa\nfrom bucketcatalog.query.views import Computed\nONE = Computed(pa.int64(), (), len)\n"
BROKEN = [
    ("raises", "raise RuntimeError('no')", "RuntimeError: no"),
    ("lacks", "OTHER = 1", "AttributeError"),
    ("other", "SYSTEM = 'boxes'", "its entry point leads to broken_other:SYSTEM, which is 'boxes' and no System"),
    ("named", f"{OF}SYSTEM = System('else')", "leads to broken_named:SYSTEM, which is a System of another name, 'else'"),
    ("core", f"{OF}import bucketcatalog.v1.tables_pb2 as t\nSYSTEM = System('core', t)", "is not called core.TABLE"),
    ("views", f"{OF}SYSTEM = System('views', views=(View('log', 'objects', {{}}),))", "'log'"),
    ("gone", f"{OF}SYSTEM = System('gone', views=(View('deleted_x', 'objects', {{}}),))", "'deleted_x'"),
    ("spaced", f"{OF}SYSTEM = System('spaced', views=(View('a b', 'objects', {{}}),))", "'a b'"),
    ("takes", f"{OF}SYSTEM = System('takes', collects={{'objects': 'path'}})", "no table of its own"),
    (
        "twin",
        f"{OF}v = View('v', 'objects', {{'n': 'name'}})\nSYSTEM = System('twin', views=(v, v))",
        "'v', as another view",
    ),
    ("sourceless", f"{OF}SYSTEM = System('sourceless', views=(View('v', 'nope', {{'a': 'a'}}),))", "shows 'nope'"),
    ("stacked", f"{OF}SYSTEM = System('stacked', views=(View('v', 'v', {{'a': 'a'}}),))", "shows 'v'"),
    ("about", f"{OF}SYSTEM = System('about', views=(View('v', 'log', {{'a': 'writer'}}),))", "shows 'log'"),
    ("unknown", f"{OF}SYSTEM = System('unknown', views=(View('v', 'objects', {{'a': 'nope'}}),))", "no column 'nope'"),
    ("asks", f"{OF}SYSTEM = System('asks', views=(View('v', 'objects', {{'a': 'name'}}, {{'zzz': 1}}),))", "no column 'zzz'"),
    (
        "misfit",
        f"{OF}SYSTEM = System('misfit', views=(View('v', 'objects', {{'a': 'name'}}, {{'content_length': 'x'}}),))",
        "does not fit",
    ),
    ("hides", f"{OF}SYSTEM = System('hides', views=(View('v', 'objects', {{'_writer': 'name'}}),))", "'_writer'"),
    ("bare", f"{OF}SYSTEM = System('bare', views=(View('v', 'objects', {{}}),))", "has no columns"),
    ("nameless", f"{OF}SYSTEM = System('nameless', names=('',))", "'' cannot stand before the dot of a name"),
    ("dotted", f"{OF}SYSTEM = System('dotted', names=('fine', 'a.b'))", "'a.b' cannot stand before the dot"),
    ("ended", f"{OF}SYSTEM = System('ended', names=('deleted_s',))", "'deleted_s' cannot stand before the dot"),
    ("deleted_it", f"{OF}SYSTEM = System('deleted_it')", "'deleted_it' cannot stand before the dot"),
    ("taker", f"{OF}SYSTEM = System('taker', names=('core',))", "'core' is the name of another system"),
    (
        "constant",
        f"{CONSTANT}SYSTEM = System('constant', views=(View('v', 'objects', {{'a': ONE}}),))",
        "computes 'a' of no column",
    ),
    ("braces", f"{OF}SYSTEM = System('braces', views=(SqlView('v', 'select {{1}}'),))", "'1' in braces"),
]


@pytest.fixture
def world() -> World:
    world = World()
    world.commit(world.writer(), ("put", "buckets", {"owner": OWNER, "name": "b"}))
    return world


@pytest.mark.parametrize(("name", "source", "why"), BROKEN, ids=[name for name, _, _ in BROKEN])
def test_a_system_that_cannot_be_used_is_an_error_where_it_is_asked_for_and_a_warning_elsewhere(
    name: str,
    source: str,
    why: str,
    world: World,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(installed(tmp_path / "p", name, f"broken_{name}:SYSTEM", source))
    if name == "taker":
        monkeypatch.syspath_prepend(installed(tmp_path / "c", "core", "core_fine:SYSTEM", f"{OF}SYSTEM = System('core')"))
    with pytest.raises(BrokenSystem, match=f"The system '{name}' cannot be used") as caught:
        system(name)
    assert why in str(caught.value)
    with pytest.raises(BrokenSystem):
        world.catalog().run_job(f"{name}.job")
    snapshot = world.snapshot()
    with pytest.warns(CatalogWarning, match=name):
        assert "buckets" in snapshot.tables
    assert "buckets" in snapshot.tables  # said once
    assert run([name, "do"]) == 1
    assert capsys.readouterr().err.startswith("[BROKEN_SYSTEM] ")


def test_two_packages_of_one_name_are_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("p", "q"):
        monkeypatch.syspath_prepend(
            installed(tmp_path / folder, "twice", f"broken_{folder}:SYSTEM", f"{OF}SYSTEM = System('twice')")
        )
    (tmp_path / "q" / "bucketcatalog_twice-1.0.0.dist-info").rename(tmp_path / "q" / "another_twice-1.0.0.dist-info")
    (tmp_path / "q" / "another_twice-1.0.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: another-twice\nVersion: 1\n"
    )
    with pytest.raises(BrokenSystem, match="broken_p:SYSTEM, broken_q:SYSTEM"):
        system("twice")


@pytest.mark.parametrize("part", ["reads", "writes", "jobs", "commands"])
def test_code_that_cannot_be_imported_is_an_error_of_the_system_that_names_it(
    part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"{OF}SYSTEM = System('hollow', {part}='nowhere_at_all:X')"
    monkeypatch.syspath_prepend(installed(tmp_path / part, "hollow", f"hollow_{part}:SYSTEM", source))
    found = system("hollow")
    assert found is not None
    with pytest.raises(
        BrokenSystem, match=f"field {part} names 'nowhere_at_all:X', which cannot be imported: ModuleNotFoundError"
    ):
        found.part(part)


def test_no_system_is_imported_for_what_the_engine_has(tmp_path: Path) -> None:
    source = "raise RuntimeError('imported')"
    folder = installed(tmp_path / "p", "loud", "broken_loud:SYSTEM", source)
    code = """if True:
        import sys
        from bucketcatalog import Catalog
        from bucketcatalog.cli import run
        cat = Catalog(sys.argv[1])
        with cat.writer("w") as w, w.transaction() as tx:
            tx.put("buckets", {"owner": "%s", "name": "b"})
        cat.snapshot().scan("deleted_buckets").to_arrow()
        sys.exit(run(["ls", sys.argv[1]]) or run(["log", sys.argv[1]]) or "broken_loud" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code % OWNER, tmp_path / "c"],
        env={**__import__("os").environ, "PYTHONPATH": f"{folder}:{':'.join(sys.path)}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_names_before_the_dot_belong_to_who_declares_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert system_names() == ["iox", "manta"]
    assert Registry().writes("packed.a") is None
    for folder in boxes(tmp_path):
        monkeypatch.syspath_prepend(folder)
    assert system_names() == ["boxes", "iox", "manta"]
    assert Registry().writes("packed.a") is not None
    assert Registry().writes("boxes.parts") is None
    assert Registry().writes("packed") is None


def test_names_that_a_system_reserves_are_no_table_s(tmp_path: Path) -> None:
    """Neither before there is such a data table, nor once there is one, whose rows it would hide."""
    catalog = Catalog(tmp_path)
    module = declaring('message R { option (table) = { name: "data.cpu" key: "k" }; string k = 1; }')
    ways = (lambda: catalog.create_table("data.cpu", {"k": pa.string()}, key=["k"]), lambda: catalog.register(module))
    for _ in range(2):
        for way in ways:
            with pytest.raises(
                IncompatibleTable, match=r"'data\.cpu': names that begin with 'data\.' are the system 'iox''s"
            ) as caught:
                way()
            assert caught.value.next_step.startswith("Give yours another name.")
        catalog.data("cpu", writer="w").append({"k": "a"})
    assert catalog.data("cpu").scan().to_arrow().to_pylist() == [{"k": "a"}] * 2
    assert catalog.create_table("database.cpu", {"k": pa.string()}, key=["k"]).committed is not None


@pytest.mark.usefixtures("with_boxes")
def test_the_table_of_a_system_is_not_made_of_a_schema(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "lake")
    with pytest.raises(IncompatibleTable, match=r"'boxes\.parts' is the system 'boxes''s"):
        catalog.create_table("boxes.parts", {"k": pa.int64()}, key=["k"])
    assert catalog.create_table("boxes.labels", {"k": pa.int64()}, key=["k"]).committed is not None


def test_a_system_that_is_not_installed_cannot_be_shown(world: World) -> None:
    with pytest.raises(InvalidOption, match="No system 'chests' is installed"):
        Registry().view_names(world.snapshot(), ["chests"])


RAISING = """
class Raising:
    def names(self, snapshot):
        return 1 / 0
    def read(self, snapshot, name, columns, where):
        return {}[name] if name == "odd.x" else None
READS = Raising()
"""
TAKING = """
class Taking:
    def takes(self, name):
        return True
WRITES = Taking()
"""


@pytest.mark.usefixtures("with_boxes")
def test_what_systems_cannot_do_is_a_warning_where_all_are_looked_at(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {
        "hollow": f"{OF}SYSTEM = System('hollow', reads='nowhere_at_all:X')",
        "odd": f"{OF}{RAISING}SYSTEM = System('odd', reads='broken_odd:READS')",
    }
    for name, source in sources.items():
        monkeypatch.syspath_prepend(installed(tmp_path / name, name, f"broken_{name}:SYSTEM", source))
    world.commit(world.writer("v"), ("put", "boxes.boxes", {"name": "a", "grams": 500}))
    snapshot = world.snapshot()
    with pytest.warns(CatalogWarning) as told:
        assert "box_weights" in snapshot.tables
    assert {"hollow", "odd"} == {name for name in sources for each in told if f"'{name}'" in str(each.message)}
    assert snapshot.scan("box_weights").to_arrow()["kilograms"].to_pylist() == [0.5]
    with pytest.raises(BrokenSystem, match=r"'odd' failed at its read of 'odd\.x': KeyError: 'odd\.x'"):
        snapshot.scan("odd.x")


def test_one_view_of_two_systems_is_that_of_the_first_and_a_warning(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, column in (("first", "name"), ("second", "owner")):
        source = f"{OF}SYSTEM = System('{name}', views=(View('shared_view', 'buckets', {{'x': '{column}'}}),))"
        monkeypatch.syspath_prepend(installed(tmp_path / name, name, f"shared_{name}:SYSTEM", source))
    left_out = (
        "The view 'shared_view' of the system 'second' is left out, and nothing else of that system: .* the view of 'first'"
    )
    with pytest.warns(CatalogWarning, match=left_out):
        assert world.snapshot().scan("shared_view").to_arrow()["x"].to_pylist() == ["b"]


@pytest.mark.usefixtures("with_boxes")
def test_rows_of_a_table_go_to_the_table_whoever_takes_its_name(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"{OF}{TAKING}SYSTEM = System('hijack', names=('packed',), writes='broken_hijack:WRITES')"
    monkeypatch.syspath_prepend(installed(tmp_path / "h", "hijack", "broken_hijack:SYSTEM", source))
    world.commit(world.writer("v"), ("put", "boxes.boxes", {"name": "a"}))
    assert world.snapshot().scan("boxes.boxes").to_arrow().num_rows == 1
    with pytest.raises(BrokenSystem, match="so does the system 'boxes'"):
        Registry().writes("packed.a")


@pytest.mark.usefixtures("with_boxes")
def test_a_system_that_takes_the_name_of_another_is_the_one_that_cannot_be_used(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = f"{OF}{TAKING}SYSTEM = System('aaa', names=('boxes', 'packed'), writes='broken_aaa:WRITES')"
    monkeypatch.syspath_prepend(installed(tmp_path / "a", "aaa", "broken_aaa:SYSTEM", source))
    world.commit(world.writer("v"), ("put", "boxes.boxes", {"name": "a"}))
    assert world.snapshot().scan("boxes.boxes").to_arrow().num_rows == 1
    registry = Registry()
    with pytest.warns(CatalogWarning, match="'aaa' cannot be used: 'boxes' is the name of another system"):
        writes = registry.writes("packed.a")
    assert isinstance(writes, OwnWrites) and (writes.system, type(writes.writes).__name__) == ("boxes", "PackedWrites")
    assert registry.writes("boxes.nothing") is None


@pytest.mark.parametrize("named", [["path", "off"], ["off"]])
def test_data_in_the_catalog_is_named_by_one_string(named: list[str]) -> None:
    reference = " ".join(f'data_reference: "{name}"' for name in named)
    options = f'option (table) = {{ name: "two.t" key: "k" {reference} }};'
    body = f"message T {{ {options} string k = 1; optional string path = 2; optional int64 off = 3; }}"
    with pytest.raises(BrokenSystem, match="is not one string"):
        System("two", declaring(body), collects={"two.t": IN_CATALOG}).check()


@pytest.mark.usefixtures("with_boxes")
def test_a_system_is_looked_for_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(name: str, among: Iterable[EntryPoint]) -> System | None:
        asked.append(name)
        return system(name, among)

    monkeypatch.setattr("bucketcatalog.registry.installed.system", counted)
    writer = world.writer("v")
    for number in range(3):
        world.commit(writer, ("put", "boxes.boxes", {"name": f"{number}"}))
    assert asked == ["boxes"]
