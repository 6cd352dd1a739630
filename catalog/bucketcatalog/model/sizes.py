"""Sizes in bytes as users write them: numbers, or text such as ``10MiB`` or ``1.5 GB``."""

from __future__ import annotations

import re
from decimal import Decimal

from ..errors import InvalidOption

Size = int | str
_UNITS = {
    "": 1,
    "b": 1,
    **{f"{letter}b": 1_000**power for power, letter in enumerate("kmgtpe", 1)},
    **{f"{letter}ib": 1_024**power for power, letter in enumerate("kmgtpe", 1)},
}
_SIZE = re.compile(r"(?P<number>[0-9]{1,20}(?:\.[0-9]{1,20})?) *(?P<unit>[a-z]*)", re.ASCII | re.IGNORECASE)
_LARGEST = (1 << 63) - 1


def parse_size(value: Size) -> int:
    """Bytes; a fraction of a byte is left out. ``InvalidOption`` for what is no size, and for what no object can have."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    else:
        match = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
        unit = None if match is None else _UNITS.get(match["unit"].lower())
        if match is None or unit is None:
            raise InvalidOption(
                f"{value!r} is not a size.",
                next_step="Write bytes, such as 4096, or a unit: 10MB are 10^7 bytes, 10MiB are 10 * 2^20.",
            )
        size = int(Decimal(match["number"]) * unit)
    if not 0 <= size <= _LARGEST:
        raise InvalidOption(f"No object has a size of {value}.", next_step="Give one from 0 to 2^63 - 1 bytes.")
    return size
