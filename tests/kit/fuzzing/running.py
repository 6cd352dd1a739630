"""Runs cases in a child and watches it: a signal, silence and a traceback end nothing here, and are findings like any other.

Also a program: ``python -m tests.kit.fuzzing.running --seed 1 --cases 1000``, or ``--number 17`` for one case with every reader.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..limited import ROOT
from .oracle import KINDS, Finding

SECONDS = 20
"""The processor's time that a reader of a case may take; the longest of a sound catalog takes one."""
FORGING_SECONDS = 120
MOMENT = 1.0
"""Seconds after which whoever waits looks how long it has been."""
_WAIT = 600
_CASES_OF_A_CHILD = 400
"""Then it is replaced by another: what leaks shows before, and nothing grows for ever."""
_MEMORY_FOLDER = Path("/dev/shm")


@dataclass(frozen=True)
class Result:
    """A case, by its number, and what was wrong with it."""

    number: int
    case: str
    found: list[Finding] = field(default_factory=list)


class Watched:
    """A child that reads forged files, started anew where it ends. A context manager."""

    def __init__(self) -> None:
        at = _MEMORY_FOLDER if os.access(_MEMORY_FOLDER, os.W_OK) else None
        self._folder = tempfile.TemporaryDirectory(dir=at)
        self._errors = Path(self._folder.name) / "errors"
        self._said = b""
        self.child: subprocess.Popen[bytes] | None = None
        self._cases = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()
        self._folder.cleanup()

    def run(self, seed: int, number: int, *, count: int, only: str | None = None) -> Result:
        """One case, read by ``count`` readers, or by the one that is named."""
        child = self._running()
        assert child.stdin is not None
        with suppress(BrokenPipeError):  # that it has ended is told by what it answers
            child.stdin.write(json.dumps({"seed": seed, "number": number, "count": count, "only": only}).encode() + b"\n")
            child.stdin.flush()
        case, reader = "", "forging"
        while True:
            answer = self._answer(child, SECONDS if reader != "forging" else FORGING_SECONDS)
            case, reader = answer.get("case", case), answer.get("reader", reader)
            if "found" in answer:
                self._cases += 1
                return Result(number, case, [Finding(**each) for each in answer["found"]])
            if "ended" in answer:
                trace = self._errors.read_text(errors="replace")[-6000:]
                self._end()
                return Result(number, case, [Finding(answer["ended"], reader, trace, _innermost(trace))])

    def _running(self) -> subprocess.Popen[bytes]:
        if self.child is not None and self._cases < _CASES_OF_A_CHILD:
            return self.child
        self._end()
        self._cases, self._said = 0, b""
        folder = tempfile.mkdtemp(dir=self._folder.name)
        command = [sys.executable, "-m", "tests.kit.fuzzing.child", folder]
        with self._errors.open("w") as errors:
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, cwd=ROOT)
        ready = self._answer(self.child, FORGING_SECONDS)
        assert "ready" in ready, self._errors.read_text()
        return self.child

    def _answer(self, child: subprocess.Popen[bytes], seconds: float) -> dict[str, Any]:
        """The next line of the child; how it ended where it did, or was ended for taking too long."""
        assert child.stdout is not None
        began, used = time.monotonic(), _used(child.pid)
        with selectors.DefaultSelector() as selector:
            selector.register(child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._said:
                if selector.select(timeout=MOMENT):
                    more = os.read(child.stdout.fileno(), 1 << 16)
                    if not more:
                        return {"ended": "signal" if child.wait() < 0 else "traceback"}
                    self._said += more
                elif _used(child.pid) - used > seconds or time.monotonic() - began > _WAIT:
                    child.send_signal(signal.SIGABRT)  # which prints where it is
                    child.wait()
                    return {"ended": "time"}
        line, _, self._said = self._said.partition(b"\n")
        found: dict[str, Any] = json.loads(line)
        return found

    def _end(self) -> None:
        child, self.child = self.child, None
        if child is None:
            return
        assert child.stdin is not None and child.stdout is not None
        with suppress(BrokenPipeError):
            child.stdin.close()
        child.wait()
        child.stdout.close()


def _used(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _innermost(trace: str) -> str:
    """The frame of the engine that a traceback shows first, which for one of a signal is the innermost."""
    lines = [line.strip() for line in trace.splitlines() if "/bucketcatalog/" in line]
    return lines[0].rpartition("/bucketcatalog/")[2] if lines else ""


def cases(seed: int, first: int, number: int, *, count: int) -> Iterator[Result]:
    """So many cases of a seed from a number on, each read by ``count`` readers."""
    with Watched() as watched:
        for each in range(first, first + number):
            yield watched.run(seed, each, count=count)


def told(seed: int, result: Result, found: Finding) -> str:
    """A finding for people, with how to have it again."""
    again = f"scripts/run python -m tests.kit.fuzzing.running --seed {seed} --number {result.number} --reader {found.reader!r}"
    return f"{found.kind.upper()} in {found.reader} at {found.place}: {found.what}\n  case: {result.case}\n  again: {again}"


def main() -> int:
    """Run what the command line asks for; 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.kit.fuzzing.running", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--count", type=int, default=3, help="how many readers a case gets")
    parser.add_argument("--number", type=int, help="this case alone, with every reader")
    parser.add_argument("--reader", help="with --number: this reader alone")
    asked = parser.parse_args()
    kinds: Counter[tuple[str, str, str]] = Counter()
    if asked.number is not None:
        with Watched() as watched:
            result = watched.run(asked.seed, asked.number, count=1000, only=asked.reader)
        print(result.case, *(told(asked.seed, result, each) for each in result.found), sep="\n")
        return 1 if result.found else 0
    for result in cases(asked.seed, asked.first, asked.cases, count=asked.count):
        if result.number % 500 == 499:
            print(f"{result.number + 1} cases", file=sys.stderr, flush=True)
        for each in result.found:
            kinds[each.kind, each.place, ""] += 1
            if kinds[each.kind, each.place, ""] <= 2:
                print(told(asked.seed, result, each), flush=True)
    for (kind, place, _), times in sorted(kinds.items(), key=lambda each: (KINDS.index(each[0][0]), -each[1])):
        print(f"{times:6} {kind} {place}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
