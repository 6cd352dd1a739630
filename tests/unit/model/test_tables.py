"""What the options of a ``.proto`` become, and which declarations are refused; with tables as odd as a ``.proto`` allows."""

from __future__ import annotations

import datetime
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from google.protobuf import struct_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from bucketcatalog import IncompatibleTable, InvalidRows, UnknownTable
from bucketcatalog.format.definitions import core_tables, parse_definition, table_of, tables_of
from bucketcatalog.model.tables import (
    TIMESTAMP,
    DataType,
    Default,
    Parent,
    SecondaryOrder,
    Shape,
    Sum,
    Table,
    side_table,
    split_side,
)
from bucketcatalog.v1 import log_pb2, options_pb2, tables_pb2

from ...kit.odd import ACL, FULL, UID, odd
from ...kit.world import World, declaring, messages, proto, rows


def only(body: str, **options: Any) -> Table:
    """The table of the one message in a ``.proto``."""
    (descriptor,) = [d for d in messages(proto(body, **options)).values() if d.name == "Row"]
    return table_of(descriptor)


class TestOptions:
    def test_core_tables_are_as_declared(self) -> None:
        core = core_tables()
        objects, buckets = core["objects"], core["buckets"]

        assert sorted(core) == ["buckets", "harvest_errors", "object_versions", "objects"]
        assert objects.key == ("owner", "bucket_id", "name") and objects.id == "id"
        assert objects.data_reference == ("owner", "bucket_id", "id")
        assert objects.parent == Parent("buckets", "bucket_id")
        assert objects.sums == (
            Sum("objects", None, ("owner", "bucket_id")),
            Sum("bytes", "content_length", ("owner", "bucket_id")),
        )
        assert objects.orders == (SecondaryOrder("deleted_at", ("deleted_at",), True, covering=True),)
        assert buckets.by_name["id"].default is Default.INCARNATION
        assert objects.by_name["modified"].default is Default.MODIFIED
        assert objects.by_name["encryption_key"].sensitive
        assert objects.by_name["name"].max_bytes == 1024
        assert not core["harvest_errors"].keeps_tombstones
        assert [column.name for table in core.values() for column in table.external_columns] == ["external"]
        assert buckets.by_name["external"].external

    def test_options_of_another_file_become_a_table(self) -> None:
        part = table_of(odd()["Part"])

        assert part.key == ("volume", "upload", "number")
        assert [c.type for c in part.key_columns] == [DataType.UINT32, DataType.INT64, DataType.UINT32]
        assert part.id is None and part.data_reference == ("location",)
        assert part.parent == Parent("odd.uploads", "upload")
        assert part.sums == (Sum("bytes", "size", ("volume",)),)
        assert part.orders == (SecondaryOrder("by_size", ("size",), False),)
        assert part.keeps_tombstones and part.tombstone_retention_seconds == 60
        assert part.fixed_columns == {"200", "2", "1", "5"}
        assert [c.number for c in part.columns] == [1, 2, 4, 5, 6, 7, 8, 200]

    def test_columns_have_the_types_that_their_options_say(self) -> None:
        thing = table_of(odd()["Thing"])
        schema = {field.name: field.type for field in thing.surface_schema}

        assert schema["when"] == TIMESTAMP and schema["uid"] == pa.string() and schema["mode"] == pa.string()
        assert schema["uids"] == pa.list_(pa.string()) and schema["by_number"] == pa.map_(pa.int64(), pa.string())
        assert schema["acls"].value_type.field("reason").type.field("id").type == pa.string()
        assert schema["by_name"].item_type.field("until").type == TIMESTAMP
        assert thing.by_name["acls"].shape is Shape.LIST and thing.by_name["by_name"].shape is Shape.MAP
        assert not thing.keeps_tombstones
        assert not thing.surface_schema.field("blob").nullable and thing.surface_schema.field("text").nullable

    @pytest.mark.parametrize(
        ("field", "external"),
        [
            ("bool external = 2", ["external"]),
            ("optional bool external = 2", ["external"]),
            ("bool external = 2 [(column) = {external: false}]", []),
            ("bool theirs = 2 [(column) = {external: true}]", ["theirs"]),
            ("bool theirs = 2 [(column) = {external: true}]; bool external = 3", ["theirs", "external"]),
            ("string external = 2", []),
            ("repeated bool external = 2", []),
            ("message M { bool external = 1; } M m = 2", []),
        ],
    )
    def test_a_bool_is_external_that_says_so_or_says_nothing_and_is_called_so(self, field: str, external: list[str]) -> None:
        table = only(f'message Row {{ option (table) = {{ name: "x.y" key: "k" }}; string k = 1; {field}; }}')
        assert [column.name for column in table.external_columns] == external

    def test_presence_is_that_of_the_field(self) -> None:
        thing = table_of(odd()["Thing"])

        implicit = {c.name for c in thing.columns if c.implicit}
        assert implicit == {"text", "count", "flag", "weight", "raw", "uid", "seen", "mode"}

    def test_definitions_survive_serialisation(self) -> None:
        for descriptor in odd().values():
            if descriptor.name in ("Part", "Thing", "Word"):
                table = table_of(descriptor)
                assert parse_definition(table.definition) == table

    def test_definitions_carry_only_what_their_row_reaches(self) -> None:
        definition = log_pb2.TableDefinition.FromString(table_of(odd()["Word"]).definition)

        (file,) = definition.files.file
        assert [m.name for m in file.message_type] == ["Word"] and not file.enum_type

    def test_types_of_imported_files_go_along(self) -> None:
        body = """
        import "google/protobuf/timestamp.proto";
        message Row {
          option (table) = { name: "odd.rows" key: "k" };
          string k = 1;
          google.protobuf.Timestamp when = 2;
        }
        """
        table = only(body)
        definition = log_pb2.TableDefinition.FromString(table.definition)
        world = World()
        catalog = world.catalog()
        catalog.register(messages(proto(body))["Row"])
        with world.writer(catalog=catalog) as writer:
            world.commit(writer, ("put", "odd.rows", {"k": "a", "when": {"seconds": 5}}))

        assert [file.name for file in definition.files.file] == ["google/protobuf/timestamp.proto", "tables.proto"]
        assert rows(world.snapshot(), "odd.rows") == [{"k": "a", "when": {"seconds": 5, "nanos": 0}}]

    def test_tables_are_found_in_modules_messages_and_lists_of_these(self) -> None:
        assert [t.name for t in tables_of(tables_pb2)] == ["buckets", "objects", "object_versions", "harvest_errors"]
        assert [t.name for t in tables_of(tables_pb2.Object)] == ["objects"]
        assert [t.name for t in tables_of([tables_pb2.Object, odd()["Word"]])] == ["objects", "odd.words"]

    @pytest.mark.parametrize("syntax", ["proto2", "2023"])
    def test_other_syntaxes_than_proto3_are_refused(self, syntax: str) -> None:
        label = "optional" if syntax == "proto2" else ""
        with pytest.raises(IncompatibleTable, match="proto3"):
            only(f'message Row {{ option (table) = {{ name: "odd.r" key: "k" }}; {label} string k = 1; }}', syntax=syntax)


