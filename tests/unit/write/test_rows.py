"""Rows as they are given: every form that holds the same values gives the same state, and what does not fit is refused."""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bucketcatalog import BucketCatalogError, InvalidRows, InvalidVersion, UnknownTable
from bucketcatalog.write.writer import Writer

from ...kit.world import BEYOND, BUCKET, ID_1, ID_2, OTHER, OWNER, World, as_arrow, messages, names, obj, proto, rows, time_at

FULL = {
    "id": ID_1,
    "created": datetime.datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=datetime.UTC),
    "content_length": 5,
    "content_md5": b"\x00\xff",
    "content_type": "",
    "headers": {"a": "", "b": "é"},
    "roles": [OWNER, OTHER],
    "sharks": ["x:1", ""],
    "properties": '{"a":1}',
    "legal_hold": False,
    "tags": {},
    "parts": -1,
}


Chunks = list[tuple[list[int | None], list[int | None]]]
DICTIONARIES: dict[str, Chunks] = {
    "one": [([0, 1, 0], [1, 2])],
    "equal": [([0, 1], [1, 2]), ([1], [1, 2])],
    "different": [([0, 1], [1, 2]), ([0], [3])],
    "entry twice": [([0, 1], [1, 1]), ([0], [3])],
    "no entry": [([], []), ([0], [3])],
    "null": [([0, 1], [1, None])],
    "null beside another": [([0, 1], [1, None]), ([0], [3])],
    "unused null beside another": [([0, 0], [1, None]), ([0], [3])],
    "null place": [([0, None], [1, 2]), ([0], [3])],
    "too many together": [(list(range(100)), list(range(100))), (list(range(100)), list(range(100, 200)))],
}


def dictionary(places: list[int | None], entries: list[str | None], kind: pa.DataType | None = None) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(entries, kind or pa.string()))


