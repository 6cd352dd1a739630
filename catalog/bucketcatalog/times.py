"""Times and versions as users write them."""

from __future__ import annotations

import datetime
import re

from .errors import InvalidOption, InvalidTime, InvalidVersion
from .surface import micros

Time = str | datetime.datetime
_MICROS = re.compile(r"@(-?[0-9]{1,18})", re.ASCII)
_CAUSAL = re.compile(r"(?P<writer>[A-Za-z0-9_-][A-Za-z0-9._-]{0,127})@(?P<revision>[0-9]{1,20})", re.ASCII)


def parse_time(value: Time) -> int:
    """Microseconds since the epoch of ISO 8601 (without a zone: UTC), a datetime, or ``@`` and microseconds; else ``InvalidTime``."""
    if isinstance(value, datetime.datetime):
        return micros(value)
    text = str(value).strip()
    if match := _MICROS.fullmatch(text):
        return int(match[1])
    try:
        return micros(datetime.datetime.fromisoformat(text))
    except ValueError:
        raise InvalidTime(
            f"{value!r} is not a time.",
            next_step="Use ISO 8601, such as 2024-05-01T12:00:00Z, or @ and microseconds since the epoch.",
        ) from None


def refuse_reversed_times(start: Time, end: Time) -> None:
    """``InvalidOption`` where events are asked for after a time that is later than their last."""
    if parse_time(start) > parse_time(end):
        raise InvalidOption(
            f"The start lies after the end: {start} is later than {end}.",
            next_step="Exchange the two; a difference can be taken either way.",
        )


def looks_like_time(text: str) -> bool:
    """Whether text that may be a time or a version is meant as a time: a date, or ``@`` and microseconds."""
    return text.startswith("@") or (re.match(r"\d{4}-?\d{2}", text, re.ASCII) is not None and not text.isdigit())


def parse_causal(text: str) -> tuple[str | None, int] | None:
    """Writer and revision of ``writer@N``, revision alone of a plain integer, None for any other version."""
    if text.isascii() and text.isdigit():
        return None, int(text)
    match = _CAUSAL.fullmatch(text)
    return (match["writer"], int(match["revision"])) if match else None


def refuse_unknown_tag(text: str) -> None:
    """``InvalidVersion`` for what can only be meant as a tag's name."""
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", text, re.ASCII):
        raise InvalidVersion(
            f"There is no tag {text!r}, and it is neither a time nor another version.",
            next_step="A time is ISO 8601, such as 2024-05-01T12:00:00Z, or @ and microseconds; a version is a snapshot's, "
            "WRITER@REVISION or a revision.",
        )
