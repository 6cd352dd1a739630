"""Credentials given as options: they stay in the process that was given them, and in those forked from it.

A store's pickle holds a ticket for them instead. Where the ticket is not known the store says so at its first request; it never falls
back to other credentials, which may be allowed other things.
"""

from __future__ import annotations

from ...clock import random_token
from ...errors import AccessDenied

_kept: dict[str, dict[str, str]] = {}
_tickets: dict[tuple[tuple[str, str], ...], str] = {}


def ticket_for(credentials: dict[str, str]) -> str:
    """A ticket for these credentials, the same for the same ones. Threads may ask for tickets at once."""
    # One step that no thread can see half done, and no lock, which a fork could find held by a thread that its child does not have.
    ticket = _tickets.setdefault(tuple(sorted(credentials.items())), random_token())
    _kept[ticket] = dict(credentials)
    return ticket


def redeemed(ticket: str) -> dict[str, str] | None:
    """What the ticket is for, or None in another process."""
    return _kept.get(ticket)


def missing(place: str) -> AccessDenied:
    """The error of a store whose ticket is not known."""
    return AccessDenied(
        f"The credentials of {place} were given as storage options of another process, and pickles do not hold them.",
        next_step="Open the catalog here with the options, or let the environment or a profile give the credentials.",
    )
