"""A reader of catalogs written from docs/spec alone: it shares no code with the package, and takes the plainest way everywhere.

It needs what the specification asks for: protoc, a protobuf runtime, Arrow with Parquet. It holds the whole catalog in memory and
loops over rows; what it is for is to say the same as the engine, and so that the specification is complete. Beside it stands a compactor
of the same kind, whose checkpoints the engine has to read, and to find right. Each module names the chapters that it follows.
"""

from __future__ import annotations

from .answer import Answer
from .compactor import compact
from .facts import PUT
from .reader import SpecReader
from .sealing import message, seal
from .segments import LIVE
from .tables import table_of
from .writing import Style, new_transaction, put_transaction, transaction_uuid

__all__ = [
    "LIVE",
    "PUT",
    "Answer",
    "SpecReader",
    "Style",
    "compact",
    "message",
    "new_transaction",
    "put_transaction",
    "seal",
    "table_of",
    "transaction_uuid",
]
