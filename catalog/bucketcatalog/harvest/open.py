"""Finds the source that a path or url names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from urllib.parse import unquote_to_bytes

from ..errors import UnsupportedStore
from .local import LocalSource
from .source import Source

_FILE_URL = re.compile(r"file://[^/]*(?=/)")


def open_source(source: str | os.PathLike[str], leave_out: Iterable[str] = ()) -> Source:
    """A directory, by path or ``file://`` url; what lies in ``leave_out`` is not looked at. Nothing is read yet."""
    text = os.fspath(source)
    if match := _FILE_URL.match(text):
        return LocalSource(os.fsdecode(unquote_to_bytes(text[match.end() :])), leave_out=leave_out)
    if "://" in text:
        raise UnsupportedStore(
            f"{text!r} cannot be harvested: this release takes the inventory of directories.",
            next_step="Mount it, or give a path or a file:// url.",
        )
    return LocalSource(source, leave_out=leave_out)
