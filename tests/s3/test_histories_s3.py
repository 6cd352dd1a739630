"""Random histories on the real server: the engine says what the model says, whatever happened.

The histories are those of ``tests/property/test_histories.py``.
"""

from __future__ import annotations

import uuid
from itertools import count
from typing import Any

import pytest
from hypothesis import given

from bucketcatalog.store.s3.store import S3Store
from minio.process import Server

from ..kit.chance import SEARCHES, searching
from ..kit.machine.histories import histories
from ..kit.machine.running import run
from ..kit.machine.steps import History
from ..kit.machine.world import Time

pytestmark = pytest.mark.long


@pytest.mark.parametrize("share", range(SEARCHES["s3"].shares))
def test_histories_on_s3_end_as_the_model_says(share: int, server: Server, s3: Any) -> None:
    bucket, numbers = f"test-{uuid.uuid4().hex}", count()
    s3.create_bucket(Bucket=bucket)

    @searching("s3", share)
    @given(histories())
    def search(history: History) -> None:
        run(history, S3Store(f"s3://{bucket}/{next(numbers)}", server.storage_options), Time())

    search()
