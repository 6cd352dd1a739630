"""Times and versions as users write them."""

from __future__ import annotations

import datetime
import re

from ..errors import InvalidOption, InvalidTime
from .names import NAME

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
FIRST_TIME = (datetime.datetime.min.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND
LAST_TIME = (datetime.datetime.max.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND
"""What a datetime in UTC can be, in microseconds: a time that nobody could show is refused."""
_LAST_MILLIS = (LAST_TIME // 1_000).to_bytes(6, "big")
_SEVEN, _LAST_OF_SEVEN = b"\x70\x00", (0x7000 + 999).to_bytes(2, "big")
"""The version, and the microseconds of a millisecond behind it."""
Time = str | datetime.datetime
Age = str | int | datetime.timedelta
_MICROS = re.compile(r"@(-?[0-9]{1,18})", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_LONGEST = 999_999 * _UNITS["w"] * 1_000_000
"""The longest age that text can say, in microseconds: what is longer is no age in another form either."""
_AGE = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[smhdw])", re.ASCII)
_CAUSAL = re.compile(rf"(?P<writer>{NAME})@(?P<revision>[0-9]{{1,20}})", re.ASCII)


def parse_time(value: Time) -> int:
    """Microseconds since the epoch of ISO 8601 (without a zone: UTC), a datetime, or ``@`` and microseconds; else ``InvalidTime``."""
    if isinstance(value, datetime.datetime):
        try:
            return micros(value)
        except ValueError as error:
            raise InvalidTime(f"The time {error}.", next_step="Ask for one that a catalog can have.") from None
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


def parse_age(text: str) -> int:
    """Microseconds of a number and a unit: ``90s``, ``90m``, ``24h``, ``7d``, ``4w``; else ``InvalidOption``."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise InvalidOption(f"{text!r} is not an age.", next_step="Write a number and a unit, such as 90m, 24h, 7d or 4w.")
    return int(match["number"]) * _UNITS[match["unit"]] * 1_000_000


def age_micros(value: Age) -> int:
    """Microseconds of an age given as text such as ``24h``, as a timedelta, or as that number; else ``InvalidOption``."""
    if isinstance(value, datetime.timedelta) or (isinstance(value, int) and not isinstance(value, bool)):
        age = value // _MICROSECOND if isinstance(value, datetime.timedelta) else value
        if not 0 <= age <= _LONGEST:
            raise InvalidOption(f"{value!r} is not an age.", next_step="Give one from 0s to 999999w.")
        return age
    return parse_age(value if isinstance(value, str) else repr(value))


def shown_age(age: int) -> str:
    """Microseconds as every message shows them: ``90s``, ``366m``, ``24h``, ``30d``; what is not whole to a tenth, such as ``6.3h``.

    The unit is the largest of which there are two, or a smaller one that gives it whole: then ``parse_age`` takes what users read.
    """
    units = [unit for unit in "dhm" if age >= 2 * _UNITS[unit] * 1_000_000] + ["s"]
    for unit in units:
        whole, rest = divmod(age, _UNITS[unit] * 1_000_000)
        if rest == 0 and whole < 1_000_000:
            return f"{whole}{unit}"
    return f"{age / _UNITS[units[0]] / 1_000_000:,.1f}{units[0]}"


def shown_time(time: int) -> str:
    """A time in microseconds as ISO 8601, or as ``@`` and the number where that has no such form."""
    if not 0 <= time <= LAST_TIME:
        return f"@{time}"
    return iso(datetime_of(time))


def iso(time: datetime.datetime) -> str:
    """A time as every output shows it and as users may type it: UTC, to the microsecond."""
    return time.astimezone(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


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


def micros(value: datetime.datetime) -> int:
    """Microseconds since the epoch; a time without zone is UTC.

    ``ValueError`` where its zone takes it out of the years 1 to 9999, or it has nanoseconds, as those of pandas may.
    """
    if getattr(value, "nanosecond", 0) > 0:
        raise ValueError(f"{value} is finer than microseconds")
    aware = value if value.tzinfo else value.replace(tzinfo=datetime.UTC)
    return in_calendar((aware - _EPOCH) // _MICROSECOND, value)


def in_calendar(time: int, given: object) -> int:
    """The microseconds themselves; ``ValueError`` where no datetime in UTC is these, which says what was ``given``."""
    if not FIRST_TIME <= time <= LAST_TIME:
        raise ValueError(f"{given} lies outside of the years 1 to 9999")
    return time


def is_uuid7(raw: bytes) -> bool:
    """Whether these are the bytes of a uuid of version 7, as ``clock.uuid7`` makes them, of a time that has a date."""
    return len(raw) == 16 and _SEVEN <= raw[6:8] <= _LAST_OF_SEVEN and raw[8] >> 6 == 2 and raw[:6] <= _LAST_MILLIS


def datetime_of(time: int) -> datetime.datetime:
    """The datetime, in UTC, that many microseconds after the epoch, to the microsecond; ``OverflowError`` where there is none."""
    return _EPOCH + time * _MICROSECOND
