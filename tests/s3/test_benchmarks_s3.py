"""The benchmarks on a real S3 server run and give results of the right shape; at this scale the numbers mean nothing."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks import run, s3_iox, s3_writers
from benchmarks.world import SMALL, World

pytestmark = pytest.mark.long

TINY = replace(
    SMALL,
    name="tiny",
    rounds=1,
    s3_commits=3,
    s3_seconds=0.5,
    s3_many=64,
    s3_writers=3,
    s3_tail=2,
    s3_objects=1_200,
    data_seconds=0.5,
)
MEASURES = {"s3_commits": 1, "s3_writers": 4, "s3_opening": 7, "s3_harvest": 3, "s3_iox": 2}
FEW = {"WRITERS": (2,), "AMONG_PEERS": 2, "MANY": 2}
"""Writers: each is a process more, which takes a second to begin. Peers are two, since one alone meets no conflict."""


def test_every_group_is_tried_here() -> None:
    assert set(run.OF_S3) == set(MEASURES)


@pytest.mark.parametrize("name", MEASURES)
def test_group_gives_its_measures(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, few in FEW.items():
        monkeypatch.setattr(s3_writers, number, few)
    monkeypatch.setattr(s3_iox, "WRITERS", 2)
    document = importlib.import_module(f"benchmarks.{name}").run(World(tmp_path, TINY, tmp_path)).document()

    assert len(document["measures"]) == MEASURES[name]
    assert json.loads(json.dumps(document)) == document
    counted = [measure for measure in document["measures"] if measure["compares"] == "ours" and measure["goal"]]
    assert all(measure["met"] for measure in counted), "what is counted, not timed, is the same at any scale"
