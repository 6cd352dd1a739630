"""What the shipped policies allow and refuse, on the real server, by plain requests: no code of the catalog is between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from bucketcatalog.model.names import COMPACTOR_PREFIX, MAINTAINER_PREFIX, role_of
from minio.clients import client
from minio.policy import FOLDER, ROLES, PolicyError, main, policy
from minio.process import Server

from ..kit.roles import credentials

ROOT = "inventory"
# Beside the root and the writer w1, names that begin as theirs do.
INSIDE = ["inventory/w1/main/a", "inventory/w10/main/a", "inventory/w2/main/a", "inventory/maintainer-1/main/a"]
OUTSIDE = ["inventory-old/w1/main/a", "inventoryw1/a", "other/inventory/w1/main/a", "w1/main/a"]

_PREFIX = {"compactor": COMPACTOR_PREFIX, "maintainer": MAINTAINER_PREFIX}

Clients = Callable[..., Any]


@pytest.fixture
def role(server: Server, bucket: str) -> Iterator[Clients]:
    """``role(name, writer)``: a client with the rights of that role for the catalog at ``root`` of the test's bucket."""
    made: list[Any] = []

    def make(name: str, writer: str | None = None, *, root: str = ROOT) -> Any:
        made.append(client(credentials(server, name, bucket, root, writer)))
        return made[-1]

    yield make
    for opened in made:
        opened.close()


@pytest.fixture
def filled(s3: Any, bucket: str) -> str:
    """The bucket, with objects of several writers and beside the catalog."""
    for key in INSIDE + OUTSIDE:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())
    return bucket


def refused(call: Callable[..., Any], **arguments: Any) -> None:
    """The server answers that the rights do not suffice, and nothing else."""
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert caught.value.response["Error"]["Code"] in ("AccessDenied", "403")


def body(of: Any, bucket: str, key: str) -> bytes:
    with of.get_object(Bucket=bucket, Key=key)["Body"] as stream:
        return bytes(stream.read())


def keys(of: Any, bucket: str, prefix: str) -> list[str]:
    return [found["Key"] for found in of.list_objects_v2(Bucket=bucket, Prefix=prefix).get("Contents", [])]


def everything(s3: Any, bucket: str) -> dict[str, bytes]:
    return {key: body(s3, bucket, key) for key in keys(s3, bucket, "")}


def upload_in_parts(of: Any, bucket: str, key: str) -> None:
    upload = {"Bucket": bucket, "Key": key, "UploadId": of.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]}
    parts = [
        {"PartNumber": number, "ETag": of.upload_part(**upload, PartNumber=number, Body=part)["ETag"]}
        for number, part in enumerate((bytes(5 << 20), b"end"), start=1)
    ]
    of.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})


