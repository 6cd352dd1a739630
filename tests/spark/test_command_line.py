"""``bucketcatalog spark``: real jobs, submitted as people and schedulers do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pyspark
import pytest

from bucketcatalog import Catalog
from bucketcatalog.cli.spark import JOBS
from pyspark_bucketcatalog.jobs.__main__ import app

from ..kit.blocks import ROOT
from ..kit.trees import assert_same, make_tree

pytestmark = pytest.mark.once


def bucketcatalog(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "bucketcatalog", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment, check=False)


def test_a_harvest_and_a_checkpoint_are_submitted_and_their_output_is_the_jobs(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree", [b"a", b"b/c", b"b/d", b"no.tmp"])
    to_spark = ["--master", "local[2]", "--conf", "spark.ui.enabled=false"]
    ran = bucketcatalog(
        "spark", *to_spark, "harvest", "tree", "lake", "--bucket", "t", "--exclude", "*.tmp", "--json", cwd=tmp_path
    )

    assert ran.returncode == 0, ran.stderr
    (line,) = ran.stdout.splitlines()
    assert (json.loads(line)["created"], json.loads(line)["bucket"], len(json.loads(line)["transactions"])) == (3, "t", 1)
    (root / "no.tmp").unlink()
    assert_same(Catalog(tmp_path / "lake"), root)
    ran = bucketcatalog("spark", *to_spark, "checkpoint", "lake", cwd=tmp_path)
    assert ran.returncode == 0 and Catalog(tmp_path / "lake").snapshot().view.tail == ()


def test_a_job_that_fails_ends_as_every_command_does(tmp_path: Path) -> None:
    make_tree(tmp_path / "tree", [b"a"])
    missing = bucketcatalog("spark", "--conf", "spark.ui.enabled=false", "harvest", "typo", "lake", "--json", cwd=tmp_path)
    wrong = bucketcatalog("spark", "harvest", "tree", cwd=tmp_path)

    assert (missing.returncode, missing.stdout) == (1, "")
    assert missing.stderr.splitlines()[-1].startswith("[SOURCE_NOT_FOUND] ")
    assert wrong.returncode == 2 and "Missing argument 'CATALOG'" in wrong.stderr


def test_the_command_line_knows_every_job() -> None:
    assert sorted(JOBS) == sorted(command.callback.__name__ for command in app.registered_commands if command.callback)


def test_the_package_need_not_be_installed_where_spark_ships_it(tmp_path: Path) -> None:
    package = tmp_path / "bucketcatalog.zip"
    with zipfile.ZipFile(package, "w") as zipped:
        for folder in (ROOT / "catalog", ROOT / "spark"):
            for file in folder.glob("**/*.py"):
                zipped.write(file, file.relative_to(folder))
        program = tmp_path / "program.py"
        program.write_bytes(zipped.read("pyspark_bucketcatalog/jobs/__main__.py"))
    make_tree(tmp_path / "tree", [b"a", b"b/c"])
    venv.create(tmp_path / "empty")
    python = tmp_path / "empty" / "bin" / "python"
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": str(python),
        "PYSPARK_DRIVER_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    environment["PYTHONPATH"] = str(Path(pyspark.__file__).parents[1])  # as nothing there is run, this package is not found by it
    missing = subprocess.run(
        [python, "-c", "import bucketcatalog.errors"], env=environment, capture_output=True, check=False, cwd=tmp_path
    )
    assert missing.returncode == 1
    submit = [str(Path(sys.prefix) / "bin" / "spark-submit"), "--master", "local-cluster[1,1,1024]", "--py-files", str(package)]
    ran = subprocess.run(
        [*submit, str(program), "harvest", str(tmp_path / "tree"), str(tmp_path / "lake"), "--bucket", "t"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0 and "2 created" in ran.stdout, ran.stderr[-3_000:]
    assert_same(Catalog(tmp_path / "lake"), tmp_path / "tree")