REFUSED = {
    "no key": 'message Row { option (table) = { name: "x.y" }; string k = 1; }',
    "parent by no field": 'message Row { option (table) = { name: "x.y" key: "k" parent: { table: "x.z" } }; string k = 1; }',
    "missing key": 'message Row { option (table) = { name: "x.y" key: "z" }; string k = 1; }',
    "repeated key field": 'message Row { option (table) = { name: "x.y" key: "k" }; repeated string k = 1; }',
    "double key": 'message Row { option (table) = { name: "x.y" key: "k" }; double k = 1; }',
    "bool key": 'message Row { option (table) = { name: "x.y" key: "k" }; bool k = 1; }',
    "message key": 'message Row { option (table) = { name: "x.y" key: "k" }; message M {} M k = 1; }',
    "key twice": 'message Row { option (table) = { name: "x.y" key: "k" key: "k" }; string k = 1; }',
    "missing id": 'message Row { option (table) = { name: "x.y" key: "k" id: "z" }; string k = 1; }',
    "missing reference": 'message Row { option (table) = { name: "x.y" key: "k" data_reference: "z" }; string k = 1; }',
    "missing parent field": 'message Row { option (table) = { name: "x.y" key: "k" parent: {table: "t" field: "z"} }; string k = 1; }',
    "missing sum field": 'message Row { option (table) = { name: "x.y" key: "k" sums: {name: "s" field: "z"} }; string k = 1; }',
    "missing sum group": 'message Row { option (table) = { name: "x.y" key: "k" sums: {name: "s" group: "z"} }; string k = 1; }',
    "sum of text": 'message Row { option (table) = { name: "x.y" key: "k" sums: {name: "s" field: "k"} }; string k = 1; }',
    "sum of a list": """message Row { option (table) = { name: "x.y" key: "k" sums: {name: "s" field: "n"} };
        string k = 1; repeated int64 n = 2; }""",
    "sum by fractions": """message Row { option (table) = { name: "x.y" key: "k" sums: {name: "s" group: "n"} };
        string k = 1; double n = 2; }""",
    "name of what lies beside a table": 'message Row { option (table) = { name: "x.y#z" key: "k" }; string k = 1; }',
    "two sums of a name": """message Row { option (table) = { name: "x.y" key: "k" sums: {name: "s"} sums: {name: "s" group: "k"} };
        string k = 1; }""",
    "missing order field": 'message Row { option (table) = { name: "x.y" key: "k" orders: {name: "s" fields: "z"} }; string k = 1; }',
    "two orders of a name": """message Row { option (table) = { name: "x.y" key: "k" orders: {name: "s" fields: "k"}
        orders: {name: "s" fields: "deleted_at" of_tombstones: true} }; string k = 1; }""",
    "order by nothing": 'message Row { option (table) = { name: "x.y" key: "k" orders: {name: "s"} }; string k = 1; }',
    "order by a field twice": """message Row { option (table) = { name: "x.y" key: "k" orders: {name: "s" fields: "k" fields: "k"} };
        string k = 1; }""",
    "order of rows by their end": """message Row { option (table) = { name: "x.y" key: "k" orders: {name: "s" fields: "deleted_at"} };
        string k = 1; }""",
    "order by a list": """message Row { option (table) = { name: "x.y" key: "k" orders: {name: "s" fields: "n"} };
        string k = 1; repeated int64 n = 2; }""",
    "default without presence": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        int64 v = 2 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS default: COLUMN_DEFAULT_CREATED}]; }""",
    "minimum of a text": 'message Row { option (table) = { name: "x.y" key: "k" }; string k = 1 [(column) = {minimum: 0}]; }',
    "minimum of a map": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        map<string, int32> v = 2 [(column) = {minimum: 0}]; }""",
    "minimum of a time": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        optional int64 v = 2 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS minimum: 0}]; }""",
    "minimum above a zero that is not said": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        int32 v = 2 [(column) = {minimum: 1}]; }""",
    "minimum above all values": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        optional int32 v = 2 [(column) = {minimum: 2147483648}]; }""",
    "minimum below a message": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        message M { optional double x = 1 [(column) = {minimum: 0}]; } repeated M v = 2; }""",
    "external text": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        optional string v = 2 [(column) = {external: true}]; }""",
    "external bools": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        repeated bool v = 2 [(column) = {external: true}]; }""",
    "external within a message": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        message M { bool x = 1 [(column) = {external: true}]; } M v = 2; }""",
    "number of what stands beside a table": """message Row { option (table) = { name: "x.y" key: "k" sums: {name: "s" group: "n"} };
        string k = 1; string n = 536870900; }""",
    "underscored column": 'message Row { option (table) = { name: "x.y" key: "k" }; string k = 1; string _version = 2; }',
    "deleted_at": 'message Row { option (table) = { name: "x.y" key: "k" }; string k = 1; int64 deleted_at = 2; }',
    "uuid that is text": 'message Row { option (table) = { name: "x.y" key: "k" }; string k = 1 [(column) = {type: LOGICAL_TYPE_UUID}]; }',
    "time that is text": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        string v = 2 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}]; }""",
    "json that is bytes": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        bytes v = 2 [(column) = {type: LOGICAL_TYPE_JSON}]; }""",
    "cut that is a number": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        int64 v = 2 [(column) = {type: LOGICAL_TYPE_CUT}]; }""",
    "created that is no time": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        optional string v = 2 [(column) = {default: COLUMN_DEFAULT_CREATED}]; }""",
    "incarnation that is no uuid": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        optional bytes v = 2 [(column) = {default: COLUMN_DEFAULT_INCARNATION}]; }""",
    "incarnation that a purge forgets": """message Row { option (table) = { name: "x.y" key: "k" }; string k = 1;
        optional bytes v = 2 [(column) = {type: LOGICAL_TYPE_UUID default: COLUMN_DEFAULT_INCARNATION}]; }""",
    "two incarnations": """message Row { option (table) = { name: "x.y" key: "k" id: "v" data_reference: "w" }; string k = 1;
        optional bytes v = 2 [(column) = {type: LOGICAL_TYPE_UUID default: COLUMN_DEFAULT_INCARNATION}];
        optional bytes w = 3 [(column) = {type: LOGICAL_TYPE_UUID default: COLUMN_DEFAULT_INCARNATION}]; }""",
    "message within itself": 'message Row { option (table) = { name: "x.y" key: "k" }; string k = 1; repeated Row children = 2; }',
    "message within another within itself": """message Node { repeated Node nodes = 1; }
        message Row { option (table) = { name: "x.y" key: "k" }; string k = 1; Node node = 2; }""",
    "name of a table about the catalog": 'message Row { option (table) = { name: "log" key: "k" }; string k = 1; }',
    "name of a core table's tombstones": 'message Row { option (table) = { name: "deleted_objects" key: "k" }; string k = 1; }',
    "oneof": 'message Row { option (table) = { name: "x.y" key: "k" }; string k = 1; oneof o { string a = 2; int32 b = 3; } }',
    "oneof in a message": """message M { oneof o { string a = 1; string b = 2; } }
        message Row { option (table) = { name: "x.y" key: "k" }; string k = 1; M m = 2; }""",
    "no message of a table": "message Row { string k = 1; }",
}


