"""Whatever is asked of frames, views and tables that are kept, in whatever order: Spark answers as lists of the committed rows do.

Each catalog is asked ten questions. A failure prints what was done and asked.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from random import Random

import pytest
from pyspark.sql import SparkSession

from bucketcatalog.log import segments
from pyspark_bucketcatalog.reading import frames

from ..kit.chance import count, seed_of
from .asked import Lake
from .questions import Asker, Source, answer

STEPS = 10
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


# A shorter sequence of questions says little more, and Spark would take minutes to find it: so a case is a seed, and no other is tried.
@pytest.mark.parametrize("share", [0, pytest.param(1, marks=pytest.mark.once)])
def test_whatever_is_asked_in_whatever_order_the_answer_is_that_of_the_committed_rows(
    spark: SparkSession, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed = seed_of(f"questions {share}")
    rng, own, told = Random(seed), spark.newSession(), [f"seed {seed}"]
    monkeypatch.setattr(
        segments, "INLINE_RUN_BYTES", rng.choice([0, 16 << 10])
    )  # these few rows would mostly lie in the checkpoints
    for name in ("LOCAL_ROWS", "LOCAL_KEYS"):
        monkeypatch.setattr(frames, name, rng.choice([0, 8_192]))
    own.conf.set("spark.sql.shuffle.partitions", "1")
    own.conf.set("spark.sql.codegen.wholeStage", "false")  # to compile takes longer than these few rows
    with tempfile.TemporaryDirectory() as folder:
        lake = Lake(f"{folder}/lake", rng)
        sources: list[Source] = []
        try:
            for step in range(STEPS):
                done = lake_changes(lake, rng)
                told.append(f"{step}: {done}")
                if len(sources) < 2 or rng.random() < 0.15:
                    sources.append(lake.source(own))
                    told.append(f"   {sources[-1].name} is new")
                question, sql = Asker(rng, lake.values).question(sources), rng.random() < 0.4
                own.conf.set(PUSHDOWN, rng.choice(["true", "false"]))
                told.append(f"   {'SQL' if sql else 'frame'}: {question.sql()}")
                assert answer(own, question, sql=sql) == Counter(question.rows()), "\n".join(told)
        finally:
            lake.close()
            for source in sources:
                source.forget(own)
    count("questions")


def lake_changes(lake: Lake, rng: Random) -> str:
    """What happens between two questions: mostly nothing."""
    what = rng.choice(["nothing", "nothing", "commit", "commit", "checkpoint", "tag"])
    if what != "nothing":
        getattr(lake, what)()
    return what
