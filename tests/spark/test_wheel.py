"""The wheel alone, in an environment of its own: the README's first answer, its first DataFrame, and the command."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from ..kit.blocks import ROOT, blocks_of
from ..kit.installing import BOXES

pytestmark = pytest.mark.once

SESSION = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
"""


def run(*command: str | Path, cwd: Path, environment: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[:4]}: {done.stdout[-2_000:]} {done.stderr[-2_000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment in which nothing is installed but the wheel, what it asks for, and the PySpark of this lane."""
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "empty")
    found = folder / "empty" / "bin" / "python"
    versions = folder / "constraints.txt"
    others = [line for line in _constraints() if not line.startswith("pyspark==")]
    versions.write_text("".join([*others, f"pyspark=={pyspark.__version__}\n"]))
    # What of it is imported is compiled then, which is little of it.
    pip(found, "install", "--no-compile", "--constraint", versions, wheel, cwd=folder)
    return found


def _constraints() -> list[str]:
    return (ROOT / "constraints.txt").read_text().splitlines(keepends=True)


def pip(python: Path, command: str, *arguments: str | Path, cwd: Path) -> None:
    """This environment's pip, at work in that one."""
    run(sys.executable, "-m", "pip", "--python", python, command, "--quiet", *arguments, cwd=cwd, environment=_alone(python))


def _alone(python: Path) -> dict[str, str]:
    """This process's variables but for those that lead to what it runs from."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "PYSPARK_PYTHON": str(python), "PYSPARK_DRIVER_PYTHON": str(python)}


def test_the_readme_is_true_of_the_wheel(python: Path, tmp_path: Path) -> None:
    blocks = {block.kind: block.text for block in reversed(blocks_of(ROOT / "README.md"))}
    answer = run(python, "-c", blocks["python"], cwd=tmp_path, environment=_alone(python))
    frame = run(python, "-c", SESSION + blocks["python spark"], cwd=tmp_path, environment=_alone(python))
    shown = run(python.with_name("bucketcatalog"), "ls", "lake", "cats", cwd=tmp_path, environment=_alone(python))

    assert "2024/tom.jpg" in answer
    assert "48112" in frame and "upload" in frame
    assert "2024/tom.jpg" in shown


def test_a_system_that_is_installed_beside_it_is_there(python: Path, tmp_path: Path) -> None:
    pip(python, "install", "--no-deps", BOXES, cwd=tmp_path)
    code = """
from bucketcatalog import Catalog
with Catalog("lake").writer("w") as writer, writer.transaction() as tx:
    tx.put("boxes.boxes", {"name": "a", "grams": 1500})
print(Catalog("lake").snapshot().scan("box_weights").to_arrow()["kilograms"].to_pylist())
"""
    assert run(python, "-c", code, cwd=tmp_path, environment=_alone(python)).strip() == "[1.5]"
    weighed = run(python.with_name("bucketcatalog"), "boxes", "weigh", "lake", cwd=tmp_path, environment=_alone(python))
    assert "1.5" in weighed
    pip(python, "uninstall", "--yes", "bucketcatalog-boxes", cwd=tmp_path)


def test_own_tables_need_a_compiler_that_pip_has_and_nothing_of_the_source_tree(python: Path, tmp_path: Path) -> None:
    """What docs/guide/tables.md says, by the word of the wheel alone: its command compiles a file, and so does a compiler for Python."""
    constraint = tmp_path / "constraints.txt"
    constraint.write_text("".join(line for line in _constraints() if line.startswith(("grpcio==", "protobuf=="))))
    pip(python, "install", "--constraint", constraint, "grpcio-tools", cwd=tmp_path)
    (tmp_path / "runs.proto").write_text(
        """syntax = "proto3"; package jobs; import "bucketcatalog/v1/options.proto";
        message Run { option (bucketcatalog.v1.table) = {name: "jobs.runs" key: "id"}; string id = 1; }"""
    )
    command = python.with_name("bucketcatalog")
    run(command, "tables", "lake", "--register", "runs.proto", cwd=tmp_path, environment=_alone(python))
    include = run(command, "tables", "--include", cwd=tmp_path, environment=_alone(python)).strip()
    compiler = [python, "-m", "grpc_tools.protoc", "--proto_path=.", f"--proto_path={include}", "--python_out=.", "runs.proto"]
    run(*compiler, cwd=tmp_path, environment=_alone(python))
    code = """
from bucketcatalog import Catalog
import runs_pb2
cat = Catalog("lake")
assert cat.register(runs_pb2) == ["jobs.runs"] and cat.declare(["jobs.runs"]) is None
with cat.writer("w") as writer, writer.transaction() as tx:
    tx.put("jobs.runs", {"id": "a"})
print(Catalog("lake").snapshot().scan("jobs.runs").to_arrow()["id"].to_pylist())
"""
    assert run(python, "-c", code, cwd=tmp_path, environment=_alone(python)).strip() == "['a']"
    assert include.startswith(str(python.parents[1]))


def test_the_environment_has_nothing_of_this_one(python: Path, tmp_path: Path) -> None:
    code = "import bucketcatalog, pyspark, sys; print(bucketcatalog.__file__, pyspark.__version__, sys.prefix)"
    where, version, prefix = run(python, "-c", code, cwd=tmp_path, environment=_alone(python)).split()

    assert where.startswith(prefix) and prefix != sys.prefix
    assert version == pyspark.__version__