@pytest.mark.parametrize("run", ["bytes(8;1,2)", "#", "", "a#b"])
def test_the_name_of_a_side_run_is_split_as_it_was_joined(run: str) -> None:
    assert split_side(side_table("odd.parts", run)) == ("odd.parts", run)
    assert split_side("odd.parts") == ("odd.parts", None)


@pytest.mark.parametrize("what", REFUSED)
def test_declarations_that_contradict_themselves_are_refused(what: str) -> None:
    world = World()
    descriptor = messages(proto(REFUSED[what]))["Row"]

    with pytest.raises(IncompatibleTable) as error:
        world.catalog().register(descriptor)
    assert error.value.next_step


def test_a_log_may_have_a_table_that_nobody_can_declare_any_more() -> None:
    """With a default that is now refused of who declares it, the table is read and written as before."""
    body = """message Row { option (table) = { name: "x.y" key: "k" id: "v" }; string k = 1;
        optional bytes v = 2 [(column) = {type: LOGICAL_TYPE_UUID default: COLUMN_DEFAULT_INCARNATION}]; }"""
    definition = log_pb2.TableDefinition.FromString(only(body).definition)
    definition.files.file[0].message_type[0].options.Extensions[options_pb2.table].ClearField("id")
    table = parse_definition(definition.SerializeToString(deterministic=True))
    assert table.id is None and table.by_name["v"].default is Default.INCARNATION


