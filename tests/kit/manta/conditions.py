"""Conditions as Manta's metadata service evaluates them, said as plainly as they can be.

Source: the service's own table of cases. An entity tag is the id of an object. The order is if-match, if-unmodified-since, if-none-match,
if-modified-since, and the first that does not hold decides.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from bucketcatalog.systems.manta.errors import ObjectNotFound, PreconditionFailedError

NAMES = ("if-match", "if-unmodified-since", "if-none-match", "if-modified-since")


def check(given: Mapping[str, Any] | None, found: Mapping[str, Any] | None) -> None:
    """Raise what the service does where the conditions among headers do not hold of a row, or of there being none."""
    asked = {name.lower(): value for name, value in (given or {}).items() if name.lower() in NAMES}
    if not asked:
        return
    if found is None:
        if "*" in tags(asked.get("if-match")):
            raise PreconditionFailedError("if-match *: there is no object", next_step="")
        if "*" not in tags(asked.get("if-none-match")):
            raise ObjectNotFound("a condition is about an object that is not there", next_step="")
        return
    for name in NAMES:
        if name in asked and not holds(name, asked[name], str(found["id"]), found["modified"]):
            raise PreconditionFailedError(f"{name} {asked[name]}", next_step="")


def holds(name: str, value: Any, etag: str, modified: datetime.datetime) -> bool:
    """Whether one condition holds of an object that there is."""
    if name == "if-match":
        return "*" in tags(value) or etag in tags(value)
    if name == "if-none-match":
        return "*" not in tags(value) and etag not in tags(value)
    return modified <= time(value) if name == "if-unmodified-since" else modified > time(value)


def tags(value: Any) -> list[str]:
    """The entity tags of a condition, without quotes and without what marks weak ones."""
    if value is None:
        return []
    stripped = [tag.strip() for tag in (value.split(",") if isinstance(value, str) else value)]
    return [(tag[2:] if tag.startswith("W/") else tag).replace('"', "") for tag in stripped]


def time(value: Any) -> datetime.datetime:
    """The time of a condition, as a datetime, in ISO 8601, or as HTTP writes it, in whole seconds."""
    if isinstance(value, datetime.datetime):
        return value
    try:
        return datetime.datetime.fromisoformat(value)
    except ValueError:
        return parsedate_to_datetime(value)
