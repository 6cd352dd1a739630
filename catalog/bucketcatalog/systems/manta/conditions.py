"""Conditions of a request on the object that it is about: the four of HTTP, as the metadata service evaluates them.

An object's entity tag is its id, and its last modification the column ``modified``. They are evaluated in the order of the fields of
``Conditions``, and the first that does not hold is the answer. Where there is no object:

===================  ===========================
if-match has ``*``   ``PreconditionFailedError``
if-none-match has it holds
any other condition  ``ObjectNotFound``
===================  ===========================
"""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from ...errors import InvalidOption, InvalidTime
from ...model.times import datetime_of, is_relative, iso, micros, parse_time
from ...model.uuids import uuid_value
from .errors import ObjectNotFound, PreconditionFailedError

ANY = "*"
_REST_OF_SECOND = 999_999
"""HTTP writes whole seconds: what was modified within the one that it names was not modified since."""


@dataclass(frozen=True)
class Conditions:
    """What has to hold of an object, in the order in which it is looked at; None where nothing is said. Times are microseconds."""

    if_match: tuple[str, ...] | None = None
    if_unmodified_since: int | None = None
    if_none_match: tuple[str, ...] | None = None
    if_modified_since: int | None = None

    @classmethod
    def of(cls, headers: Mapping[str, Any] | None) -> Conditions:
        """The conditions among a request's headers, whatever their case; other headers say nothing.

        Entity tags are a text or several, a time is a datetime, a date as HTTP writes it, or ISO 8601. ``InvalidOption`` for what is
        neither, and for what begins with ``if`` and is no condition.
        """
        if headers is not None and not isinstance(headers, Mapping):
            raise InvalidOption(f"{headers!r} are no conditions.", next_step='Map them to values: {"if-match": ID}.')
        found: dict[str, Any] = {}
        for name, value in ({} if headers is None else headers).items():
            field = str(name).lower().replace("-", "_")
            if value is None:
                continue
            if field in found:
                raise InvalidOption(f"The condition {name!r} is given twice.", next_step="Give it once.")
            if field in ("if_match", "if_none_match"):
                found[field] = _tags(name, value)
            elif field in ("if_unmodified_since", "if_modified_since"):
                found[field] = _time(name, value)
            elif field.startswith("if") and field != "if_range":
                raise InvalidOption(
                    f"{name!r} is no condition.",
                    next_step="Give if-match, if-unmodified-since, if-none-match or if-modified-since.",
                )
        return cls(**found)

    def __bool__(self) -> bool:
        return self != Conditions()

    def check(self, name: str, found: Mapping[str, Any] | None) -> None:
        """``PreconditionFailedError`` or ``ObjectNotFound`` where they do not hold of the row that was ``found`` under a name."""
        if self and found is None:
            self._check_absent(name)
        elif self and found is not None:
            self._check_present(name, found["id"], micros(found["modified"]))

    def _check_absent(self, name: str) -> None:
        if self.if_match is not None and ANY in self.if_match:
            raise PreconditionFailedError(
                f"if-match '*': there is no object {name!r}.", next_step="Create the object, or leave the condition out."
            )
        if self.if_none_match is None or ANY not in self.if_none_match:
            raise ObjectNotFound(
                f"There is no object {name!r}, and a condition is about it.",
                next_step="Leave the condition out to create the object.",
            )

    def _check_present(self, name: str, id_: str | None, modified: int) -> None:
        if self.if_match is not None and not {ANY, id_} & {*self.if_match}:
            raise _failed(name, f"if-match {', '.join(self.if_match)}: its etag is {id_}")
        if self.if_unmodified_since is not None and modified > self.if_unmodified_since:
            raise _failed(name, f"if-unmodified-since {_text(self.if_unmodified_since)}: it was modified at {_text(modified)}")
        if self.if_none_match is not None and {ANY, id_} & {*self.if_none_match}:
            raise _failed(name, f"if-none-match {', '.join(self.if_none_match)}: its etag is {id_}")
        if self.if_modified_since is not None and modified <= self.if_modified_since:
            raise _failed(name, f"if-modified-since {_text(self.if_modified_since)}: it was modified at {_text(modified)}")


def _failed(name: str, why: str) -> PreconditionFailedError:
    return PreconditionFailedError(f"Object {name!r} does not meet {why}.", next_step="Read the object again.")


def _text(time: int) -> str:
    return iso(datetime_of(time))


def _tags(name: str, value: Any) -> tuple[str, ...]:
    """Entity tags without what HTTP adds to them: quotes, and ``W/`` before weak ones."""
    given = value.split(",") if isinstance(value, str) else list(value) if isinstance(value, Iterable) else [value]
    given = [str(tag) if isinstance(tag, uuid.UUID) else tag for tag in given]
    if not all(isinstance(tag, str) for tag in given):
        raise InvalidOption(f"{value!r} is no list of entity tags for {name!r}.", next_step="Give ids of objects, or '*'.")
    return tuple(_plain(tag.strip().removeprefix("W/").strip('"')) for tag in given)


def _plain(tag: str) -> str:
    """An id in the one spelling of ids, whatever else as it is."""
    try:
        return uuid_value(tag)
    except ValueError:
        return tag


def _time(name: str, value: Any) -> int:
    try:
        if isinstance(value, str) and value.strip()[:1].isalpha() and not is_relative(value):
            return micros(parsedate_to_datetime(value.strip())) + _REST_OF_SECOND
        if isinstance(value, str | datetime.datetime):
            return micros(datetime_of(parse_time(value)))
    except (ValueError, OverflowError, InvalidTime):
        pass
    raise InvalidOption(
        f"{value!r} is no time for {name!r}.", next_step="Give a datetime, or text such as 'Wed, 21 Oct 2026 07:28:00 GMT'."
    )