@pytest.mark.parametrize("source", [5, "x", None, object(), [5]])
def test_what_declares_no_tables_is_refused(source: object) -> None:
    with pytest.raises(IncompatibleTable):
        World().catalog().register(source)


def test_recursive_types_of_google_are_refused() -> None:
    body = """
    import "google/protobuf/struct.proto";
    message Row { option (table) = { name: "odd.r" key: "k" }; string k = 1; google.protobuf.Struct any = 2; }
    """
    assert struct_pb2.Struct is not None
    with pytest.raises(IncompatibleTable):
        only(body)


def test_registering_contradicting_definitions_is_refused() -> None:
    catalog = World().catalog()
    catalog.register(messages(proto('message Row { option (table) = { name: "x.y" key: "k" }; string k = 1; }'))["Row"])

    for key in ("int64 k = 1", "string k = 2"):
        other = proto(f'message Row {{ option (table) = {{ name: "x.y" key: "k" }}; {key}; }}')
        with pytest.raises(IncompatibleTable, match=r"x\.y"):
            catalog.register(messages(other)["Row"])
    assert catalog.register(odd()["Word"]) == ["odd.words"]


def test_a_message_with_the_option_of_a_table_and_no_name_is_refused_also_among_others() -> None:
    other = 'message Other { option (table) = { name: "x.y" key: "k" }; string k = 1; }'
    named, plain = 'message Row { option (table) = { name: "x.z" key: "k" }; string k = 1; }', "message Row { string k = 1; }"
    assert World().catalog().register(declaring(other, named)) == ["x.y", "x.z"]
    assert World().catalog().register(declaring(other, plain)) == ["x.y"]
    nameless = named.replace('name: "x.z"', "")
    for source in (declaring(other, nameless), messages(proto(nameless))["Row"]):
        with pytest.raises(IncompatibleTable, match=r"'test\.Row' is a table without a name\. Next: Give it a name and a key"):
            World().catalog().register(source)
    with pytest.raises(IncompatibleTable, match=r"'test\.Row' is no table\."):
        World().catalog().register(messages(proto(plain))["Row"])


