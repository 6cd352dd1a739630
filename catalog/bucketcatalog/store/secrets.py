"""What a store was opened with and nobody may see."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote

from ..errors import InvalidOption

_PASSWORD = re.compile(r"//([^/:]*):([^/]*)@")
"""User and password, which ends at the last @ before the path."""
_CUT_PASSWORD = re.compile(r"://[^/?#\[]*:(?!\d{0,5}[/?#])[^/?#@]*[/?#].*@", re.DOTALL)
"""What stands behind the colon is no port, and the @ that a password ends in comes after what ends an authority."""
_SHORTEST = 4


class Secrets:
    """What must not be shown of a url and its storage options: passwords, query strings (signatures), every option's value.

    ``InvalidOption`` where nobody can say how far the url's password goes.
    """

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        if has_cut_password(url):
            raise InvalidOption(
                "The url seems to have a password with a /, ? or # in it, so that nobody can say where it ends.",
                next_step="Write these percent-encoded (%2F, %3F, %23), or give it as an option; write an @ of a path as %40.",
            )
        address, _, query = url.partition("?")
        self.public_url = _PASSWORD.sub(r"//\1@", address)
        passwords = (form for match in _PASSWORD.finditer(address) for form in _forms(match[2]))
        texts = {query, *passwords, *_texts(options)}
        self._texts = sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True)

    def __reduce__(self) -> Any:
        """``TypeError``: it is nothing but secrets."""
        raise TypeError("secrets of a store do not pickle")

    def hide(self, text: str) -> str:
        """The text with ``***`` for each secret."""
        for secret in self._texts:
            text = text.replace(secret, "***")
        return text

    def shown_by(self, error: BaseException) -> bool:
        """Whether a traceback of ``error`` would show a secret."""
        shown = "".join(traceback.format_exception(error))
        return any(secret in shown for secret in self._texts)


def public_url(url: str) -> str:
    """A url without what nobody may see of it; nothing where nobody can say how far its password goes."""
    return "" if has_cut_password(url) else Secrets(url, {}).public_url


def has_cut_password(url: str) -> bool:
    """Whether an authority in the url, which may be a chain of them, looks as if it ended within a password."""
    return any(_CUT_PASSWORD.search(part) for part in url.split("::"))


def _forms(password: str) -> set[str]:
    """As it stands in the url, and as clients write it."""
    plain = unquote(password)
    return {password, plain, quote(plain, safe="")}


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
