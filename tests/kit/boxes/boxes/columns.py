"""Columns that views compute."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

KILOGRAMS = pa.float64()


def kilograms(grams: pa.Array) -> pa.Array:
    """Thousands of grams."""
    return pc.divide(grams.cast(KILOGRAMS), 1000.0)
