"""What a store was opened with and nobody may see."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

_PASSWORD = re.compile(r"//([^/@:]*):([^/@]*)@")
_SHORTEST = 4


class Secrets:
    """What must not be shown of a url and its storage options: passwords, query strings (signatures), every option's value."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        address, _, query = url.partition("?")
        self.public_url = _PASSWORD.sub(r"//\1@", address)
        texts = {query, *(match[2] for match in _PASSWORD.finditer(address)), *_texts(options)}
        self._texts = sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True)

    def hide(self, text: str) -> str:
        """The text with ``***`` for each secret."""
        for secret in self._texts:
            text = text.replace(secret, "***")
        return text

    def shown_by(self, error: BaseException) -> bool:
        """Whether a traceback of ``error`` would show a secret."""
        shown = "".join(traceback.format_exception(error))
        return any(secret in shown for secret in self._texts)


def _texts(value: object) -> Iterator[str]:
    """Every string in the options, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, bytes):
        yield value.decode(errors="replace")
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _texts(part)
