"""Random histories on the real server: the engine says what the model says, whatever happened.

The histories are those of ``tests/property``; ``BUCKETCATALOG_S3_HISTORIES`` says how many.
"""

from __future__ import annotations

import os
import uuid
from itertools import count
from typing import Any

import pytest
from hypothesis import given, seed, settings

from bucketcatalog.store.s3.store import S3Store
from minio.process import Server
from tests.property.histories import histories
from tests.property.steps import History
from tests.property.test_histories import ANY_SPEED, run
from tests.property.world import Time

HISTORIES = int(os.environ.get("BUCKETCATALOG_S3_HISTORIES", "24"))
SHARES = 8
"""So many tests share the histories, for as many processes."""


@pytest.mark.parametrize("share", range(SHARES))
def test_histories_on_s3_end_as_the_model_says(share: int, server: Server, s3: Any) -> None:
    bucket, numbers = f"test-{uuid.uuid4().hex}", count()
    s3.create_bucket(Bucket=bucket)

    @settings(ANY_SPEED, max_examples=max(1, HISTORIES // SHARES))
    @given(histories())
    def search(history: History) -> None:
        run(history, S3Store(f"s3://{bucket}/{next(numbers)}", server.storage_options), Time())

    if settings().derandomize:  # or every share would try the same ones
        search = seed(share)(search)
    search()
