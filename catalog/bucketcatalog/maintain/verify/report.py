"""The report of ``verify``: everything that a walk over a database finds, and comparing states, the worst first.

Errors are given as they are found, so that whoever waits sees them at once; what is milder comes at the end, whatever happens meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from ...log.files import LogFiles
from ...store.obstacles import Obstacles
from .deep import differences, not_compared
from .findings import Finding, Severity
from .walk import Tell, Walk


def verify(
    files: LogFiles,
    *,
    deep: bool = False,
    tell: Tell = lambda _: None,
    left_out: Callable[[Finding], None] = lambda _: None,
    obstacles: Obstacles | None = None,
) -> Iterator[Finding]:
    """Everything that is wrong with a database or worth knowing, errors as they are found, then warnings, then remarks.

    Nothing is written. ``deep`` compares the state that each checkpoint holds with the one that its transactions make. At the end
    ``left_out`` is told of which that was not looked at. ``obstacles`` are as for ``Walk``.
    """
    milder: dict[Severity, list[Finding]] = {Severity.WARNING: [], Severity.INFO: []}
    try:
        for finding in _as_found(Walk(files, tell, obstacles), tell, deep=deep, left_out=left_out):
            if finding.severity is Severity.ERROR:
                yield finding
            else:
                milder[finding.severity].append(finding)
    except (Exception, KeyboardInterrupt):
        yield from chain.from_iterable(milder.values())
        raise
    yield from chain.from_iterable(milder.values())


def _as_found(walk: Walk, tell: Tell, *, deep: bool, left_out: Callable[[Finding], None]) -> Iterator[Finding]:
    yield from walk.findings()
    untold = walk.checkpoints
    if deep:
        tell("states")
        untold = []
        yield from differences(walk.files, walk.checkpoints, walk.definitions, walk.voided, untold.append)
    for finding in not_compared(walk.files.database, untold):
        left_out(finding)
