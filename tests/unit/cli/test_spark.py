"""``bucketcatalog spark``: what is run, found where, with which Python; tests/spark runs real jobs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SUBMIT = f"""#!{sys.executable}
import json, os, sys
names = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
print("something of Spark's")
with open(os.environ["BUCKETCATALOG_JOB_OUTPUT"], "w") as output:
    print(json.dumps([sys.argv, {{name: os.environ.get(name) for name in names}}]), file=output)
sys.exit(7)
"""


@pytest.fixture
def submit(tmp_path: Path) -> Path:
    """A program that tells what it was run with, and ends with 7."""
    path = tmp_path / "spark" / "bin" / "spark-submit"
    path.parent.mkdir(parents=True)
    path.write_text(SUBMIT)
    path.chmod(0o755)
    return path


def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bucketcatalog", "spark", *map(str, arguments)]
    given = {
        name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    }
    return subprocess.run(command, capture_output=True, text=True, env=given | environment, check=False)


def test_options_before_the_job_are_of_spark_submit_and_what_comes_after_it_is_the_jobs(submit: Path) -> None:
    before = ["--master", "local[2]", "--conf", "a=b", "--conf=c=d", "-v", "--py-files", "x.whl"]
    after = ["s3://photos", "lake", "--json", "--master", "no", "--submit", "no", "-h"]
    ran = run(*before, "--submit", submit, "harvest", *after)
    argv, environment = json.loads(ran.stdout)

    assert argv[: len(before) + 1] == [str(submit), *before]
    program, *rest = argv[len(before) + 1 :]
    assert program.endswith("pyspark_bucketcatalog/jobs/__main__.py") and Path(program).is_file()
    assert rest == ["harvest", *after]
    assert (ran.returncode, ran.stderr) == (7, "something of Spark's\n")
    assert environment == {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def test_executors_of_other_machines_have_a_python_of_their_own_and_who_says_which_is_obeyed(submit: Path) -> None:
    for master in (["--master", "yarn"], ["--master=k8s://host"]):
        _, environment = json.loads(run(f"--submit={submit}", *master, "gc", "lake").stdout)
        assert environment == {"PYSPARK_PYTHON": None, "PYSPARK_DRIVER_PYTHON": sys.executable}
    _, environment = json.loads(
        run("--submit", submit, "gc", "lake", PYSPARK_PYTHON="mine", PYSPARK_DRIVER_PYTHON="my own").stdout
    )
    assert environment == {"PYSPARK_PYTHON": "mine", "PYSPARK_DRIVER_PYTHON": "my own"}


def test_spark_submit_is_that_of_spark_home_or_of_the_path(submit: Path, tmp_path: Path) -> None:
    home = submit.parents[1]
    assert json.loads(run("gc", "lake", SPARK_HOME=str(home), PATH="").stdout)[0][0] == str(submit)
    assert json.loads(run("gc", "lake", SPARK_HOME=str(tmp_path), PATH=str(submit.parent)).stdout)[0][0] == str(submit)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-job"], "There is no job 'no-job'. Next: Name one of checkpoint, gc, harvest, reap"),
        (["--master", "local"], "No job is named."),
        (["--master"], "The option --master has no value."),
        (["--submit", "/nowhere", "gc"], "'/nowhere' cannot be run. Next: Give the path of spark-submit"),
    ],
)
def test_wrong_usage_is_told_in_one_line(arguments: list[str], said: str) -> None:
    ran = run(*arguments)

    assert (ran.returncode, ran.stdout, ran.stderr.count("\n")) == (2, "", 1)
    assert ran.stderr.startswith("[INVALID_OPTION] ") and said in ran.stderr


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ("pyspark", "There is no spark-submit on this machine"),
        ("pyspark_bucketcatalog", "The package pyspark_bucketcatalog is not installed"),
    ],
)
def test_what_is_not_installed_is_told_with_what_to_do(missing: str, said: str, submit: Path) -> None:
    code = f"""
import importlib.util, sys
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name == {missing!r} else found(name, package)
sys.argv = ["bucketcatalog", "spark", "gc", "lake"]
from bucketcatalog.cli import main
main()
"""
    environment = {**os.environ, "PATH": "" if missing == "pyspark" else str(submit.parent)}
    environment.pop("SPARK_HOME", None)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)

    assert (ran.returncode, ran.stdout) == (1, "") and ran.stderr.startswith("[NOT_FOUND] ")
    assert said in ran.stderr and "pip install" in ran.stderr


def test_a_signal_reaches_the_job(submit: Path, tmp_path: Path) -> None:
    started, told = tmp_path / "started", tmp_path / "told"
    submit.write_text(f"#!/bin/sh\ntrap 'echo told > {told}; exit 3' TERM\ntouch {started}\nwhile true; do sleep 0.05; done\n")
    command = [sys.executable, "-m", "bucketcatalog", "spark", "--submit", str(submit), "gc", "lake"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        until = time.monotonic() + 60
        while not started.exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.terminate()
        assert process.wait(60) == 3
    assert told.exists()


def test_the_help_names_the_jobs_and_starts_nothing() -> None:
    ran = run("--help", PATH="")
    assert ran.returncode == 0
    assert all(word in ran.stdout for word in ("harvest", "checkpoint", "gc", "reap", "--submit PATH", "--master", "Example:"))