@pytest.mark.parametrize(
    ("name", "writer"), [("reader", None), ("writer", "w1"), ("compactor", "compactor-1"), ("maintainer", "maintainer-1")]
)
class TestEveryRole:
    def test_reads_and_lists_all_of_the_catalog(self, role: Clients, filled: str, name: str, writer: str | None) -> None:
        client = role(name, writer)
        assert {key: body(client, filled, key) for key in INSIDE} == {key: key.encode() for key in INSIDE}
        assert keys(client, filled, "inventory/") == sorted(INSIDE)
        assert keys(client, filled, "inventory/w1/main/") == ["inventory/w1/main/a"]
        writers = client.list_objects_v2(Bucket=filled, Prefix="inventory/", Delimiter="/")["CommonPrefixes"]
        assert [found["Prefix"] for found in writers] == sorted(key.removesuffix("main/a") for key in INSIDE)
        assert client.head_object(Bucket=filled, Key=INSIDE[0])["ContentLength"] == len(INSIDE[0])
        assert client.get_bucket_location(Bucket=filled)["ResponseMetadata"]["HTTPStatusCode"] == 200

    def test_is_told_what_does_not_exist(self, role: Clients, filled: str, name: str, writer: str | None) -> None:
        client = role(name, writer)
        with pytest.raises(client.exceptions.NoSuchKey):
            client.get_object(Bucket=filled, Key="inventory/w1/main/missing")
        with pytest.raises(ClientError, match="404"):
            client.head_object(Bucket=filled, Key="inventory/w1/main/missing")
        assert keys(client, filled, "inventory/missing/") == []

    @pytest.mark.parametrize("prefix", [None, "", "i", "inventory", "inventory-old/", "w1/", "other/"])
    def test_lists_nothing_beside_the_catalog(
        self, role: Clients, filled: str, name: str, writer: str | None, prefix: str | None
    ) -> None:
        asked = {} if prefix is None else {"Prefix": prefix}
        for listing in (
            role(name, writer).list_objects_v2,
            role(name, writer).list_objects,
            role(name, writer).list_object_versions,
        ):
            refused(listing, Bucket=filled, **asked)

    # An object of the root's own name is not put there: MinIO's listings would show it, and nothing below it.
    @pytest.mark.parametrize("key", [*OUTSIDE, "inventory"])
    def test_reads_and_changes_nothing_beside_the_catalog(
        self, role: Clients, s3: Any, filled: str, name: str, writer: str | None, key: str
    ) -> None:
        client, before = role(name, writer), everything(s3, filled)
        refused(client.get_object, Bucket=filled, Key=key)
        refused(client.head_object, Bucket=filled, Key=key)
        refused(client.put_object, Bucket=filled, Key=key, Body=b"")
        refused(client.delete_object, Bucket=filled, Key=key)
        refused(client.create_multipart_upload, Bucket=filled, Key=key)
        refused(client.copy_object, Bucket=filled, Key=f"inventory/{writer}/stolen", CopySource={"Bucket": filled, "Key": key})
        assert everything(s3, filled) == before

    def test_reaches_no_other_bucket_and_changes_no_settings(
        self, role: Clients, s3: Any, filled: str, name: str, writer: str | None
    ) -> None:
        client, other = role(name, writer), f"{filled}-2"
        s3.create_bucket(Bucket=other)
        s3.put_object(Bucket=other, Key=INSIDE[0], Body=b"x")
        refused(client.get_object, Bucket=other, Key=INSIDE[0])
        refused(client.put_object, Bucket=other, Key=f"inventory/{writer}/x", Body=b"x")
        refused(client.list_objects_v2, Bucket=other, Prefix="inventory/")
        refused(client.create_bucket, Bucket=f"{filled}-3")
        refused(client.delete_bucket, Bucket=filled)
        refused(client.put_bucket_versioning, Bucket=filled, VersioningConfiguration={"Status": "Enabled"})
        refused(client.put_bucket_policy, Bucket=filled, Policy=json.dumps({"Version": "2012-10-17", "Statement": []}))


def test_a_reader_changes_nothing(role: Clients, s3: Any, filled: str) -> None:
    reader, before = role("reader"), everything(s3, filled)
    for key in [*INSIDE, "inventory/x", "inventory/new/main/a"]:
        refused(reader.put_object, Bucket=filled, Key=key, Body=b"")
        refused(reader.delete_object, Bucket=filled, Key=key)
        refused(reader.create_multipart_upload, Bucket=filled, Key=key)
    refused(reader.list_multipart_uploads, Bucket=filled)
    assert everything(s3, filled) == before