def test_table_called_as_one_about_the_catalog_is_refused() -> None:
    row = messages(proto('message Tag { option (table) = {name: "tags" key: "k"}; string k = 1; }'))["Tag"]
    with pytest.raises(IncompatibleTable, match="tags"):
        World().catalog().register(row)


def test_rows_of_tables_that_nobody_registered_are_refused() -> None:
    world = World()
    with world.writer() as writer, pytest.raises(UnknownTable, match=r"odd\.words"), writer.transaction() as tx:
        tx.put("odd.words", {"word": "x"})
    assert list(world.store.list("")) == []


class TestOddRows:
    """The oddest row comes back as it was put, whichever way it went."""

    EXPECTED: ClassVar[dict[str, Any]] = FULL | {
        "when": datetime.datetime.fromtimestamp(7e-6, datetime.UTC),
        "seen": datetime.datetime.fromtimestamp(8e-6, datetime.UTC),
        "facts": '{"a":"\\u00e9","b":[1,null]}',
    }
    SHOWN_ACL: ClassVar[dict[str, Any]] = ACL | {
        "until": datetime.datetime.fromtimestamp(5e-6, datetime.UTC),
        "modes": [("x", "MODE_FAST")],
    }
    EMPTY_ACL: ClassVar[dict[str, Any]] = {
        "grantee": "",
        "rights": None,
        "mode": "MODE_UNSPECIFIED",
        "until": None,
        "reason": None,
        "modes": None,
    }

    def put(self, count: int, *, arrow: bool = False, checkpoint: bool = False) -> list[dict[str, Any]]:
        world = World()
        catalog = world.catalog()
        catalog.register([odd()["Thing"], odd()["Part"]])
        given = [FULL | {"when": FULL["when"] + n} for n in range(count)]
        with world.writer(catalog=catalog) as writer:
            data: Any = given
            if arrow:
                shown = rows_of(world, given)
                data = shown
            world.commit(writer, ("put", "odd.things", data))
            if checkpoint:
                writer.checkpoint()
        return rows(world.snapshot(), "odd.things")

    def check(self, found: list[dict[str, Any]], count: int) -> None:
        assert len(found) == count
        for n, row in enumerate(found):
            expected = self.EXPECTED | {
                "when": datetime.datetime.fromtimestamp((7 + n) * 1e-6, datetime.UTC),
                "acl": self.SHOWN_ACL,
                "acls": [self.SHOWN_ACL, self.EMPTY_ACL, self.EMPTY_ACL | {"grantee": "bob"}],
                "by_name": [("a", self.SHOWN_ACL), ("b", self.EMPTY_ACL)],
                "by_number": [(-1, "x"), (2, "")],
                "blobs": [("k", b"\xff")],
                "flags": [(False, 0), (True, 1)],
            }
            assert row == expected

    @pytest.mark.parametrize("checkpoint", [False, True], ids=["log", "checkpoint"])
    @pytest.mark.parametrize("count", [1, 64, 65])
    def test_dicts_come_back(self, count: int, checkpoint: bool) -> None:
        self.check(self.put(count, checkpoint=checkpoint), count)

    @pytest.mark.parametrize("checkpoint", [False, True], ids=["log", "checkpoint"])
    def test_what_a_scan_showed_can_be_put_again_as_arrow(self, checkpoint: bool) -> None:
        self.check(self.put(3, arrow=True, checkpoint=checkpoint), 3)

    @pytest.mark.parametrize("count", [1, 65])
    def test_unset_fields_read_as_their_presence_says(self, count: int) -> None:
        world = World()
        catalog = world.catalog()
        catalog.register(odd()["Thing"])
        with world.writer(catalog=catalog) as writer:
            world.commit(writer, ("put", "odd.things", [{"when": n, "blob": b""} for n in range(count)]))
            for step in range(2):
                found = rows(world.snapshot(), "odd.things")[0]
                assert {n: v for n, v in found.items() if v is not None} == {
                    "when": datetime.datetime.fromtimestamp(0, datetime.UTC),
                    "blob": b"",
                    "text": "",
                    "count": 0,
                    "flag": False,
                    "weight": 0.0,
                    "raw": b"",
                    "uid": "00000000-0000-0000-0000-000000000000",
                    "seen": datetime.datetime.fromtimestamp(0, datetime.UTC),
                    "mode": "MODE_UNSPECIFIED",
                }, step
                writer.checkpoint()

    def test_integer_keys_sort_as_numbers_and_are_found(self) -> None:
        world = World()
        catalog = world.catalog()
        catalog.register([odd()["Part"], odd()["Upload"]])
        keys = [(v, u, n) for v in (0, 2**32 - 1) for u in (-(2**63), -1, 0, 2**63 - 1) for n in (0, 255, 256)]
        with world.writer(catalog=catalog) as writer:
            put = [{"volume": v, "upload": u, "number": n, "ratio": 0.5, "small": -1} for v, u, n in reversed(keys)]
            world.commit(writer, ("put", "odd.parts", put))
            for _ in range(2):
                snapshot = world.snapshot()
                found = rows(snapshot, "odd.parts")
                assert [(r["volume"], r["upload"], r["number"]) for r in found] == keys
                for v, u, n in keys:
                    row = snapshot.get("odd.parts", volume=v, upload=u, number=n)
                    assert row is not None and (row["volume"], row["upload"], row["number"], row["small"]) == (v, u, n, -1)
                within = snapshot.scan("odd.parts", where={"volume": [0], "upload": [-1, 0]}).to_arrow()
                assert within["upload"].to_pylist() == [-1] * 3 + [0] * 3
                writer.checkpoint()

    @pytest.mark.parametrize(
        ("change", "column"),
        [
            ({"acl": {"strange": 1}}, "acl"),
            ({"acl": 5}, "acl"),
            ({"acl": {"mode": "MODE_NONE"}}, "acl"),
            ({"acls": [None]}, "acls"),
            ({"acls": ACL}, "acls"),
            ({"by_name": {"a": None}}, "by_name"),
            ({"by_name": 5}, "by_name"),
            ({"by_number": {"1": "x"}}, "by_number"),
            ({"several": "MODE_FAST"}, "several"),
            ({"several": ["x"]}, "several"),
            ({"mode": 2**31}, "mode"),
            ({"mode": [1]}, "mode"),
            ({"numbers": [2**63]}, "numbers"),
            ({"uids": ["x"]}, "uids"),
            ({"uids": UID}, "uids"),
            ({"note": "123456"}, "note"),
            ({"labels": ["123456"]}, "labels"),
            ({"labels": [None]}, "labels"),
            ({"facts": "{"}, "facts"),
            ({"facts": {1, 2}}, "facts"),
            ({"weight": "1"}, "weight"),
            ({"seen": 2**63}, "seen"),
            ({"seen": 2**62}, "seen"),
            ({"seen": "2024-01-01"}, "seen"),
        ],
    )
    def test_values_that_do_not_fit_are_refused_with_row_and_column(self, change: dict[str, Any], column: str) -> None:
        world = World()
        catalog = world.catalog()
        catalog.register(odd()["Thing"])
        for count in (1, 65):
            with world.writer(catalog=catalog) as writer, pytest.raises(InvalidRows, match=column), writer.transaction() as tx:
                tx.put("odd.things", [FULL] * (count - 1) + [FULL | change])
        assert list(world.store.list("")) == []


