"""Finds the source that a path or url names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

from ..errors import InvalidOption
from ..model.names import names_given
from ..store import Store
from ..store.open import is_inventory_url, open_inventory, refuse_mistyped
from ..store.remote_files import RemoteFiles
from .source import AnyPath, Source
from .sources.local import LocalSource
from .sources.remote import RemoteSource
from .sources.s3 import S3Source

_FILE_URL = re.compile(r"file://[^/]*(?=/)")


def open_source(
    source: AnyPath | Source,
    leave_out: Iterable[str] = (),
    *,
    options: Mapping[str, Any] | None = None,
    beside: Store | None = None,
    metadata: bool = False,
    tags: bool = False,
) -> Source:
    """A directory, by path (text or bytes) or ``file://`` url, a bucket or a path in one (``s3://``), or any other url that fsspec knows.

    What lies in ``leave_out`` is not looked at, nor what is ``beside``, the catalog's own store. ``options`` reach S3 or fsspec, and only
    a bucket has ``metadata`` and ``tags`` of objects. What is a source already is given back; ``InvalidOption`` for what names none.
    Nothing is read yet.
    """
    if not isinstance(source, (str, bytes, os.PathLike)):
        if not hasattr(source, "entries"):
            raise _no_source(source)
        if options or metadata or tags:
            raise InvalidOption(
                "A source that is open already takes no options.", next_step="Give its url, or open it with them."
            )
        return source
    text = os.fsdecode(source)
    if "\0" in text or not text.removeprefix("file://"):  # an empty path would be the working directory
        raise _no_source(source)
    if is_inventory_url(text):
        return S3Source(open_inventory(text, options), metadata=metadata, tags=tags, beside=beside)
    if metadata or tags:
        raise InvalidOption(
            f"{text!r} has no metadata or tags to ask for.", next_step="Leave these out: only S3 buckets have them."
        )
    match = _FILE_URL.match(text)
    if match is None and "://" in text:
        return RemoteSource(RemoteFiles(text, options), beside=beside)
    if match is None and not isinstance(source, os.PathLike):
        refuse_mistyped(text)
    if options:
        raise InvalidOption(f"{text!r} takes no source options.", next_step="Leave them out.")
    path = text if match is None else os.fsdecode(unquote_to_bytes(text[match.end() :]))
    return LocalSource(path, leave_out=names_given(leave_out, "places", "leave_out=['/data/lake']"))


def _no_source(given: object) -> InvalidOption:
    return InvalidOption(
        f"{given!r} names no source.",
        next_step="Give a path that is not empty and has no NULs, a URL as text, a pathlib.Path, or a Source.",
    )