@pytest.mark.parametrize(("name", "own"), [("writer", "w1"), ("compactor", "compactor-1")])
class TestWriting:
    def test_puts_below_its_own_prefix(self, role: Clients, s3: Any, filled: str, name: str, own: str) -> None:
        writer = role(name, own)
        writer.put_object(Bucket=filled, Key=f"inventory/{own}/main/new", Body=b"new")
        writer.put_object(Bucket=filled, Key=f"inventory/{own}/main/once", Body=b"once", IfNoneMatch="*")
        with pytest.raises(ClientError, match="PreconditionFailed"):
            writer.put_object(Bucket=filled, Key=f"inventory/{own}/main/once", Body=b"twice", IfNoneMatch="*")
        upload_in_parts(writer, filled, f"inventory/{own}/main/large")
        assert body(s3, filled, f"inventory/{own}/main/new") == b"new"
        assert body(s3, filled, f"inventory/{own}/main/once") == b"once"
        assert s3.head_object(Bucket=filled, Key=f"inventory/{own}/main/large")["ContentLength"] == (5 << 20) + 3

    @pytest.mark.parametrize(
        "key",
        [*INSIDE[1:], "inventory/w2/main/new", "inventory/w10/new", "inventory/{own}", "inventory/{own}0/new", "inventory/x"],
    )
    def test_puts_nothing_below_the_prefix_of_another(
        self, role: Clients, s3: Any, filled: str, name: str, own: str, key: str
    ) -> None:
        writer, before, key = role(name, own), everything(s3, filled), key.format(own=own)
        refused(writer.put_object, Bucket=filled, Key=key, Body=b"forged")
        refused(writer.put_object, Bucket=filled, Key=key, Body=b"forged", IfNoneMatch="*")
        refused(writer.create_multipart_upload, Bucket=filled, Key=key)
        refused(writer.copy_object, Bucket=filled, Key=key, CopySource={"Bucket": filled, "Key": INSIDE[0]})
        assert everything(s3, filled) == before

    @pytest.mark.parametrize("key", ["inventory/{own}/../w2/main/a", "inventory/{own}/./../../w1/main/a"])
    def test_a_name_that_climbs_out_of_its_prefix_reaches_nothing(
        self, role: Clients, s3: Any, filled: str, name: str, own: str, key: str
    ) -> None:
        writer, before, key = role(name, own), everything(s3, filled), key.format(own=own)
        with pytest.raises(ClientError):
            writer.put_object(Bucket=filled, Key=key, Body=b"forged")
        assert everything(s3, filled) == before

    @pytest.mark.parametrize("key", INSIDE)
    def test_deletes_nothing_its_own_included(self, role: Clients, s3: Any, filled: str, name: str, own: str, key: str) -> None:
        writer = role(name, own)
        refused(writer.delete_object, Bucket=filled, Key=key)
        answer = writer.delete_objects(Bucket=filled, Delete={"Objects": [{"Key": key}]})
        assert [error["Code"] for error in answer["Errors"]] == ["AccessDenied"]
        assert body(s3, filled, key) == key.encode()

    def test_aborts_no_upload_and_lists_none(self, role: Clients, filled: str, name: str, own: str) -> None:
        writer = role(name, own)
        upload = writer.create_multipart_upload(Bucket=filled, Key=f"inventory/{own}/main/large")["UploadId"]
        refused(writer.abort_multipart_upload, Bucket=filled, Key=f"inventory/{own}/main/large", UploadId=upload)
        refused(writer.list_multipart_uploads, Bucket=filled)


