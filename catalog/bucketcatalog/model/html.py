"""What a notebook shows: small tables in HTML, of values that may be anybody's.

Whatever is not ``Html`` already is escaped, and so is what a browser would not show or would act on. There are no scripts, no colours, and
nothing that is fetched, so that a page is as safe and as readable in one theme as in another.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import TypeVar

from ..errors import BucketCatalogError
from .times import iso

T = TypeVar("T")
_MOST_CHARACTERS = 400


class Html(str):
    """What is HTML already. Everything else is text."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return self


def html_text(value: object) -> Html:
    """A value as HTML, on one line: None is nothing, a time is ISO 8601, bytes are hexadecimal digits; what is very long is cut."""
    if isinstance(value, Html):
        return value
    text = _text(value)
    more = len(text) - _MOST_CHARACTERS
    shown = f"{text[:_MOST_CHARACTERS]}… and {more:,} more characters" if more > 0 else text
    return _escaped(shown)


def _escaped(text: str) -> Html:
    return Html(escape(text if text.isprintable() else "".join(map(_visible, text))))


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime.datetime):
        return iso(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_text, value))
    return str(value)


def _visible(character: str) -> str:
    """Also half of a surrogate pair, which no message to a browser could hold."""
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


def html_table(caption: object, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Html:
    """Rows below their heads, and above all of them a caption."""
    lines = [*([_row("th", heads)] if heads else []), *(_row("td", row) for row in rows)]
    return Html(f"<table><caption><b>{html_text(caption)}</b></caption>{''.join(lines)}</table>")


def html_facts(caption: object, facts: Mapping[str, object]) -> Html:
    """A row for each fact that there is."""
    lines = [_row("td", (Html(f"<b>{html_text(name)}</b>"), value)) for name, value in facts.items() if value is not None]
    return Html(f"<table><caption><b>{html_text(caption)}</b></caption>{''.join(lines)}</table>")


def _row(tag: str, values: Sequence[object]) -> str:
    return f"<tr>{''.join(_cell(tag, value) for value in values)}</tr>"


def _cell(tag: str, value: object) -> str:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return f'<{tag} style="text-align: {"right" if is_number else "left"}">{html_text(value)}</{tag}>'


def html_folded(summary: object, inner: Html) -> Html:
    """What is shown once somebody asks for it."""
    return Html(f"<details><summary>{html_text(summary)}</summary>{inner}</details>")


def html_or_why(make: Callable[[], T]) -> T | Html:
    """What ``make`` gives, or what is wrong: a notebook shows what a catalog has, and of the rest why not."""
    try:
        return make()
    except (BucketCatalogError, Warning) as error:
        return Html(f"<em>{_escaped(str(error))}</em>")
