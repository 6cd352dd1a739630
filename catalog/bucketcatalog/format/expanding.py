"""Text as it was decoded: dictionaries become values, where these are not too large, and what should be text is text.

A decoder makes as many copies of a dictionary's values as there are rows, and does not look whether bytes are UTF-8. So it is given no
dictionaries that may come to much.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import limits
from ..model.arrays import leaves, one_chunk


def expanded(rows: pa.Table, schema: pa.Schema, texts: Collection[str]) -> dict[str, pa.ChunkedArray | pa.Array]:
    """The columns with the types of the schema, dictionaries expanded; ``texts`` are those in which there are texts or bytes.

    ``ValueError`` where they would be too large, or text is no UTF-8.
    """
    size, found = 0, dict(zip(rows.column_names, rows.columns, strict=True))
    for name in texts:
        values, wanted = one_chunk(found[name]), schema.field(name)
        for leaf in leaves(values):
            if pa.types.is_dictionary(leaf.type):
                size += _expanded_size(leaf)
                if size > limits.GROUP_BYTES:
                    raise ValueError(f"{wanted.name} has more than {limits.GROUP_BYTES} bytes of text")
                leaf = leaf.dictionary
            _check_text(leaf, wanted.name)
        found[name] = values if values.type == wanted.type else values.cast(wanted.type)
    return found


def _expanded_size(values: pa.DictionaryArray) -> int:
    """How many bytes the values are without the dictionary, or a bound that is small enough."""
    lengths = pc.binary_length(values.dictionary)
    longest = pc.max(lengths).as_py() or 0
    most = longest * len(values)
    return int(most if most <= limits.GROUP_BYTES // 16 else pc.sum(lengths.take(values.indices)).as_py() or 0)


def _check_text(values: pa.Array, name: str) -> None:
    """``ValueError`` where this is text that is no UTF-8. What has no byte above 127 is."""
    if not pa.types.is_string(values.type) or not len(values):
        return
    data = values.buffers()[2]
    if data is None or not data.size or np.frombuffer(data, np.uint8).max() < 128:
        return
    try:
        values.validate(full=True)
    except pa.ArrowInvalid:
        raise ValueError(f"{name} has text that is no UTF-8") from None
