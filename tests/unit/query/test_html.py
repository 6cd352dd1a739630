"""What notebooks show: everything escaped, nothing fetched or run, no row read, and of what is damaged why it cannot be shown."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from bucketcatalog import Catalog, CatalogWarning, CorruptionError, prefix
from bucketcatalog.format.definitions import core_tables
from bucketcatalog.model.html import html_facts, html_or_why, html_table, html_text
from bucketcatalog.model.tables import Column, DataType, Table
from bucketcatalog.query.in_html import Plan
from bucketcatalog.query.snapshot import Snapshot
from bucketcatalog.query.views import View, Views
from bucketcatalog.write.tags import Tag

from ...kit.corrupting import Specimen, filled, flipped, index_flipped, missing, specimen, truncated
from ...kit.world import World, counted, messages, obj, proto, stored

TAGS = {"table", "caption", "tr", "th", "td", "b", "em", "details", "summary"}
EVIL = "<script>alert('x')</script><img src=//evil/x onerror=alert(1)>&amp;"


class Shown(HTMLParser):
    """A representation taken apart; fails where it holds anything but plain tables."""

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.text = ""
        self._open: list[str] = []
        html = shown._repr_html_()
        html.encode()
        self.feed(html)
        self.close()
        assert self._open == [] and self.rows

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        assert set(attrs) <= {("style", "text-align: left"), ("style", "text-align: right")}
        self._open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        assert data.isprintable()
        self.text += data
        if {"td", "th"} & {*self._open}:
            self.rows[-1][-1] += data

    def row(self, name: str) -> list[str]:
        """What stands beside a name."""
        (found,) = [row[1:] for row in self.rows if row[0] == name]
        return found


@pytest.fixture
def world() -> World:
    """Fifty objects and a tombstone in a checkpoint, and a tag; counts its requests."""
    world = World.counting()
    with world.writer() as writer:
        world.commit(writer, ("put", "objects", [obj(f"{n:02}", content_length=n) for n in range(50)]))
        world.commit(writer, ("delete", "objects", obj("00")))
        writer.checkpoint()
    world.clock.tick()
    world.writer("maintainer-1").tag("t")
    return world


class TestSnapshots:
    def test_a_snapshot_says_which_cut_it_is_and_counts_what_an_index_has_counted(self, world: World) -> None:
        snapshot = world.snapshot()
        shown = Shown(snapshot)
        assert "database default" in shown.text
        assert shown.row("catalog") == [world.store.url] and shown.row("version") == [snapshot.version]
        assert shown.row("watermark")[0].startswith(snapshot.watermark.isoformat()[:19])
        assert (shown.row("writers"), shown.row("heads"), shown.row("checkpoints")) == (["2"], ["2"], ["1"])
        assert shown.row("objects") == ["table", "49", "1", "0"]
        assert shown.row("harvest_errors") == ["table", "0", "none kept", "0"]
        (about,) = [row[0] for row in shown.rows if row[1:] == ["about the catalog"]]
        assert about.startswith("checkpoints, conflicts, damage, ")

    def test_what_has_to_be_folded_is_not_counted(self, world: World) -> None:
        world.commit(world.writer(), ("put", "objects", obj("01")))
        assert Shown(world.snapshot()).row("objects") == ["table", "counted when read", "counted when read", "1"]

    def test_no_row_is_read(self, world: World) -> None:
        snapshot = world.snapshot()
        for shown in (snapshot, snapshot.scan("tags"), snapshot.scan("log"), snapshot.table("objects")):
            assert counted(world, partial(Shown, shown))[0] == 0
        index = counted(world, world.snapshot().scan("objects").explain)[0]
        assert counted(world, lambda: Shown(world.snapshot().scan("objects")))[0] == index
        assert counted(world, lambda: world.snapshot().scan("objects").to_arrow())[0] > index

    def test_an_empty_cut_is_shown(self, world: World) -> None:
        shown = Shown(world.snapshot(timestamp="2001-01-01"))
        assert shown.row("version") == [":"] and shown.row("objects") == ["table", "0", "0", "0"]

    def test_views_of_systems_are_named(self, world: World) -> None:
        plain, name = world.snapshot(), EVIL
        view = View(name, "objects", {"called": "name"})
        snapshot = Snapshot(plain.files, plain.view, reads=lambda: [Views("s", {name: view}, core_tables(), lambda _: True)])
        assert Shown(snapshot).row(name) == ["view"]
        assert f"plan: view {name} of objects" in Shown(snapshot.scan(name)).text

    def test_a_table_that_cannot_be_read_says_why_and_the_others_are_shown(self, world: World) -> None:
        for number, kind in enumerate(("int64", "string")):
            body = f'message R {{ option (table) = {{ name: "lab.r" key: "k" }}; string k = 1; {kind} v = 2; }}'
            declared = list(messages(proto(body)).values())
            world.commit_unasked(world.writer(f"maintainer-{number}"), declared, ("put", "lab.r", {"k": "a"}))
        shown = Shown(world.snapshot())
        (why,) = shown.row("lab.r")
        assert why.startswith("[INCOMPATIBLE_TABLE] ") and "two ways" in why
        assert shown.row("objects")[0] == "table"


class TestReads:
    def test_a_scan_shows_its_plan_and_its_columns(self, world: World) -> None:
        scan = world.snapshot().scan("objects", columns=["name", "content_length"], where={"name": prefix("0")})
        shown = Shown(scan)
        for line in scan.explain().splitlines()[1:]:
            name, _, what = line.partition(": ")
            assert shown.row(name) == [what]
        assert shown.row("name") == ["string", "no"] and shown.row("content_length") == ["int64", "yes"]

    def test_a_plan_is_text_and_a_table(self, world: World) -> None:
        plan = world.snapshot().scan("objects").explain()
        assert plan == "\n".join(plan.splitlines()) and str(plan).startswith("table objects, live: ")
        assert "plan: table objects, live" in Shown(plan).text
        assert Shown(Plan("table a: 1\nb: c: d")).row("b") == ["c: d"]

    def test_what_an_open_snapshot_has_of_the_catalog_is_shown_whole(self, world: World) -> None:
        snapshot = world.snapshot()
        tags = Shown(snapshot.scan("tags", columns=["name", "dropped"]))
        assert tags.rows == [["name", "dropped"], ["t", "no"]]
        assert [row[0] for row in Shown(snapshot.scan("writers")).rows] == ["writer", *snapshot.cut.heads]
        assert len(Shown(snapshot.scan("tables")).rows) == 1 + len(snapshot.definitions)
        assert Shown(snapshot.scan("log")).row("operation") == ["string", "yes"]

    def test_changes_and_differences_show_their_columns(self, world: World) -> None:
        for read in (world.catalog().changes(), world.catalog().diff()):
            assert Shown(read).row("_change_type") == ["string", "no"]


class TestValues:
    def test_a_definition_shows_what_each_column_is(self, world: World) -> None:
        shown = Shown(world.snapshot().table("objects"))
        cells = {row[1]: row for row in shown.rows}
        assert cells["owner"] == ["1", "owner", "uuid", "key, data reference", "none"]
        assert cells["id"][3] == "id, data reference" and cells["created"][4] == "created"
        assert cells["headers"][2] == "map of string to string"

    def test_a_tag_shows_what_it_names_and_who_says_so(self, world: World) -> None:
        maintainer = world.writer("maintainer-1")
        given, dropped = maintainer.tag("u", version="t"), maintainer.drop_tag("u")
        assert Shown(given).row("version") == [given.version]
        assert Shown(given).row("committed by")[0].startswith(f"{given.writer}@{given.revision}, ")
        assert Shown(dropped).row("dropped by")[0].startswith(f"{dropped.writer}@{dropped.revision}, ")

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (None, ""),
            (True, "yes"),
            (1_234_567, "1,234,567"),
            (b"\x00\xff", "00ff"),
            (["a", "<b>"], "a, &lt;b&gt;"),
            ("a\n\x1b[31m\u202eb\x00", r"a\n\x1b[31m\u202eb\x00"),
            ("\ud800", r"\ud800"),
            ("x" * 1_500, f"{'x' * 400}… and 1,100 more characters"),
            (0.5, "0.5"),
        ],
    )
    def test_values_are_shown_as_text_on_one_line(self, value: object, text: str) -> None:
        assert html_text(value) == text

    def test_names_are_text_wherever_they_stand(self, tmp_path: Path) -> None:
        table = Table(EVIL, (Column(1, EVIL, DataType.STRING),), (EVIL,))
        for shown in (
            table,
            Tag(EVIL, EVIL, dropped=False, created=0, writer=EVIL, revision=0, commit_time=0),
            Plan(f"table {EVIL}: {EVIL}\n{EVIL}: {EVIL}"),
            html_table(EVIL, [EVIL], [[EVIL]]),
            html_facts(EVIL, {EVIL: [EVIL]}),
        ):
            assert EVIL in Shown(shown).text
        where = tmp_path / "<img src=x onerror=alert(1)>"
        with Catalog(where).writer("w") as writer, writer.transaction() as tx:
            tx.put("objects", obj(EVIL))
        assert Shown(Catalog(where).snapshot()).row("catalog") == [str(where)]


class TestDamage:
    def test_what_is_wrong_with_a_plan_is_said_and_the_columns_are_shown(self) -> None:
        compacted = filled(World())
        scan = compacted.snapshot().scan("objects")
        for name in stored(compacted, ".parquet"):
            compacted.store.delete(name)
        shown = Shown(scan)
        assert shown.text.startswith("[MISSING] ") and " Next: Restore the file" in shown.text
        assert shown.row("name") == ["string", "no"]

    @pytest.mark.parametrize("damage", [missing, truncated, flipped, index_flipped])
    @pytest.mark.parametrize("file", ["transaction", "checkpoint", "segment", "segment of events"])
    def test_nothing_raises_whatever_is_damaged_while_or_before_a_snapshot_is_open(
        self, damage: Callable[[Specimen, str], None], file: str
    ) -> None:
        one = specimen()
        if damage is index_flipped and "segment" not in file:
            damage = flipped
        before = one.world.snapshot()
        damage(one, one.files[file])
        with warnings.catch_warnings(action="ignore", category=CatalogWarning):
            past = one.world.snapshot(ignore_corruption=True)
            past.scan("objects").to_arrow()
        for snapshot in (before, past):
            assert Shown(snapshot).row("version") == [snapshot.version]
            for name in snapshot.tables:
                with suppress(CorruptionError):  # which is told before there is anything to show
                    assert Shown(snapshot.scan(name)).rows
        assert past.missing == () or int(Shown(past).row("files that cannot be read")[0]) >= 1

    def test_warnings_that_are_errors_are_said_too(self) -> None:
        def warn() -> str:
            raise CatalogWarning(EVIL)

        assert html_or_why(warn) == f"<em>{html_text(EVIL)}</em>"
