"""Times, ages and versions as users write them.

A time is a datetime, a date, ISO 8601, ``@`` and microseconds, or counts back from now: an age, ``2 days ago``, ``now``, ``today``,
``yesterday``. What counts from now is settled once, by whoever is asked first: everybody further down is given a time that stays.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any, TypeGuard

from .. import clock
from ..errors import InvalidOption, InvalidTime
from .names import NAME, WORDS_OF_TIME

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
FIRST_TIME = (datetime.datetime.min.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND
LAST_TIME = (datetime.datetime.max.replace(tzinfo=datetime.UTC) - _EPOCH) // _MICROSECOND
"""What a datetime in UTC can be, in microseconds: a time that nobody could show is refused."""
_LAST_MILLIS = (LAST_TIME // 1_000).to_bytes(6, "big")
_SEVEN, _LAST_OF_SEVEN = b"\x70\x00", (0x7000 + 999).to_bytes(2, "big")
"""The version, and the microseconds of a millisecond behind it."""
Time = str | datetime.datetime | datetime.date | datetime.timedelta
Age = str | int | datetime.timedelta
_MICROS = re.compile(r"@(-?[0-9]{1,18})", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_DAY = _UNITS["d"] * 1_000_000
_LONGEST, _MOST_DIGITS = 999_999 * _UNITS["w"] * 1_000_000, 6
"""The longest age that text can say, in microseconds: what is longer is no age in another form either. And the digits of its numbers."""
_UNIT = r"(?:s(?:ec(?:onds?)?)?|m(?:in(?:utes?)?)?|h(?:ours?)?|d(?:ays?)?|w(?:eeks?)?)(?![a-z])"
_AGE = re.compile(rf"[0-9]+ *{_UNIT}(?: *[0-9]+ *{_UNIT})*", re.ASCII | re.IGNORECASE)
_PART = re.compile(r"(?P<number>[0-9]+) *(?P<unit>[a-z])", re.ASCII | re.IGNORECASE)
_AGO = re.compile(r"(?P<age>.*) +ago", re.ASCII | re.IGNORECASE | re.DOTALL)
_DATE = re.compile(r"\d{4}(?:-?\d{2}|-?W\d{2})", re.ASCII)
_CAUSAL = re.compile(rf"(?P<writer>{NAME})@(?P<revision>[0-9]{{1,20}})", re.ASCII)
FORMS_OF_TIME = (
    "Use ISO 8601, such as 2024-05-01 or 2024-05-01T12:00:00Z, what counts from now, such as 24h, '2 days ago', now, today or "
    "yesterday, or @ and microseconds since the epoch."
)
_FORMS_OF_AGE = "Write numbers and units, such as 90m, 24h, 1h30m, 7d, 4w or '2 days'."


class _OutOfCalendar(ValueError):
    """Of a time that no datetime in UTC is."""


def parse_time(value: Time, now: int | None = None) -> int:
    """Microseconds since the epoch of a time in any of its forms, of which some count from ``now``, by default the clock's.

    ISO 8601 without a zone is UTC; a date, ``today`` and ``yesterday`` are their midnight in UTC; an age, also as a timedelta, is that long
    ago. ``InvalidTime`` for what is none, or lies outside of the years 1 to 9999.
    """
    try:
        if is_relative(value):
            return in_calendar(_counted_back(value, clock.now_us() if now is None else now), value)
        return _fixed(value)
    except ValueError as error:
        if isinstance(value, datetime.date) or isinstance(error, _OutOfCalendar):
            raise InvalidTime(f"The time {error}.", next_step="Ask for one that a catalog can have.") from None
        raise InvalidTime(f"{value!r} is not a time.", next_step=FORMS_OF_TIME) from None


def kept_time(text: str) -> int:
    """The same of text that is kept, which says the same whenever it is read: ISO 8601, or ``@`` and microseconds."""
    try:
        return _fixed(text)
    except ValueError:
        raise InvalidTime(f"{text!r} is not a time.", next_step="Use ISO 8601, or @ and microseconds since the epoch.") from None


def settled_time(value: Time, now: int | None = None) -> Time:
    """A time that says the same whenever it is read: for what counts from ``now`` ISO 8601, anything else as it is."""
    return shown_time(parse_time(value, now)) if is_relative(value) else value


def _fixed(value: Time) -> int:
    """Microseconds of a time that does not count from now; ``ValueError`` for anything else."""
    if isinstance(value, datetime.datetime):
        return micros(value)
    if isinstance(value, datetime.date):
        return micros(datetime.datetime.combine(value, datetime.time()))
    text = str(value).strip()
    if match := _MICROS.fullmatch(text):
        return in_calendar(int(match[1]), text)
    return micros(datetime.datetime.fromisoformat(text))


def is_relative(value: Any) -> TypeGuard[str | datetime.timedelta]:
    """Whether something is meant to count from now, even where it is no time: too long ago, or of no unit that there is."""
    if not isinstance(value, str):
        return isinstance(value, datetime.timedelta)
    text = value.strip()
    return text.lower() in WORDS_OF_TIME or _AGO.fullmatch(text) is not None or _AGE.fullmatch(text) is not None


def _counted_back(given: str | datetime.timedelta, now: int) -> int:
    """What counts from now stands for; ``ValueError`` for an age that is none."""
    if isinstance(given, datetime.timedelta):
        return now - given // _MICROSECOND
    text = given.strip()
    if (word := text.lower()) in WORDS_OF_TIME:
        return {"now": now, "today": now // _DAY * _DAY, "yesterday": now // _DAY * _DAY - _DAY}[word]
    ago = _AGO.fullmatch(text)
    age = _age(text if ago is None else ago["age"])
    if age is None:
        raise ValueError(text)
    return now - age


def _age(text: str) -> int | None:
    """Microseconds of numbers and units, the largest unit first and none twice; None for anything else."""
    if _AGE.fullmatch(text) is None:
        return None
    parts = [(match["number"], _UNITS[match["unit"].lower()]) for match in _PART.finditer(text)]
    units = [unit for _, unit in parts]
    if units != sorted(set(units), reverse=True) or max(len(number) for number, _ in parts) > _MOST_DIGITS:
        return None
    age = sum(int(number) * unit for number, unit in parts) * 1_000_000
    return age if age <= _LONGEST else None


def parse_age(text: str) -> int:
    """Microseconds of numbers and units: ``90s``, ``24h``, ``1h30m``, ``2 days``, ``4w``; else ``InvalidOption``."""
    age = _age(text.strip())
    if age is None:
        raise InvalidOption(f"{text!r} is not an age.", next_step=_FORMS_OF_AGE)
    return age


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


@dataclass(frozen=True, slots=True)
class Moment:
    """A time or a version at which something is read; neither means now, or as a start the beginning. Its time does not count from now."""

    version: str | int | None = None
    timestamp: Time | None = None

    @classmethod
    def of(cls, given: Time | int | None, now: int | None = None) -> Moment:
        """What may be a time or a version, as it is meant: what looks like a time is one; ``InvalidTime`` where it then is none."""
        if given is None:
            return cls()
        if not isinstance(given, int) and (isinstance(given, datetime.date | datetime.timedelta) or looks_like_time(str(given))):
            parse_time(given, now)
            return cls(timestamp=settled_time(given, now))
        return cls(version=given)

    @property
    def given(self) -> bool:
        """Whether either is set."""
        return self.version is not None or self.timestamp is not None

    @property
    def asked(self) -> dict[str, Any]:
        """What a snapshot is asked for by."""
        found = {"version": self.version, "timestamp": self.timestamp}
        return {name: value for name, value in found.items() if value is not None}


def span_of(start: Time | int | None, end: Time | int | None) -> tuple[Moment, Moment]:
    """Two moments, each a time or a version, of which both count from one now."""
    now = clock.now_us()
    return Moment.of(start, now), Moment.of(end, now)


def refuse_reversed_times(start: Moment, end: Moment) -> None:
    """``InvalidOption`` where events are asked for after a time that is later than their last."""
    if start.timestamp is not None and end.timestamp is not None and parse_time(start.timestamp) > parse_time(end.timestamp):
        raise InvalidOption(
            f"The start lies after the end: {start.timestamp} is later than {end.timestamp}.",
            next_step="Exchange the two.",
        )


def looks_like_time(text: str) -> bool:
    """Whether text that may be a time or a version is meant as a time: a date, ``@`` and microseconds, or what counts from now.

    A plain integer is a revision, and ``WRITER@REVISION`` a version whatever the writer is called.
    """
    text = text.strip()
    if text.startswith("@") or is_relative(text):
        return True
    return _DATE.match(text) is not None and not text.isdigit() and _CAUSAL.match(text) is None


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
        raise _OutOfCalendar(f"{given} lies outside of the years 1 to 9999")
    return time


def is_uuid7(raw: bytes) -> bool:
    """Whether these are the bytes of a uuid of version 7, as ``clock.uuid7`` makes them, of a time that has a date."""
    return len(raw) == 16 and _SEVEN <= raw[6:8] <= _LAST_OF_SEVEN and raw[8] >> 6 == 2 and raw[:6] <= _LAST_MILLIS


def datetime_of(time: int) -> datetime.datetime:
    """The datetime, in UTC, that many microseconds after the epoch, to the microsecond; ``OverflowError`` where there is none."""
    return _EPOCH + time * _MICROSECOND
