"""The generated code is what the .proto files say, old runtimes can load it, and no .proto breaks what was released."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

ROOT = Path(__file__).resolve().parent.parent.parent
GENERATED = Path("bucketcatalog/v1")
BUF = Path(sys.executable).parent / "buf"
BUF_FOUND_PROBLEMS = 100

# What the Spark Connect client of PySpark 4.3 was generated with: who can run that can run this.
NEWEST_GENCODE = (6, 33, 5)

FIELD = re.compile(r"^(  (?:repeated |optional )?[\w.]+ (\w+) = )\d+(?=[; ])", re.MULTILINE)


def generated_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def buf(*arguments: str, root: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([BUF, *arguments], cwd=root, capture_output=True, text=True, check=False)


def extensions(image: Path) -> dict[str, tuple[str, int, int]]:
    """The extensions that a buf image defines, which is a FileDescriptorSet to other readers."""
    files = FileDescriptorSet.FromString(image.read_bytes()).file
    return {
        f"{file.package}.{field.name}": (field.extendee, field.number, field.type) for file in files for field in file.extension
    }


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of all that buf reads, to be spoilt."""
    shutil.copytree(ROOT / "proto", tmp_path / "proto")
    shutil.copy(ROOT / "buf.yaml", tmp_path)
    return tmp_path


def test_generating_again_changes_nothing(tmp_path: Path) -> None:
    subprocess.run([sys.executable, ROOT / "scripts/generate-proto", tmp_path], check=True)

    assert generated_files(tmp_path / GENERATED) == generated_files(ROOT / "catalog" / GENERATED)


def test_generated_code_loads_with_the_protobuf_of_spark_connect() -> None:
    files = sorted((ROOT / "catalog" / GENERATED).glob("*_pb2.py"))
    versions = {path.name: re.findall(r"^# Protobuf Python Version: ([\d.]+)$", path.read_text(), re.MULTILINE) for path in files}

    assert versions
    for name, found in versions.items():
        assert len(found) == 1, name
        assert tuple(map(int, found[0].split("."))) <= NEWEST_GENCODE, name


def test_lint_passes() -> None:
    result = buf("lint")

    assert result.returncode == 0, result.stdout + result.stderr


def test_nothing_released_is_broken() -> None:
    result = buf("breaking", "--against", "proto/released.binpb")

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("source", sorted(path.stem for path in (ROOT / "proto" / GENERATED).glob("*.proto")))
def test_renumbering_a_released_field_is_detected(copy: Path, source: str) -> None:
    file = copy / "proto" / GENERATED / f"{source}.proto"
    text = file.read_text()
    field = FIELD.search(text, text.index("\nmessage "))
    assert field is not None
    file.write_text(text[: field.start()] + field[1] + "60000" + text[field.end() :])

    result = buf("breaking", "--against", "proto/released.binpb", root=copy)

    assert result.returncode == BUF_FOUND_PROBLEMS, result.stdout + result.stderr
    assert f'"{field[2]}"' in result.stdout


def test_released_extensions_keep_their_numbers(tmp_path: Path) -> None:
    """Buf does not look at the numbers of extensions, and they lie in every log, inside of the tables' descriptors."""
    result = buf("build", "--output", str(tmp_path / "now.binpb"))
    assert result.returncode == 0, result.stderr
    released, now = extensions(ROOT / "proto/released.binpb"), extensions(tmp_path / "now.binpb")

    assert released
    assert {name: now.get(name) for name in released} == released


def test_lint_finds_a_badly_named_field(copy: Path) -> None:
    (copy / "proto" / GENERATED / "bad.proto").write_text(
        'syntax = "proto3";\n\npackage bucketcatalog.v1;\n\nmessage Bad {\n  string NotSnakeCase = 1;\n}\n'
    )

    result = buf("lint", root=copy)

    assert result.returncode == BUF_FOUND_PROBLEMS, result.stdout + result.stderr
    assert "NotSnakeCase" in result.stdout
