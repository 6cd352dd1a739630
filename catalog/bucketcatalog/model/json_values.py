"""Values as JSON has them, wherever this package writes JSON: on the command line, and in files.

Every string is exact; bytes are hexadecimal digits, times ISO 8601 in UTC to the microsecond, maps objects, sums integers of any size;
infinities and what is no number are strings, as protobuf has them. Columns of many values are ``format.texts``' part.
"""

from __future__ import annotations

import datetime
import json
import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from .times import iso

if TYPE_CHECKING:
    import pyarrow as pa

UNSAFE_IN_JSON = "\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
"""Characters, as a class of regular expressions has them, that a terminal could act on, or that nobody would see."""
_UNSAFE = re.compile(f"[{UNSAFE_IN_JSON}]")
_AS_THEY_ARE = {str, int, bool, type(None)}
_NO_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def plain(value: Any, kind: pa.DataType | None = None) -> Any:
    """A value that Arrow gave, as JSON has it."""
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(value, datetime.datetime):
        return iso(value)
    if isinstance(value, (bytes, bytearray)):
        return value.hex()
    if isinstance(value, Decimal):
        return int(value)
    if isinstance(value, float) and not math.isfinite(value):
        return _NO_NUMBERS[str(value)]
    return _plain_within(value, kind) if isinstance(value, (Mapping, list, tuple)) else value


def _plain_within(value: Any, kind: Any) -> Any:
    """Values that hold others, as ``plain``. Only maps have a type of items, and only structs are mappings."""
    if hasattr(kind, "item_type"):
        return {str(key): plain(item, kind.item_type) for key, item in value}
    if isinstance(value, Mapping):
        kinds = {field.name: field.type for field in kind} if kind is not None else {}
        return {str(key): plain(item, kinds.get(key)) for key, item in value.items()}
    inner = getattr(kind, "value_type", None)
    return [plain(item, inner) for item in value]


def to_json(value: Any) -> str:
    """One line of JSON without characters that a terminal could act on, which JSON can escape."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
