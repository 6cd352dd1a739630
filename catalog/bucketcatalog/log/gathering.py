"""Gathering the transactions of a view: what is listed, and what that refers to, until nothing is missing.

A raw listing taken while others commit is not causally closed: a transaction may be listed whose parent, or what it had read of
another writer, is not. So it is completed until nothing that it refers to is missing (DESIGN.md, section 3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..errors import MissingObject
from ..format.checkpoints import Checkpoint
from ..format.transactions import Transaction, Void
from ..model.cuts import Cut, Head
from ..model.paths import LogFile
from .coverage import Covered
from .entries import outrun, voids_of
from .files import LogFiles

Ref = tuple[str, Head]


class Gathering:
    """The transactions found so far that no chosen checkpoint covers. Those in ``known`` need not be fetched.

    Files are listed and fetched several at once, as many as pay for the store; what comes of it depends on no order.
    """

    def __init__(
        self,
        files: LogFiles,
        covered: Covered,
        wanted: Callable[[Head], bool] = lambda _: True,
        *,
        closed_reads: bool = True,
        known: Mapping[Ref, Transaction] | None = None,
    ) -> None:
        self.files = files
        self.covered = covered
        self.found: dict[Ref, Transaction] = {}
        self._wanted = wanted
        self._closed_reads = closed_reads
        self._known = known or {}

    def take(self, timelines: Mapping[str, tuple[int, Iterable[LogFile]]]) -> None:
        """Fetch what timelines, each listed from a revision on, hold beyond the checkpoints."""
        wanted: list[Ref] = []
        for writer, (first, files) in sorted(timelines.items()):
            heads = [Head(file.revision, file.uuid) for file in files if file.is_transaction]
            self.covered.know(writer, heads, first)
            wanted += [(writer, head) for head in heads if self._wanted(head)]
        self.fetch(ref for ref in wanted if not self.covered.holds(*ref))

    def fetch(self, refs: Iterable[Ref]) -> None:
        """Fetch transactions by name, whether or not they are covered."""
        missing = [ref for ref in refs if ref not in self.found]
        self.found |= {ref: self._known[ref] for ref in missing if ref in self._known}
        rest = [ref for ref in missing if ref not in self.found]
        self.found |= zip(rest, self.files.fetched(rest), strict=True)

    def complete(self) -> None:
        """Fetch what is referred to and missing, until nothing is; ``MissingObject`` names what is gone.

        It is fetched by name: what somebody has read may lie below where readers list from.
        """
        done: set[Ref] = set()
        while missing := self.missing(done):
            try:
                self.fetch(missing)
            except MissingObject as error:
                raise MissingObject(f"{error.message} Later transactions build on it.", next_step=error.next_step) from None

    def missing(self, done: set[Ref] | None = None, *, of_covered: bool = True) -> list[Ref]:
        """What is neither found nor covered, and what was found refers to, unless that is ``done``, which it becomes, or ``of_covered``."""
        done, refs = set() if done is None else done, set[Ref]()
        for ref, transaction in self.found.items():
            if ref not in done:
                refs |= {(ref[0], Head(link.revision, link.uuid)) for link in transaction.parents}
                if self._closed_reads:
                    refs |= {(writer, head) for writer, heads in transaction.reads.heads.items() for head in heads}
                done.add(ref)
        for checkpoint in self.covered.checkpoints if self._closed_reads and of_covered else ():
            refs |= {(writer, head) for writer, heads in checkpoint.reads.heads.items() for head in heads}
        return sorted(ref for ref in refs if ref not in self.found and not self.covered.holds(*ref))

    def voids(self) -> dict[Ref, Void]:
        """What is voided by what was found, and by what the checkpoints cover; of one timeline alone, what its own transactions tell."""
        told = {} if self._closed_reads else outrun(self.found)
        return voids_of(self.found.values(), self.covered.checkpoints) | told

    def unaware(self) -> list[Checkpoint]:
        """The checkpoints that cover what is voided and do not know it, but for the horizon's own: there is nothing to read instead."""
        horizon = self.covered.horizon
        unaware = self.covered.unaware(self.voids())
        return [c for c in unaware if horizon is None or not horizon.is_own(c)]

    def cut(self) -> Cut:
        """The heads of everything covered and found."""
        followed = {(ref[0], Head(link.revision, link.uuid)) for ref, t in self.found.items() for link in t.parents}
        covered = {(writer, head) for writer in self.covered.writers() for head in self.covered.heads(writer)}
        return Cut.of((covered | set(self.found)) - followed)