class TestMaintaining:
    def test_deletes_anything_of_the_catalog(self, role: Clients, s3: Any, filled: str) -> None:
        maintainer = role("maintainer", "maintainer-1")
        maintainer.delete_object(Bucket=filled, Key=INSIDE[0])
        answer = maintainer.delete_objects(Bucket=filled, Delete={"Objects": [{"Key": key} for key in INSIDE[1:] + OUTSIDE]})
        assert sorted(error["Key"] for error in answer["Errors"]) == sorted(OUTSIDE)
        assert sorted(everything(s3, filled)) == sorted(OUTSIDE)

    def test_puts_below_its_own_prefix_and_no_other(self, role: Clients, s3: Any, filled: str) -> None:
        maintainer = role("maintainer", "maintainer-1")
        maintainer.put_object(Bucket=filled, Key="inventory/maintainer-1/main/new", Body=b"new")
        upload_in_parts(maintainer, filled, "inventory/maintainer-1/main/large")
        before = everything(s3, filled)
        for key in [*INSIDE[:3], "inventory/maintainer-10/a", "inventory/x"]:
            refused(maintainer.put_object, Bucket=filled, Key=key, Body=b"forged")
            refused(maintainer.create_multipart_upload, Bucket=filled, Key=key)
        assert everything(s3, filled) == before

    def test_finds_and_aborts_uploads_of_the_catalog(self, role: Clients, s3: Any, filled: str) -> None:
        maintainer = role("maintainer", "maintainer-1")
        started = {
            key: s3.create_multipart_upload(Bucket=filled, Key=key)["UploadId"]
            for key in ("inventory/w1/main/left", "inventory/w2/main/left", "inventory-old/left")
        }
        found = {upload["Key"]: upload["UploadId"] for upload in maintainer.list_multipart_uploads(Bucket=filled)["Uploads"]}
        assert found == started
        refused(
            maintainer.abort_multipart_upload, Bucket=filled, Key="inventory-old/left", UploadId=found.pop("inventory-old/left")
        )
        for key, upload in found.items():
            maintainer.abort_multipart_upload(Bucket=filled, Key=key, UploadId=upload)
        assert [upload["Key"] for upload in s3.list_multipart_uploads(Bucket=filled)["Uploads"]] == ["inventory-old/left"]


class TestCatalogInARoot:
    """A catalog that has a bucket to itself."""

    def test_writer_lists_all_and_puts_below_its_prefix(self, role: Clients, filled: str) -> None:
        writer = role("writer", "w1", root="")
        assert sorted(keys(writer, filled, "")) == sorted(INSIDE + OUTSIDE)
        assert writer.list_objects_v2(Bucket=filled)["KeyCount"] == len(INSIDE + OUTSIDE)
        writer.head_bucket(Bucket=filled)
        writer.put_object(Bucket=filled, Key="w1/main/new", Body=b"new")
        for key in ("w10/main/a", "w2/main/a", "w1", "inventory/w1/main/a"):
            refused(writer.put_object, Bucket=filled, Key=key, Body=b"forged")
        refused(writer.delete_object, Bucket=filled, Key="w1/main/new")

    def test_reader_reads_and_maintainer_deletes(self, role: Clients, s3: Any, filled: str) -> None:
        assert body(role("reader", root=""), filled, "w1/main/a") == b"w1/main/a"
        refused(role("reader", root="").put_object, Bucket=filled, Key="w1/main/a", Body=b"")
        role("maintainer", "maintainer-1", root="").delete_object(Bucket=filled, Key="w1/main/a")
        assert "w1/main/a" not in everything(s3, filled)

    def test_deeper_root_reaches_no_shallower_one(self, role: Clients, filled: str) -> None:
        writer = role("writer", "a", root="inventory/w1/main")
        writer.put_object(Bucket=filled, Key="inventory/w1/main/a/x", Body=b"new")
        refused(writer.put_object, Bucket=filled, Key="inventory/w1/x", Body=b"forged")
        refused(writer.list_objects_v2, Bucket=filled, Prefix="inventory/w1/")


def test_names_that_look_like_placeholders_or_are_odd_stay_as_they_are(server: Server, s3: Any, bucket: str) -> None:
    for root, writer in (("WRITER/BUCKET", "ROOT"), ("my lake/ö & [x]", "a.b-c_d")):
        options = credentials(server, "writer", bucket, root, writer)
        limited = client(options)
        limited.put_object(Bucket=bucket, Key=f"{root}/{writer}/a", Body=b"1")
        assert keys(limited, bucket, f"{root}/") == [f"{root}/{writer}/a"]
        refused(limited.put_object, Bucket=bucket, Key=f"{root}/other/a", Body=b"1")
        limited.close()


def test_a_compactor_has_the_rights_of_a_writer() -> None:
    compactor, writer = (
        json.dumps(policy(*role)) for role in (("compactor", "lake", "r", "compactor-1"), ("writer", "lake", "r", "w1"))
    )
    assert compactor.replace("compactor-1", "w1") == writer


