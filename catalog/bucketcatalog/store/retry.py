"""Trying again: with growing pauses, each of a random length up to its limit, until it works or a time is over.

Many clients that were refused at once do not come back at once. Who waits for longer than a moment
is told so, by the logger ``bucketcatalog``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from .. import clock, limits
from ..errors import OutcomeUnknown, StoreError, StoreUnreachable
from .base import Store

if TYPE_CHECKING:
    from tenacity import RetryCallState

Result = TypeVar("Result")

TRANSIENT = (StoreUnreachable, OutcomeUnknown)
"""The errors that the same request may not meet again."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 5.0
_MOMENT = 2.0
"""Seconds of trying again that are not worth a word."""
_log = logging.getLogger("bucketcatalog")


def retry(attempt: Callable[[], Result], gives_up: Callable[[], bool]) -> Result:
    """The result of ``attempt``, tried again after each transient error until ``gives_up`` says so; none is begun after that.

    Raises the last error.
    """
    try:
        return attempt()
    except TRANSIENT as error:
        return _again(attempt, gives_up, error)


def _again(attempt: Callable[[], Result], gives_up: Callable[[], bool], first: StoreError) -> Result:
    """Go on after the first error, which counts as the first try.

    tenacity is imported here: it brings asyncio, and a store that answers does without.
    """
    from tenacity import Retrying, retry_if_exception_type, wait_random_exponential

    last: StoreError = first
    tries = 0
    began, warned = clock.monotonic(), False

    def next_attempt() -> Result:
        nonlocal last, tries
        tries += 1
        if tries == 1 or gives_up():
            raise last
        try:
            return attempt()
        except TRANSIENT as error:
            last = error
            raise

    def stop(_: RetryCallState) -> bool:
        return gives_up()

    def tell(_: RetryCallState) -> None:
        nonlocal warned
        if not warned and clock.monotonic() - began >= _MOMENT:
            warned = True
            _log.warning("%s Trying again.", last.message)

    pauses = wait_random_exponential(multiplier=_FIRST_PAUSE, max=_LONGEST_PAUSE)
    retrying = Retrying(
        retry=retry_if_exception_type(TRANSIENT), wait=pauses, stop=stop, sleep=clock.sleep, before_sleep=tell, reraise=True
    )
    return retrying(next_attempt)


def for_seconds(seconds: float) -> Callable[[], bool]:
    """Gives up once so many seconds have passed from now."""
    end = clock.monotonic() + seconds
    return lambda: clock.monotonic() >= end


def put_retrying(store: Store, name: str, data: bytes, gives_up: Callable[[], bool] | None = None) -> None:
    """Put until it is certain that the object is there, or until ``gives_up`` says so: by default for ``PATIENCE_SECONDS``.

    Raises ``OutcomeUnknown`` where any of the puts may have been carried out, else what the last one met.
    """
    doubtful: OutcomeUnknown | None = None

    def attempt() -> None:
        nonlocal doubtful
        try:
            store.put(name, data)
        except OutcomeUnknown as error:
            doubtful = error
            raise

    try:
        retry(attempt, gives_up or for_seconds(limits.PATIENCE_SECONDS))
    except StoreError:
        if doubtful is None:
            raise
        raise doubtful from None
