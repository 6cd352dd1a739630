"""Trying again: until when, with what said, and to whom."""

from __future__ import annotations

import logging

import pytest

from bucketcatalog import clock
from bucketcatalog.cli import run
from bucketcatalog.errors import StoreUnreachable
from bucketcatalog.store.retry import for_seconds, retry


@pytest.fixture(autouse=True)
def time(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic time, which passes where somebody sleeps."""
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    monkeypatch.setattr(clock, "monotonic", lambda: now[0])
    monkeypatch.setattr(clock, "sleep", sleep)
    return now


class Failing:
    """Fails for a number of seconds of the time; each try takes a tenth of one."""

    def __init__(self, time: list[float], seconds: float) -> None:
        self.tries = 0
        self._time, self._seconds = time, seconds

    def __call__(self) -> str:
        self.tries += 1
        self._time[0] += 0.1
        if self._time[0] < self._seconds:
            raise StoreUnreachable("Cannot read 'a': refused.", next_step="Try again.")
        return "there"


def test_whoever_waits_longer_than_a_moment_is_told_so_once(caplog: pytest.LogCaptureFixture, time: list[float]) -> None:
    assert retry(Failing(time, 60.0), for_seconds(100.0)) == "there"
    assert [(r.name, r.levelno, r.getMessage()) for r in caplog.records] == [
        ("bucketcatalog", logging.WARNING, "Cannot read 'a': refused. Trying again.")
    ]


def test_a_short_wait_is_not_worth_a_word(caplog: pytest.LogCaptureFixture, time: list[float]) -> None:
    failing = Failing(time, 0.3)
    assert retry(failing, for_seconds(100.0)) == "there"
    assert failing.tries > 1 and not caplog.records


def test_the_last_error_is_raised_once_the_time_is_over(time: list[float]) -> None:
    failing = Failing(time, 1e9)
    with pytest.raises(StoreUnreachable):
        retry(failing, for_seconds(20.0))
    assert failing.tries > 3 and 20.0 <= time[0] < 27.0


def test_the_command_line_says_that_it_waits_and_then_what_came_of_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKE_KEY", "k")
    monkeypatch.setenv("LAKE_SECRET", "s3cr3t")
    options = {"endpoint_url": "http://127.0.0.1:1", "key": "$LAKE_KEY", "secret": "$LAKE_SECRET", "retry_timeout": "20"}
    given = [text for name, value in options.items() for text in ("--storage-option", f"{name}={value}")]
    assert run(["writers", "s3://bucket/catalog", *given]) == 1
    *waits, last = capsys.readouterr().err.splitlines()
    assert waits and all(line.startswith("warning: ") and line.endswith("Trying again.") for line in waits)
    assert len(waits) <= 3 and last.startswith("[STORE_UNREACHABLE] ") and "s3cr3t" not in last
    assert not logging.getLogger("bucketcatalog").handlers
