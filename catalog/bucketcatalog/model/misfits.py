"""Writers whose definition of a table does not fit it: what they wrote there from then on cannot be read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_Stamp = tuple[int, str, int, bytes]


@dataclass(frozen=True, slots=True)
class Misfit:
    """That a writer has a definition which does not fit a table, ``since`` the stamp of the first transaction that carries it, and why.

    ``decided_by`` names the transaction that may be what is wrong instead, as ``writer@revision``: it has defined the table first.
    """

    writer: str
    since: _Stamp
    why: str
    decided_by: str = ""


def misfit_at(misfits: Iterable[Misfit], stamp: _Stamp) -> Misfit | None:
    """Why the events of a transaction with this stamp cannot be read; None where they can."""
    return next((misfit for misfit in misfits if misfit.writer == stamp[1] and misfit.since <= stamp), None)