class TestInputs:
    """The same rows give the same state, however they are given and however many they are."""

    @pytest.mark.parametrize("count", [1, 2, 64, 65, 200])
    @pytest.mark.parametrize("form", ["dicts", "arrow", "batch", "singles", "mixed", "tuple", "generator"])
    def test_every_form_gives_the_same_state(self, form: str, count: int) -> None:
        given = [obj(f"{n:03}", **(FULL if n % 2 else {})) for n in range(count)]
        more = [obj("~")] if form == "mixed" else []
        world = World()
        writer = world.writer()
        with writer.transaction() as tx:
            match form:
                case "dicts":
                    tx.put("objects", given)
                case "arrow":
                    tx.put("objects", as_arrow(given))
                case "batch":
                    tx.put("objects", as_arrow(given).combine_chunks().to_batches()[0])
                case "singles":
                    for row in given:
                        tx.put("objects", row)
                case "mixed":
                    tx.put("objects", given[:1])
                    tx.put("objects", as_arrow(given[1:] + more))
                case "tuple":
                    tx.put("objects", tuple(given))
                case _:
                    tx.put("objects", (row for row in given))  # type: ignore[arg-type]
        for step in ("log", "checkpoint"):
            found = rows(world.snapshot(), "objects")
            assert len(found) == count + len(more), step
            for n in range(count):
                expected = (
                    dict.fromkeys(found[n])
                    | obj(f"{n:03}")
                    | {"created": time_at(world.clock.now), "modified": time_at(world.clock.now)}
                )
                if n % 2:
                    expected |= FULL | {"headers": [("a", ""), ("b", "é")], "tags": None}
                assert found[n] == expected, step
            writer.checkpoint()

    @pytest.mark.parametrize("form", [list, iter, as_arrow])
    @pytest.mark.parametrize("of_form", [list, iter, pa.Table.from_pylist])
    def test_rows_that_share_data_are_put_however_they_are_given(
        self, world: World, writer: Writer, form: Callable[..., Any], of_form: Callable[..., Any]
    ) -> None:
        world.commit(writer, ("put", "objects", [obj("a", id=ID_1), obj("b", id=ID_2)]))
        found = rows(world.snapshot(), "objects", ["owner", "bucket_id", "name", "_version"])
        again = form([obj("c", id=ID_1), obj("d", id=ID_2)])
        world.commit(writer, ("put", "objects", again, {"data_of": of_form(found)}))
        assert rows(world.snapshot(), "objects", ["name", "id"]) == [
            {"name": name, "id": id_} for name, id_ in [("a", ID_1), ("b", ID_2), ("c", ID_1), ("d", ID_2)]
        ]

    @pytest.mark.parametrize("count", [1, 65])
    def test_empty_lists_and_maps_read_as_unset(self, world: World, writer: Writer, count: int) -> None:
        given = [obj(f"{n}", sharks=[], headers={}, tags=None) for n in range(count)]
        arrow = as_arrow([obj(f"a{n}") for n in range(count)])
        arrow = arrow.append_column("sharks", pa.array([[]] * count, pa.list_(pa.string())))
        arrow = arrow.append_column("headers", pa.array([[]] * count, pa.map_(pa.string(), pa.string())))
        world.commit(writer, ("put", "objects", given))
        world.commit(writer, ("put", "objects", arrow))

        found = rows(world.snapshot(), "objects", ["sharks", "headers", "tags"])
        assert found == [{"sharks": None, "headers": None, "tags": None}] * (2 * count)

    @pytest.mark.parametrize("count", [1, 65])
    def test_a_key_twice_in_a_map_is_refused_or_counts_once(self, world: World, writer: Writer, count: int) -> None:
        pairs = [("a", "1"), ("a", "2")]
        results = []
        for name, given in (
            ("d", [obj(f"d{n}", headers=pairs) for n in range(count)]),
            (
                "a",
                as_arrow([obj(f"a{n}") for n in range(count)]).append_column(
                    "headers", pa.array([pairs] * count, pa.map_(pa.string(), pa.string()))
                ),
            ),
        ):
            try:
                world.commit(writer, ("put", "objects", given))
            except InvalidRows:
                results.append("refused")
            else:
                results.append(world.snapshot().get("objects", **obj(f"{name}0"))["headers"])  # type: ignore[index]
        assert results[0] == results[1] and results[0] in ("refused", [("a", "2")])

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("name", pa.array(["x"], pa.large_string())),
            ("name", pa.array(["x"], pa.string_view())),
            ("name", pa.array(["x"]).dictionary_encode()),
            ("name", pa.chunked_array([["x"], []], pa.string())),
            ("owner", pa.array([uuid.UUID(OWNER).bytes], pa.binary())),
            ("owner", pa.array([uuid.UUID(OWNER).bytes], pa.binary(16))),
            ("owner", pa.array([uuid.UUID(OWNER).bytes], pa.uuid())),
            ("owner", pa.array([OWNER.upper()])),
            ("owner", pa.array([OWNER]).dictionary_encode()),
            ("content_length", pa.array([5], pa.int8())),
            ("content_length", pa.array([5], pa.uint64())),
            ("created", pa.array([5_000], pa.timestamp("ms"))),
            ("created", pa.array([5_000_000], pa.timestamp("us", tz="Europe/Berlin"))),
            ("content_md5", pa.array([b"x"], pa.large_binary())),
            ("sharks", pa.array([["x"]], pa.large_list(pa.string()))),
            ("roles", pa.array([[OWNER]])),
            ("roles", pa.array([[uuid.UUID(OWNER).bytes]], pa.list_(pa.binary(16)))),
            ("content_type", pa.nulls(1)),
            ("legal_hold", pa.array([None], pa.bool_())),
        ],
        ids=lambda value: value if isinstance(value, str) else str(value.type),
    )
    def test_arrow_types_that_hold_the_same_values_are_taken(self, world: World, writer: Writer, name: str, values: Any) -> None:
        table = as_arrow(
            [
                obj(
                    "x",
                    content_length=5,
                    content_md5=b"x",
                    sharks=["x"],
                    roles=[OWNER],
                    created=datetime.datetime.fromtimestamp(5, datetime.UTC),
                )
            ]
        )
        table = table.drop_columns([name] if name in table.column_names else []).append_column(name, values)
        world.commit(writer, ("put", "objects", table))

        found = world.snapshot().get("objects", **obj("x"))
        assert found is not None
        assert (found["content_length"], found["sharks"], found["roles"]) == (5, ["x"], [OWNER])
        assert (found["content_md5"], found["created"]) == (b"x", datetime.datetime.fromtimestamp(5, datetime.UTC))

    @pytest.mark.parametrize(
        ("name", "values"),
        [
            ("name", pa.array([5])),
            ("name", pa.array([True])),
            ("name", pa.array([b"\xff"])),
            ("name", pa.array([b"\xff"]).cast(pa.binary()).view(pa.string())),
            ("name", pa.array(["x" * 1025])),
            ("name", pa.array([None], pa.string())),
            ("name", pa.nulls(1)),
            ("owner", pa.array(["x"])),
            ("owner", pa.array([b"x"])),
            ("owner", pa.array([5])),
            ("content_length", pa.array(["5"])),
            ("content_length", pa.array([5.5])),
            ("content_length", pa.array([True])),
            ("content_length", pa.array([2**63], pa.uint64())),
            ("parts", pa.array([2**31])),
            ("legal_hold", pa.array([1])),
            ("legal_hold", pa.array(["true"])),
            ("created", pa.array(["2024-01-01"])),
            ("created", pa.array([2**62])),
            *(("created", pa.array([time])) for time in BEYOND),
            ("created", pa.array([1.5])),
            ("created", pa.array([1], pa.timestamp("ns"))),
            ("content_md5", pa.array(["x"])),
            ("content_md5", pa.array([5])),
            ("sharks", pa.array(["x"])),
            ("sharks", pa.array([[5]])),
            ("sharks", pa.array([["x", None]])),
            ("roles", pa.array([["x"]])),
            ("roles", pa.array([[None]], pa.list_(pa.binary(16)))),
            ("headers", pa.array([[("a", None)]], pa.map_(pa.string(), pa.string()))),
            ("headers", pa.array([["a"]])),
            ("properties", pa.array(["{"])),
            ("properties", pa.array([5])),
        ],
        ids=lambda value: value if isinstance(value, str) else str(value.type),
    )
    def test_arrow_values_that_do_not_fit_are_refused(self, world: World, writer: Writer, name: str, values: Any) -> None:
        table = as_arrow([obj("x")])
        table = table.drop_columns([name] if name in table.column_names else []).append_column(name, values)
        with pytest.raises(InvalidRows, match=name), writer.transaction() as tx:
            tx.put("objects", table)
        assert list(world.store.list("")) == []

    @pytest.mark.parametrize("time", BEYOND, ids=["10000", "0"])
    def test_a_time_that_its_zone_takes_out_of_the_calendar_is_refused_in_an_update_too(
        self, world: World, writer: Writer, time: datetime.datetime
    ) -> None:
        world.commit(writer, ("put", "objects", obj("x")))
        for given in (obj("x", created=time), pa.Table.from_pylist([obj("x", created=time)])):
            with pytest.raises(InvalidRows, match=r"created.* outside of the years 1 to 9999"), writer.transaction() as tx:
                tx.update("objects", given)

    @pytest.mark.parametrize("time", BEYOND, ids=["10000", "0"])
    def test_a_time_that_its_zone_takes_out_of_the_calendar_is_refused_within_a_message_too(
        self, world: World, time: datetime.datetime
    ) -> None:
        moment = "message Moment { optional int64 at = 1 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}]; }"
        row = 'message Row { option (table) = { name: "test.moments" key: "k" }; int32 k = 1; Moment moment = 2; }'
        catalog = world.catalog()
        catalog.register(messages(proto(moment, row))["Row"])
        writer = catalog.writer("w")
        given = [{"k": 1, "moment": {"at": time}}]
        for form in (given, pa.Table.from_pylist(given)):
            with pytest.raises(InvalidRows, match="moment"), writer.transaction() as tx:
                tx.put("test.moments", form)

    def test_a_column_of_another_type_is_told_which_is_expected(self, writer: Writer) -> None:
        given = pa.Table.from_pylist([obj("x", content_length="5")])
        with pytest.raises(InvalidRows, match=r": int64 is expected, not string\."), writer.transaction() as tx:
            tx.put("objects", given)

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            ({"owner": OWNER, "bucket_id": BUCKET}, "name"),
            ({**obj("x"), "name": None}, "name"),
            (obj("x", strange=1), "strange"),
            (obj("x", _version="x"), "_version"),
            (obj("x", deleted_at=1), "deleted_at"),
            ({1: "x"}, "1"),
            (obj("x", content_length="5"), "content_length"),
            (obj("x", content_length=True), "content_length"),
            (obj("x", content_length=5.0), "content_length"),
            (obj("x", content_length=2**63), "content_length"),
            (obj("x", parts=2**31), "parts"),
            (obj("x", legal_hold=1), "legal_hold"),
            (obj("x", created=2**63), "created"),
            (obj("x", created=2**62), "created"),
            *((obj("x", created=time), "created.*outside of the years 1 to 9999") for time in BEYOND),
            (obj("x", created=1.5), "created"),
            (obj("x", created="2024-01-01"), "created"),
            (obj("x", content_md5="x"), "content_md5"),
            (obj("x", sharks="x"), "sharks"),
            (obj("x", sharks=[None]), "sharks"),
            (obj("x", sharks=5), "sharks"),
            (obj("x", roles=["x"]), "roles"),
            (obj("x", headers={"a": None}), "headers"),
            (obj("x", headers={"a": 1}), "headers"),
            (obj("x", headers=["a"]), "headers"),
            (obj("x", headers=5), "headers"),
            (obj("x", properties="{"), "properties"),
            (obj("x", properties="[" * 100_000), "properties"),
            (obj("x", properties=object()), "properties"),
            (obj("x", owner="x"), "owner"),
            (obj("x", owner=b"x"), "owner"),
            (obj("x", owner=5), "owner"),
            (obj("x" * 1025), "name"),
            (obj("é" * 513), "name"),
            (obj(b"x"), "name"),  # type: ignore[arg-type]
            (obj("\ud800"), "name"),
            (obj("x", content_type="\ud800"), "content_type"),
        ],
        ids=lambda value: str(value)[:60] if isinstance(value, str) else None,
    )
    def test_rows_that_do_not_fit_are_refused(self, world: World, writer: Writer, given: dict[str, Any], what: str) -> None:
        for number in (0, 70):
            with pytest.raises(InvalidRows, match=what) as error, writer.transaction() as tx:
                tx.put("objects", [obj(str(n)) for n in range(number)] + [given])
            assert f"Row {number}" in error.value.message
        assert list(world.store.list("")) == []

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            (obj("x", content_length="5"), "int64"),
            (obj("x", owner=5), "uuid"),
            (obj("x", tags=5), "map of string to string"),
            (obj("x", roles=5), "list of uuid"),
        ],
    )
    def test_the_type_of_a_column_is_called_by_its_name(self, writer: Writer, given: dict[str, Any], what: str) -> None:
        with pytest.raises(InvalidRows, match=f"Next: Give a value of its type: {what}\\.$"), writer.transaction() as tx:
            tx.put("objects", given)

    @pytest.mark.parametrize(
        ("given", "what"),
        [
            *(
                (obj("x", tags=tags), "a mapping, or a list of pairs, is expected")
                for tags in (5, [1], "ab", ["ab"], [("a",) * 3])
            ),
            (obj("x", sharks=5), "a list is expected"),
            (obj("x", owner="x"), "'x' is not a uuid"),
            (obj("x", owner=5), "a uuid.UUID, its text, or 16 bytes"),
        ],
        ids=lambda value: str(value.get("tags")) if isinstance(value, dict) else None,
    )
    def test_a_value_of_another_kind_is_answered_with_what_is_expected(
        self, writer: Writer, given: dict[str, Any], what: str
    ) -> None:
        with pytest.raises(InvalidRows, match=what), writer.transaction() as tx:
            tx.put("objects", given)

    @pytest.mark.parametrize(
        ("given", "what"),
        [({"color": ["RED"]}, "is none of RED"), ({"inner": {1: 2, "x": 3}}, "no field is called")],
    )
    def test_values_that_cannot_be_looked_up_are_none_that_there_are(
        self, world: World, given: dict[str, Any], what: str
    ) -> None:
        catalog = world.catalog()
        catalog.register(
            messages(
                proto(
                    "enum Color { RED = 0; }",
                    'message A { option (table) = { name: "x.a" key: "k" }; string k = 1; Color color = 2; Inner inner = 3; }',
                    "message Inner { string text = 1; }",
                )
            )["A"]
        )
        with world.writer(catalog=catalog) as writer, pytest.raises(InvalidRows, match=what), writer.transaction() as tx:
            tx.put("x.a", {"k": "a", **given})

    @pytest.mark.parametrize("given", [None, 5, "text", ["text"], [None], [[]], pytest.param(object(), id="object")], ids=str)
    def test_what_is_no_row_is_refused(self, world: World, writer: Writer, given: Any) -> None:
        with pytest.raises(InvalidRows), writer.transaction() as tx:
            tx.put("objects", given)
        assert list(world.store.list("")) == []

    @pytest.mark.parametrize("chunks", [0, 1, 2])
    @pytest.mark.parametrize(
        "held",
        [
            pa.large_string(),
            pa.string_view(),
            pa.dictionary(pa.int8(), pa.string()),
            pa.dictionary(pa.int32(), pa.large_string()),
        ],
        ids=str,
    )
    def test_versions_are_named_by_text_however_arrow_holds_it(
        self, world: World, writer: Writer, held: pa.DataType, chunks: int
    ) -> None:
        world.commit(writer, ("put", "objects", [obj(name) for name in "abc"]))
        found = world.snapshot().scan("objects", columns=["owner", "bucket_id", "name", "_version"]).to_arrow()
        given = pa.concat_tables([found.slice(row, 1) for row in range(chunks)] or [found.slice(3)])
        parts = [chunk.cast(held) for chunk in given["_version"].chunks[:chunks]]
        given = given.set_column(3, "_version", pa.chunked_array(parts, held))
        with writer.transaction() as tx:
            tx.delete("objects", given)
        assert names(world.snapshot()) == list("abc")[chunks:]

    @pytest.mark.parametrize("held", [pa.binary(), pa.dictionary(pa.int8(), pa.binary()), pa.list_(pa.string())], ids=str)
    def test_what_is_no_text_names_no_version(self, world: World, writer: Writer, held: pa.DataType) -> None:
        table = as_arrow([obj("a")]).append_column("_version", pa.array([None], held))
        kind = str(held.value_type if pa.types.is_dictionary(held) else held)
        with pytest.raises(InvalidVersion, match=f"text is expected, not {re.escape(kind)}"), writer.transaction() as tx:
            tx.delete("objects", table)

    @pytest.mark.parametrize("name", ["owner", "content_type"])
    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
    @pytest.mark.parametrize("case", DICTIONARIES.values(), ids=DICTIONARIES)
    def test_dictionaries_of_chunks_may_be_any(
        self, world: World, writer: Writer, name: str, kind: pa.DataType, case: Chunks
    ) -> None:
        """Arrow joins neither such as hold nulls nor such as together are too long for the numbers of their entries."""
        chunks = [(places, [None if v is None else str(uuid.UUID(int=v)) for v in entries]) for places, entries in case]
        values = pa.chunked_array([dictionary(places, entries, kind) for places, entries in chunks])
        given = as_arrow([obj(f"{n:03}", content_type="") for n in range(len(values))])
        given = given.set_column(given.schema.get_field_index(name), name, values)
        if name != "content_type" and None in values.to_pylist():
            with pytest.raises(InvalidRows, match=f"The key column '{name}' of table 'objects' is empty"):
                world.commit(writer, ("put", "objects", given))
            return
        world.commit(writer, ("put", "objects", given))
        shown = world.snapshot().scan("objects", columns=["owner", "name", "content_type"]).to_arrow()
        wanted = pa.table([given[column].to_pylist() for column in shown.column_names], shown.schema)
        order = [("owner", "ascending"), ("name", "ascending")]
        assert shown.sort_by(order).to_pylist() == wanted.sort_by(order).to_pylist()

    def test_dictionaries_within_lists_and_maps_may_be_any(self, world: World, writer: Writer) -> None:
        first, second = dictionary([0, 1], ["a", None]), dictionary([0, 1], ["b", "c"])
        lists = [pa.ListArray.from_arrays([0, 1], first), pa.ListArray.from_arrays([0, 2, 2, 2], second)[:2]]
        maps = [pa.MapArray.from_arrays([0, 1], first, second), pa.MapArray.from_arrays([1, 2, 2], second, second)]
        given = as_arrow([obj(name) for name in "xyz"])
        given = given.append_column("sharks", pa.chunked_array(lists)).append_column("headers", pa.chunked_array(maps))
        world.commit(writer, ("put", "objects", given))
        assert rows(world.snapshot(), "objects", ["sharks", "headers"]) == [
            {"sharks": ["a"], "headers": [("a", "b")]},
            {"sharks": ["b", "c"], "headers": [("c", "c")]},
            {"sharks": None, "headers": None},
        ]

    def test_no_map_has_a_key_that_a_dictionary_says_is_null(self, world: World, writer: Writer) -> None:
        maps = pa.MapArray.from_arrays([0, 2], dictionary([0, 1], ["a", None]), pa.array(["b", "c"]))
        with pytest.raises(InvalidRows, match="a map holds a null"), writer.transaction() as tx:
            tx.put("objects", as_arrow([obj("x")]).append_column("headers", maps))

    @pytest.mark.parametrize("held", [pa.string_view(), pa.dictionary(pa.int8(), pa.string())], ids=str)
    def test_some_rows_name_their_version_and_others_the_live_one_by_its_id(
        self, world: World, writer: Writer, held: pa.DataType
    ) -> None:
        world.commit(writer, ("put", "objects", [obj("a", id=ID_1), obj("b", id=ID_2), obj("c")]))
        found = world.snapshot().scan("objects", columns=["owner", "bucket_id", "name", "id", "_version"]).to_arrow().slice(0, 2)
        given = found.set_column(3, "id", found["id"].cast(held))
        given = given.set_column(4, "_version", pa.array([found["_version"][0].as_py(), None]))
        world.commit(writer, ("delete", "objects", given))
        assert names(world.snapshot()) == ["c"]

    def test_views_are_taken_within_lists_maps_and_dictionaries(self, world: World, writer: Writer) -> None:
        kind = pa.string_view()
        given = as_arrow([obj("x")]).append_column("sharks", pa.array([["a"]], pa.list_(kind)))
        given = given.append_column("headers", pa.array([[("k", "v")]], pa.map_(kind, kind)))
        given = given.append_column("content_type", dictionary([0], ["t"], kind))
        world.commit(writer, ("put", "objects", given))
        found = rows(world.snapshot(), "objects", ["sharks", "headers", "content_type"])
        assert found == [{"sharks": ["a"], "headers": [("k", "v")], "content_type": "t"}]

    def test_a_column_too_long_for_arrow_is_refused(self, world: World, writer: Writer) -> None:
        part = pa.array(["x" * (1 << 20)] * 8)
        values = pa.chunked_array([part] * 257)
        count = len(values)
        given = pa.table({"owner": [OWNER] * count, "bucket_id": [BUCKET] * count, "name": [str(n) for n in range(count)]})
        why = "Column 'content_type' for table 'objects': offset overflow.* Next: Give fewer rows at once"
        with pytest.raises(InvalidRows, match=why), writer.transaction() as tx:
            tx.put("objects", given.append_column("content_type", values))

    def test_arrow_columns_of_one_name_are_refused(self, world: World, writer: Writer) -> None:
        table = as_arrow([obj("x")])
        with pytest.raises(InvalidRows, match="name"), writer.transaction() as tx:
            tx.put("objects", table.append_column("name", table["name"]))

    def test_arrow_lacking_or_inventing_columns_is_refused(self, world: World, writer: Writer) -> None:
        table = as_arrow([obj("x")])
        for wrong, what in ((table.drop_columns(["name"]), "name"), (table.append_column("strange", pa.array([1])), "strange")):
            with pytest.raises(InvalidRows, match=what), writer.transaction() as tx:
                tx.put("objects", wrong)

    def test_a_stream_of_arrow_data_is_taken_and_refused_as_a_whole(self, world: World, writer: Writer) -> None:
        world.commit(writer, ("put", "objects", as_arrow([obj("x"), obj("y")]).to_reader(max_chunksize=1)))
        assert names(world.snapshot()) == ["x", "y"]
        wrong = as_arrow([obj("z"), obj("y" * 1025)]).to_reader(max_chunksize=1)
        with pytest.raises(InvalidRows, match="1025 bytes are more than the 1024 allowed"), writer.transaction() as tx:
            tx.put("objects", wrong)
        assert names(world.snapshot()) == ["x", "y"]

    def test_keys_with_more_than_key_columns_are_refused(self, world: World, writer: Writer) -> None:
        for given in (obj("x", content_length=5), as_arrow([obj("x", content_length=5)])):
            with pytest.raises(InvalidRows, match="content_length"), writer.transaction() as tx:
                tx.delete("objects", given)

    def test_rows_of_no_table_are_refused(self, world: World, writer: Writer) -> None:
        for table in ("nothing", "", "log", "deleted_objects", None, 5):
            with pytest.raises(BucketCatalogError) as error, writer.transaction() as tx:
                tx.put(table, obj("x"))  # type: ignore[arg-type]
            assert isinstance(error.value, UnknownTable)
