"""Ordered listings of names, as plainly as they can be said. Nothing here is shared with the engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRequest:
    """What a listing asks for. Items after ``marker`` in byte order, at most ``limit`` of them, names and groups together."""

    prefix: str = ""
    delimiter: str | None = None
    marker: str | None = None
    limit: int = 1000


@dataclass(frozen=True, slots=True)
class Page:
    """What a listing answers: names, groups (each ends in the delimiter), and the marker of the next page if there is more."""

    names: list[str]
    groups: list[str]
    next_marker: str | None


def page(names: Iterable[str], request: ListRequest) -> Page:
    """One page of ``names``.

    A name with the delimiter somewhere behind the prefix is shown as its group: itself up to and with the first such delimiter.
    The marker is compared with what is shown, so the last item of a page is the marker of the next, a name or a group.
    """
    groups, plain = set(), set()
    for name in names:
        if not name.startswith(request.prefix):
            continue
        at = name.find(request.delimiter, len(request.prefix)) if request.delimiter else -1
        if request.delimiter and at >= 0:
            groups.add(name[: at + len(request.delimiter)])
        else:
            plain.add(name)
    items = sorted(((name, name in groups) for name in plain | groups), key=lambda item: item[0].encode())
    if request.marker is not None:
        items = [item for item in items if item[0].encode() > request.marker.encode()]
    shown = items[: request.limit]
    return Page(
        names=[name for name, is_group in shown if not is_group],
        groups=[name for name, is_group in shown if is_group],
        next_marker=shown[-1][0] if shown and len(items) > len(shown) else None,
    )
