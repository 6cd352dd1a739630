"""Calls in children with a limit on memory and time, which tell what became of them: also that a signal ended them.

One helper process imports what calls need and forks for each of them, so that a call costs some milliseconds.
"""

from __future__ import annotations

import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

ROOT = Path(__file__).parents[2]
MEBI = 1 << 20


@dataclass(frozen=True)
class Outcome:
    """What a call gave, or which error it raised, by how many bytes the process grew, and for how long it ran."""

    value: Any = None
    error: BaseException | None = None
    grown: int = 0
    seconds: float = 0.0


class Limited:
    """Gives calls ``memory`` bytes more than a process has that only waits, and ``seconds``. A context manager."""

    def __init__(self, memory: int = 3 << 30, seconds: int = 20) -> None:
        command = [sys.executable, "-m", __name__, str(memory), str(seconds)]
        self._child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.close()
        assert self._child.wait() == 0
        self._child.stdout.close()

    def prepare(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Make a call in the helper itself, without limits: what it imports need not be imported again by each child."""
        self._ask(function, arguments, is_limited=False)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Outcome:
        """What a function of a module makes of the arguments; ``AssertionError`` where a signal ended it."""
        outcome = self._ask(function, arguments, is_limited=True)
        assert isinstance(outcome, Outcome), f"signal {outcome} ended {function.__name__}"
        return outcome

    def _ask(self, function: Callable[..., Any], arguments: tuple[Any, ...], *, is_limited: bool) -> Any:
        assert self._child.stdin is not None and self._child.stdout is not None
        pickle.dump((function, arguments, is_limited), self._child.stdin)
        self._child.stdin.flush()
        return pickle.load(self._child.stdout)


def _serve(memory: int, seconds: int) -> None:
    calls, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a call prints is no answer
    while True:
        try:
            function, arguments, is_limited = pickle.load(calls)
        except EOFError:
            return
        if not is_limited:
            function(*arguments)
            answers.write(pickle.dumps(None))
            answers.flush()
            continue
        receive, send = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(receive)
            with os.fdopen(send, "wb") as out:
                _call(function, arguments, memory, seconds, out)
            os._exit(0)
        os.close(send)
        with os.fdopen(receive, "rb") as got:
            answer = got.read()
        _, status = os.waitpid(child, 0)
        answers.write(pickle.dumps(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else answer)
        answers.flush()


def _call(function: Callable[..., Any], arguments: tuple[Any, ...], memory: int, seconds: int, out: BinaryIO) -> None:
    most = _memory("VmSize") + memory
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    signal.alarm(seconds)
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
    before, began, value, error = _memory("VmHWM"), time.monotonic(), None, None
    try:
        value = function(*arguments)
    except BaseException as raised:
        error = raised.with_traceback(None)
        error.__context__ = error.__cause__ = None
    grown, took = _memory("VmHWM") - before, time.monotonic() - began
    try:
        data = pickle.dumps(Outcome(value, error, grown, took))
        pickle.loads(data)
    except Exception:
        data = pickle.dumps(Outcome(None, AssertionError(f"{type(error)}: {error}"), grown, took))
    out.write(data)


def _memory(which: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, said = line.partition(":")
        if name == which:
            return int(said.split()[0]) * 1024
    raise AssertionError(which)


if __name__ == "__main__":
    import pyarrow.parquet

    import bucketcatalog

    assert pyarrow.parquet and bucketcatalog
    # What is pickled names this module, and not the program that it is here.
    from tests.kit import limited

    Outcome = limited.Outcome  # type: ignore[misc]
    _serve(int(sys.argv[1]), int(sys.argv[2]))
