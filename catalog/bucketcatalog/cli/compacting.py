"""``checkpoint --every``: a compaction that goes on until a signal ends it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from types import FrameType
from typing import Any

from .. import clock
from ..catalog import Catalog
from ..console.output import finish, number, size, to_json, visible, write
from ..errors import InvalidOption
from ..maintain.compactor import Compactor, Policy, Round
from ..model.times import parse_age, shown_time

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def policy_of(transactions: int | None, size_: int | None, age: str | None) -> Policy:
    """The policy that the options of the command make."""
    return Policy(transactions, size_, None if age is None else parse_age(age))


def compact(catalog: Catalog, database: str, writer: str | None, policy: Policy, *, every: str, as_json: bool) -> None:
    """Report each round on a line of its own; returns once SIGTERM or SIGINT has ended it, the second of which ends the process."""
    seconds = parse_age(every) / 1e6
    if seconds < 1:
        raise InvalidOption(f"A compaction cannot look every {every!r}.", next_step="Give --every at least 1s.")
    compactor = Compactor(catalog, database, policy=policy, every=seconds, writer=writer)
    with _stopping(compactor):
        for done in compactor.rounds():
            write(to_json(_document(done, compactor.writer)) if as_json else _line(done))
            finish()


@contextmanager
def _stopping(compactor: Compactor) -> Iterator[None]:
    before = {which: signal.getsignal(which) for which in _SIGNALS}

    def restore() -> None:
        for which, handler in before.items():
            signal.signal(which, handler)

    def stop(which: int, frame: FrameType | None) -> None:
        restore()
        compactor.stop()

    for which in _SIGNALS:
        signal.signal(which, stop)
    try:
        yield
    finally:
        restore()


def _document(done: Round, writer: str) -> dict[str, Any]:
    waiting = {f"waiting_{name}": value for name, value in asdict(done.waiting).items()}
    waiting["waiting_seconds"] = waiting.pop("waiting_age") / 1e6
    document = {"round": done.number, "time": shown_time(clock.now_us()), "writer": writer, **waiting, "due": done.due}
    if done.error is not None:
        return {**document, "written": False, "code": done.error.code, "error": done.error.message}
    return {**document, "written": done.result is not None, **(asdict(done.result) if done.result else {})}


def _line(done: Round) -> str:
    waiting = done.waiting
    found = f"{number(waiting.transactions, 'transaction')} of {size(waiting.bytes)} waiting for {waiting.age / 1e6:.0f} s"
    if done.error is not None:
        what = str(done.error)
    elif done.result is None:
        what = "nothing due"
    else:
        made = done.result
        what = f"{size(made.bytes)} written, {size(made.reused_bytes)} used again, in {made.seconds:.1f} s: {made.name}"
    return visible(f"{shown_time(clock.now_us())}  {found}; {what}")
