"""The process in which files are forged and read: its memory is limited, and who started it watches its time and how it ends.

Asked by lines of JSON for a case and how many readers it gets, it answers with what it is about to do, and then with what was wrong.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import shutil
import sys
import warnings
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

from ..limited import MEBI
from .base import FORGER, Base, made
from .forge import Case, Forger, shown
from .oracle import Finding, judge, judge_error, touched
from .readers import Answer, data_of, lay_data, readers

MEMORY = 1536 * MEBI
GROWTH = 1024 * MEBI
_SLOW = {
    "verify deep in findings": 8,
    "command verify --deep": 8,
    "verify in findings": 3,
    "command verify": 4,
    "command repair": 4,
}
_SLOW |= {"command info": 4, "tables about the catalog": 3, "tables about the catalog past damage": 3, "scan at a tag": 2}
"""Readers that come so many times less often than others."""


class Reading:
    """The base in a folder, forged and put right again for each case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "catalog"
        self._base: Base = made()
        self._forger = Forger(self._base)
        self._names = frozenset(self._base.files)
        self._sound: dict[str, Answer] = {}
        self._base.write(self._folder)
        self._readers = readers()
        rows = self._readers["scan of objects"](self._folder).rows["objects"]
        lay_data(self._folder, rows)
        self._hers = frozenset(map(data_of, (row for row in rows if row["_writer"] == FORGER)))

    def run(self, seed: int, number: int, count: int, only: str | None, tell: Callable[[dict[str, Any]], None]) -> list[Finding]:
        """Forge a case and let some readers, or the one that is named, read it; ``tell`` is told of each before."""
        case = self._forger.case(seed, number)
        known = {**self._readers, **{name: read for name, read in readers(list(case.files)).items() if name.startswith("dump")}}
        names = [only] if only is not None else _chosen(list(known), Random(f"{seed} {number} readers"), count)
        tell({"case": shown(case)[:2000]})
        allowed, found = touched(case), [wrong for name in names if (wrong := self._prepared(name, known[name])) is not None]
        names = [name for name in names if name in self._sound]
        self._lay(case)
        try:
            for name in names:
                tell({"reader": name})
                found += self._read(name, known[name], allowed)
        finally:
            self._lay(Case({name: self._base.files.get(name) for name in case.files}))
        return found

    def _prepared(self, name: str, read: Callable[[Path], Answer]) -> Finding | None:
        """Have what a reader gives where nothing is forged; what is wrong where it gives nothing."""
        if name not in self._sound:
            try:
                self._sound[name] = Answer() if name.startswith("dump") else read(self._folder)
            except Exception as error:
                return Finding("sound", name, f"{type(error).__name__}: {error}"[:400])
            if said := self._sound[name].findings:
                return Finding("sound", name, said[0][:400])
        return None

    def _lay(self, case: Case) -> None:
        for name, data in case.files.items():
            if data is None:
                (self._folder / name).unlink(missing_ok=True)
            else:
                self._base.restore(self._folder, name, data)

    def _read(self, name: str, read: Callable[[Path], Answer], allowed: frozenset[str]) -> list[Finding]:
        Path("/proc/self/clear_refs").write_text("5")  # the peak is what there is now
        before, found = _memory("VmHWM"), list[Finding]()
        try:
            answer = read(self._folder)
        except Exception as error:
            wrong = judge_error(name, error, allowed)
            found += [wrong] if wrong is not None else []
        else:
            found += judge(name, self._sound[name], answer, allowed, self._names, self._hers)
        grown = _memory("VmHWM") - before
        return found + ([Finding("memory", name, f"{grown / MEBI:.0f} MiB more")] if grown > GROWTH else [])


def _chosen(names: list[str], random: Random, count: int) -> list[str]:
    """Some of the readers: slow ones seldom, what becomes of all rows past the damage often."""
    weights = [(1 / _SLOW.get(name, 1)) * (3 if name.startswith("scan of") else 1) for name in names]
    if count >= len(names):
        return names
    found: dict[str, None] = {}
    while len(found) < count:
        found[random.choices(names, weights)[0]] = None
    return list(found)


def _memory(which: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, said = line.partition(":")
        if name == which:
            return int(said.split()[0]) * 1024
    raise AssertionError(which)


def main(folder: Path) -> None:
    """Answer what is asked on standard input."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what is printed is no answer
    faulthandler.enable()
    warnings.simplefilter("ignore")

    def tell(what: dict[str, Any]) -> None:
        answers.write(f"{json.dumps(what)}\n")
        answers.flush()

    reading = Reading(folder)
    most = _memory("VmSize") + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    tell({"ready": FORGER})
    for line in sys.stdin:
        asked = json.loads(line)
        found = reading.run(asked["seed"], asked["number"], asked["count"], asked["only"], tell)
        tell({"found": [asdict(each) for each in found]})
    shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