@pytest.mark.parametrize(
    ("role", "writer", "meant"),
    [
        ("writer", "compactor-1", "compactor"),
        ("writer", "maintainer-1", "maintainer"),
        ("writer", "maintainer-", "maintainer"),
        ("compactor", "maintainer-1", "maintainer"),
        ("maintainer", "compactor-1", "compactor"),
        ("compactor", "w1", "writer"),
        ("maintainer", "maintainer", "writer"),
        ("maintainer", "my-maintainer-1", "writer"),
    ],
)
def test_an_id_gets_the_rights_of_the_role_that_readers_take_it_for(
    role: str, writer: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert role_of(writer) == meant
    assert main([role, "lake/inventory", writer]) == 1
    told = capsys.readouterr()
    assert told.out == "" and f"{writer!r} is the id of a {meant} for all who read: ask for the policy of a {meant}" in told.err
    assert main([meant, "lake/inventory", writer]) == 0


def test_the_rights_of_a_writer_end_at_the_slash_behind_its_id_and_have_nothing_that_deletes() -> None:
    for role, own in (("writer", "w"), ("compactor", "compactor-w")):
        statements = policy(role, "lake", "inventory", own)["Statement"]
        assert {each["Effect"] for each in statements} == {"Allow"}
        actions = {action: each["Resource"] for each in statements for action in each["Action"]}
        assert sorted(actions) == ["s3:GetBucketLocation", "s3:GetObject", "s3:ListBucket", "s3:PutObject"]
        assert actions["s3:PutObject"] == [f"arn:aws:s3:::lake/inventory/{own}/*"]


def test_every_policy_is_a_role_and_fits_a_session() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(ROLES)
    for name in ROLES:
        writer = None if name == "reader" else _PREFIX.get(name, "").ljust(128, "w")
        text = json.dumps(policy(name, "b" * 63, "r" * 80, writer), separators=(",", ":"))
        assert len(text) <= 2048  # the most that AssumeRole takes


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("owner", "lake", "inventory", "w1"), "no role"),
        (("reader", "Lake"), "bucket"),
        (("reader", "*"), "bucket"),
        (("reader", ""), "bucket"),
        (("reader", "lake", "*"), "root"),
        (("reader", "lake", "a?"), "root"),
        (("reader", "lake", "${aws:username}"), "root"),
        (("reader", "lake", "a//b"), "root"),
        (("reader", "lake", "/a"), "root"),
        (("reader", "lake", "../a"), "root"),
        (("reader", "lake", "a\n"), "root"),
        (("reader", "lake", "inventory", "w1"), "leave the writer out"),
        (("writer", "lake", "inventory"), "needs the id"),
        (("writer", "lake", "inventory", ""), "needs the id"),
        (("writer", "lake", "inventory", "*"), "needs the id"),
        (("writer", "lake", "inventory", "w*"), "needs the id"),
        (("writer", "lake", "inventory", "w?"), "needs the id"),
        (("writer", "lake", "inventory", "${aws:username}"), "needs the id"),
        (("writer", "lake", "inventory", "maintainer?1"), "needs the id"),
        (("compactor", "lake", "inventory", "a/b"), "needs the id"),
        (("maintainer", "lake", "inventory", ".."), "needs the id"),
        (("maintainer", "lake", "inventory", "w1\n"), "needs the id"),
    ],
)
def test_names_that_would_give_other_rights_are_refused(arguments: tuple[str, ...], reason: str) -> None:
    with pytest.raises(PolicyError, match=reason):
        policy(*arguments)


def test_the_command_prints_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    for catalog, root in (("lake/inventory", "inventory"), ("s3://lake/inventory/", "inventory"), ("lake", "")):
        assert main(["writer", catalog, "w1"]) == 0
        assert json.loads(capsys.readouterr().out) == policy("writer", "lake", root, "w1")
    assert main(["writer", "lake/inventory"]) == 1
    told = capsys.readouterr()
    assert (told.out, told.err.count("\n")) == ("", 1)