def rows_of(world: World, given: list[dict[str, Any]]) -> pa.Table:
    """The rows as a scan shows them."""
    other = World()
    catalog = other.catalog()
    catalog.register(odd()["Thing"])
    with other.writer(catalog=catalog) as writer:
        other.commit(writer, ("put", "odd.things", given))
    return other.snapshot().scan("odd.things").to_arrow()


def test_any_reader_shows_tables_that_it_was_not_built_with() -> None:
    world = World()
    catalog = world.catalog()
    catalog.register(odd()["Word"])
    with world.writer(catalog=catalog) as writer:
        world.commit(writer, ("put", "odd.words", [{"word": "b"}, {"word": "a"}]))
        for _ in range(2):
            snapshot = world.snapshot()
            assert "odd.words" in snapshot.tables and "deleted_odd.words" in snapshot.tables
            assert rows(snapshot, "odd.words") == [{"word": "a"}, {"word": "b"}]
            writer.checkpoint()
    # A writer of another process needs no registration either: the catalog has the definition.
    with world.writer("v") as other:
        world.commit(other, ("put", "odd.words", {"word": "c"}))
    assert len(rows(world.snapshot(), "odd.words")) == 3


def test_descriptor_sets_of_the_log_need_nothing_but_protobuf() -> None:
    files = log_pb2.TableDefinition.FromString(table_of(odd()["Thing"]).definition).files

    assert isinstance(files, FileDescriptorSet)
    assert not any(name.startswith("bucketcatalog/") for file in files.file for name in file.dependency)
