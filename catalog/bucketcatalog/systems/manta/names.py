"""What an operation takes: names of buckets and objects, limits of pages, entity tags and copies in the service's own words.

Source: the HTTP service's checks of names, and the payloads of the metadata service.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InvalidOption
from ...model.uuids import uuid_value
from .errors import ContentMd5Error, InvalidBucketNameError, InvalidBucketObjectNameError, LimitConstraintError

MOST = 1024
"""The most entries of a page, and the most bytes of an object's name."""
_LABEL = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_BUCKET = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")


def bucket_name(name: Any) -> str:
    """3 to 63 characters, labels of ``a-z 0-9 -`` joined by dots, and not like an IPv4 address."""
    if (
        isinstance(name, str)
        and 3 <= len(name) <= 63
        and name.isascii()
        and _BUCKET.fullmatch(name)
        and not _ADDRESS.fullmatch(name)
    ):
        return name
    raise InvalidBucketNameError(
        f"{name!r} is no name of a bucket.",
        next_step="Use 3 to 63 of a-z, 0-9, - and ., a letter or digit at both ends of each part, and no IP address.",
    )


def object_name(name: Any) -> str:
    """1 to 1,024 bytes of UTF-8 without NUL."""
    if isinstance(name, str) and "\0" not in name:
        try:
            size = len(name.encode())
        except UnicodeEncodeError:
            size = 0
        if 1 <= size <= MOST:
            return name
    raise InvalidBucketObjectNameError(
        f"{name!r:.100} is no name of an object.", next_step=f"Use 1 to {MOST:,} bytes of UTF-8, none of them NUL."
    )


def uuid_text(what: str, value: Any) -> str:
    """A uuid as its text, whichever way it is given."""
    try:
        return uuid_value(value)
    except (TypeError, ValueError):
        raise InvalidOption(f"{value!r} is no uuid, as {what} is.", next_step="Give its 36 characters.") from None


def page_limit(limit: Any) -> int:
    """1 to 1,024."""
    if isinstance(limit, int) and not isinstance(limit, bool) and 1 <= limit <= MOST:
        return limit
    raise LimitConstraintError(f"A page cannot have the limit {limit!r}.", next_step=f"Give 1 to {MOST:,}.")


def page_delimiter(delimiter: Any) -> str | None:
    """One character, or None."""
    if delimiter is None or (isinstance(delimiter, str) and len(delimiter) == 1 and delimiter != "\0"):
        return delimiter
    raise InvalidOption(f"{delimiter!r} is no delimiter.", next_step="Give one character, such as '/', or none.")


def md5_bytes(text: Any) -> bytes | None:
    """The 16 bytes of an MD5 that is given as base64."""
    if text is None:
        return None
    try:
        found = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        found = b""
    if len(found) != 16:
        raise ContentMd5Error(
            f"{text!r} is no MD5.", next_step="Give its 16 bytes as base64, as the header Content-MD5 has them."
        )
    return found


def md5_text(value: bytes | None) -> str | None:
    """An MD5 as base64."""
    return None if value is None else base64.b64encode(value).decode()


def shark_texts(sharks: Any) -> list[str]:
    """Copies as the tables have them, ``datacenter:storage id``; given so, or as the service's pairs."""
    if sharks is None:
        return []
    if isinstance(sharks, Iterable) and not isinstance(sharks, str | bytes | Mapping):
        texts = [_shark_text(shark) for shark in sharks]
        if all(text is not None for text in texts):
            return [text for text in texts if text is not None]
    raise InvalidOption(
        f"{sharks!r} are no copies.",
        next_step='Give a list of {"datacenter": ..., "manta_storage_id": ...}, or of "datacenter:id".',
    )


def _shark_text(shark: Any) -> str | None:
    if isinstance(shark, str):
        return shark if ":" in shark else None
    if isinstance(shark, Mapping) and set(shark) == {"datacenter", "manta_storage_id"}:
        pair = (shark["datacenter"], shark["manta_storage_id"])
        return ":".join(pair) if all(isinstance(part, str) for part in pair) and ":" not in pair[0] else None
    return None


def shark_pairs(texts: Sequence[str] | None) -> list[dict[str, str]]:
    """Copies as the service sends them."""
    parted = ((text.partition(":")) for text in texts or ())
    return [{"datacenter": datacenter, "manta_storage_id": id_} for datacenter, _, id_ in parted]
