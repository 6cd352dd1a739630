"""Pickles and the secrets of stores: a pickle holds a ticket for them, but for the one way in which one holds themselves.

A ticket is good in the process that gave it, and in those forked from it. Where it is not known a store says so at its first request; it
never falls back to other credentials, which may be allowed other things. What ``carried`` pickles holds the secrets: so jobs on Spark hand
work to executors, and nothing else does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

from ..clock import random_token
from ..errors import AccessDenied

_kept: dict[str, Any] = {}
_tickets: dict[str, str] = {}
_carrying: ContextVar[bool] = ContextVar("carrying", default=False)


@contextmanager
def carried() -> Iterator[None]:
    """What this thread pickles meanwhile holds secrets of stores; for whoever hands it to processes of its own, and keeps it nowhere."""
    before = _carrying.set(True)
    try:
        yield
    finally:
        _carrying.reset(before)


def is_carried() -> bool:
    """Whether a pickle that is being made is to hold the secrets themselves."""
    return _carrying.get()


def ticket_for(secrets: Any) -> str:
    """A ticket for these, the same for the same ones as far as they are plain values. Threads may ask for tickets at once."""
    ticket = random_token()
    with suppress(TypeError, ValueError):  # for a client's own objects, such as credentials
        # One step that no thread can see half done, and no lock, which a fork could find held by a thread that its child does not have.
        ticket = _tickets.setdefault(json.dumps(secrets, sort_keys=True), ticket)
    _kept[ticket] = secrets
    return ticket


def redeemed(ticket: str) -> Any:
    """What the ticket is for, or None in another process."""
    return _kept.get(ticket)


def missing(place: str) -> AccessDenied:
    """The error of a store whose ticket is not known."""
    return AccessDenied(
        f"The credentials of {place} were given as storage options of another process, and pickles do not hold them.",
        next_step="Open the catalog here with the options, or let the environment or a profile give the credentials.",
    )
