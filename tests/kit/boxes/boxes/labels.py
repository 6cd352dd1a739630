"""Labels: what is glued on boxes, as files of a folder that is no part of any catalog."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from bucketcatalog.store.base import Store

FOLDER = "BOXES_LABELS"
"""The variable that names the folder."""


def peeler(store: Store) -> Callable[[pa.Table], pa.Array]:
    """Removes the labels of boxes that are gone."""

    def peel(references: pa.Table) -> pa.Array:
        folder = Path(os.environ[FOLDER])
        for label in references["label"].to_pylist():
            (folder / label).unlink(missing_ok=True)
        return pa.array([True] * len(references))

    return peel
