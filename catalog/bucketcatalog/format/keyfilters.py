"""The filters of a segment's runs as a sealed message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from google.protobuf.message import DecodeError

from ..errors import CorruptionError
from ..model.bloom import Hashes, KeyFilter
from ..v1 import log_pb2
from .blocks import BlockClass
from .sealing import digest, seal, unseal


def encode_filters(hashes: Mapping[tuple[str, BlockClass], Sequence[Hashes]]) -> bytes:
    """A filter over the keys of each table and class, by their hashes."""
    message = log_pb2.KeyFilters()
    for (table, block_class), parts in hashes.items():
        message.filters.add(table=table, **{"class": block_class}, words=KeyFilter.of(np.concatenate(parts)).data)
    return seal(message.SerializeToString(deterministic=True))


def decode_filters(sealed: bytes, name: str, known: bytes) -> dict[tuple[str, BlockClass], KeyFilter]:
    """The filters that file ``name`` holds by table and class; ``CorruptionError`` where their digest is not the ``known`` one."""
    body = unseal(sealed, name, "the filters of a segment")
    if digest(sealed) != known:
        raise CorruptionError(f"{name} is damaged: its filters are not those that its index names.", next_step=_REMEDY)
    try:
        message = log_pb2.KeyFilters.FromString(body)
        return {(entry.table, BlockClass(getattr(entry, "class"))): KeyFilter.parse(entry.words) for entry in message.filters}
    except (DecodeError, ValueError) as error:
        raise CorruptionError(f"{name} has no readable filters: {error}.", next_step=_REMEDY) from None


_REMEDY = "Restore the file from a copy of the store."
