"""``tables``: what is there, and a ``.proto`` or what one was compiled to declared from a shell."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bucketcatalog import Catalog

from ...kit.world import PROTO, compiled, proto
from .conftest import Cli

TOOLS = Path(sys.prefix) / "protoc"
RUNS = 'message Runs { option (table) = { name: "jobs.runs" key: "id" }; string id = 1; optional double score = 2; }'
STEPS = 'message Step { option (table) = { name: "jobs.steps" key: "run" key: "step" }; string run = 1; int32 step = 2; }'


@pytest.fixture
def compiler(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compiler of protobuf is found in one way alone: as ``protoc`` on the PATH, or as a package of this Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    path = os.pathsep.join([str(TOOLS), os.environ.get("PYTHONPATH", "")])
    if request.param == "protoc":
        script = folder / "protoc"
        script.write_text(f'#!/bin/sh\nPYTHONPATH="{path}" exec "{sys.executable}" -m grpc_tools.protoc "$@"\n')
        script.chmod(0o755)
    elif request.param == "grpc_tools":
        monkeypatch.syspath_prepend(str(TOOLS))
        monkeypatch.setenv("PYTHONPATH", path)


@pytest.mark.parametrize("compiler", ["protoc", "grpc_tools"], indirect=True)
@pytest.mark.usefixtures("compiler")
def test_a_proto_is_compiled_and_its_tables_are_there_while_they_are_empty(cli: Cli, tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", tmp_path / "runs.proto"
    file.write_text(proto(RUNS, STEPS, "message Other { int32 x = 1; }"))
    assert cli("tables", lake, "--register", file, "--writer", "maintainer-me").out == (
        "jobs.runs: 2 columns, key id\njobs.steps: 2 columns, key run, step\nDeclared by maintainer-me@0.\n"
    )
    shown = {line["table"]: line for line in cli("tables", lake, "--json").lines}
    assert shown["jobs.steps"]["key"] == ["run", "step"] and shown["jobs.runs"]["columns"] == ["id", "score"]
    (logged,) = cli("log", lake, "--json").lines
    assert (logged["operation"], logged["metadata"], logged["events"]) == ("declare", {"tables": "jobs.runs, jobs.steps"}, 0)

    assert cli("tables", lake, "--register", file).out.splitlines()[-1] == "The database has them so already."
    again = cli("tables", lake, "--register", file, "--json").document
    assert (again["database"], again["version"]) == ("default", None)
    assert again["tables"][1] == {"table": "jobs.steps", "key": ["run", "step"], "columns": ["run", "step"]}

    file.write_text(
        proto(
            RUNS.replace("optional double", "reserved 2; optional int64 started = 3; optional double").replace(
                "score = 2", "more = 4"
            )
        )
    )
    assert cli("tables", lake, "--register", file, "--json").document["version"].startswith("maintainer-")
    assert Catalog(lake).snapshot().scan("jobs.runs").schema.names == ["id", "started", "more"]


@pytest.mark.parametrize("compiler", ["protoc"], indirect=True)
@pytest.mark.usefixtures("compiler")
def test_imports_are_found_beside_the_file_and_where_one_says(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "own" / "runs.proto"
    for folder, name in (("own", "near"), ("shared", "far")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.proto").write_text(
            f'syntax = "proto3"; package {name}; message Part {{ optional int32 x = 1; }}'
        )
    parts = RUNS.replace("optional double score = 2", "near.Part near = 2; far.Part far = 3")
    file.write_text(proto(parts, imports=["near.proto", "far.proto"]))
    failed = cli("tables", tmp_path / "lake", "--register", file)
    assert failed.code == 2 and "far.proto" in failed.err and "--proto-path" in failed.err
    cli("tables", tmp_path / "lake", "--register", file, "--proto-path", tmp_path / "shared")
    assert Catalog(tmp_path / "lake").snapshot().scan("jobs.runs").schema.names == ["id", "near", "far"]


def test_what_a_proto_imports_lies_in_the_folder_that_is_printed(cli: Cli) -> None:
    folder = Path(cli("tables", "--include").out.removesuffix("\n"))
    assert (folder / "bucketcatalog" / "v1" / "options.proto").read_bytes() == (
        PROTO / "bucketcatalog" / "v1" / "options.proto"
    ).read_bytes()


@pytest.mark.parametrize("compiler", ["none"], indirect=True)
@pytest.mark.usefixtures("compiler")
def test_without_a_compiler_one_is_told_how_to_go_on_and_a_descriptor_set_needs_none(cli: Cli, tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", tmp_path / "runs.proto"
    file.write_text(proto(RUNS))
    failed = cli("tables", lake, "--register", file)
    assert failed.code == 2 and "[INVALID_OPTION]" in failed.err
    assert "--descriptor_set_out=FILE.binpb runs.proto" in failed.err and "pip install grpcio-tools" in failed.err

    (tmp_path / "runs.binpb").write_bytes(compiled(proto(RUNS)))
    assert cli("tables", lake, "--register", tmp_path / "runs.binpb", "--json").document["tables"][0]["table"] == "jobs.runs"


def test_what_buf_builds_and_what_protoc_makes_without_imports_is_taken(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "protos").mkdir()
    (tmp_path / "protos" / "runs.proto").write_text(proto(RUNS))
    environment = os.environ | {"PYTHONPATH": str(TOOLS)}
    command = [sys.executable, "-m", "grpc_tools.protoc", f"--proto_path={PROTO}", f"--proto_path={tmp_path / 'protos'}"]
    subprocess.run([*command, f"--descriptor_set_out={tmp_path / 'bare.binpb'}", "runs.proto"], env=environment, check=True)
    options = tmp_path / "protos" / "bucketcatalog" / "v1" / "options.proto"
    options.parent.mkdir(parents=True)
    options.write_bytes((PROTO / "bucketcatalog" / "v1" / "options.proto").read_bytes())
    buf = Path(sys.executable).parent / "buf"
    subprocess.run([buf, "build", tmp_path / "protos", "-o", tmp_path / "built.binpb"], check=True, cwd=tmp_path)
    versions = [
        cli("tables", tmp_path / "lake", "--register", tmp_path / f"{name}.binpb", "--json").document["version"]
        for name in ("built", "bare")
    ]
    assert versions[0] is not None and versions[1] is None, "both are the same table"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (None, "INVALID_OPTION"),
        (b"\xffno descriptors", "INCOMPATIBLE_TABLE"),
        (b"", "INCOMPATIBLE_TABLE"),
        (compiled('syntax = "proto3"; message M { int32 x = 1; }'), "INCOMPATIBLE_TABLE"),
        (compiled(proto('message M { option (table) = { name: "a.b" key: "y" }; int32 x = 1; }')), "INCOMPATIBLE_TABLE"),
        (compiled(proto('message M { option (table) = { name: "data.b" key: "x" }; int32 x = 1; }')), "INCOMPATIBLE_TABLE"),
    ],
    ids=["nothing", "no set", "an empty one", "no table", "no key", "a data table's name"],
)
def test_a_file_that_declares_no_table_ends_with_2_and_writes_nothing(
    cli: Cli, tmp_path: Path, content: bytes | None, code: str
) -> None:
    if content is not None:
        (tmp_path / "x.binpb").write_bytes(content)
    failed = cli("tables", tmp_path / "lake", "--register", tmp_path / "x.binpb")
    assert failed.code == 2 and f"[{code}]" in failed.err and "Next: " in failed.err
    assert not (tmp_path / "lake").exists()


def test_a_declaration_goes_into_the_only_database_there_is_unless_one_is_named(cli: Cli, tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", tmp_path / "runs.binpb"
    file.write_bytes(compiled(proto(RUNS)))
    with Catalog(lake).writer("w", database="photos") as writer, writer.transaction() as tx:
        tx.put("buckets", {"owner": "8f3f1d6e-6a53-4b0c-9d3c-0d9a8d2b7c11", "name": "b"})
    assert cli("tables", lake, "--register", file, "--json").document["database"] == "photos"
    assert cli("tables", lake, "--register", file, "--database", "other", "--json").document["database"] == "other"
    failed = cli("tables", lake, "--register", file)
    assert failed.code == 1 and "[DATABASE_NOT_FOUND]" in failed.err


def test_options_that_do_not_go_together_are_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "runs.binpb"
    file.write_bytes(compiled(proto(RUNS)))
    for more in (["--limit", 1], ["--as-of", "@0"], ["--ignore-corruption"]):
        failed = cli("tables", tmp_path / "lake", "--register", file, *more)
        assert failed.code == 2 and "[INVALID_OPTION]" in failed.err
    for alone in (["--writer", "w"], ["--proto-path", tmp_path]):
        assert "--register FILE" in cli("tables", tmp_path / "lake", *alone).err
    assert not (tmp_path / "lake").exists()
