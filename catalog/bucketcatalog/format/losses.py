"""What a reader that reads on has lost so far.

Reading past damage is a policy that files, indexes and blocks are opened with: whoever reads asks nothing, and says what it could not read.

Where a block of a checkpoint cannot be read, nothing is known of its keys: another level or the tail may hold a row of them that it ended.
So whoever reads on leaves out all rows of its key range, and says so. Events that cannot be read are left out by themselves, as if their
transaction had not had them: what range they claim to be of is their writer's word, and would hide the rows of others.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from ..errors import BucketCatalogError, CatalogWarning
from ..model.keys import KeyRange
from .headers import BlockClass
from .held import Held, held_in_segment
from .runs import SegmentReference


@dataclass(frozen=True, slots=True)
class Loss:
    """A file, or a part of one, that could not be read: the error's code and message, and what it held that is not in the answer."""

    file: str
    code: str
    message: str
    held: tuple[Held, ...] = ()

    def __str__(self) -> str:
        held = f" Left out: {'; '.join(map(str, self.held))}." if self.held else ""
        return f"{self.message}{held}"


class OnDamage(Protocol):
    """What becomes of what cannot be read: ``STRICT`` makes it an error, ``Losses`` notes it and the reader reads on."""

    @property
    def reads_on(self) -> bool:
        """Whether answers may lack what was lost."""
        ...

    @property
    def found(self) -> tuple[Loss, ...]:
        """What was met so far."""
        ...

    def add(self, file: str, error: BucketCatalogError, held: Iterable[Held] = ()) -> Loss | None:
        """Note that a file, or the part of it that held this, could not be read; None where it was noted before. Or raise the error."""
        ...

    def tell(self, *, called_from: int = 2) -> None:
        """Warn, as of the call so many frames above, of what was noted since this was asked for the last time."""
        ...

    def lose_segment(self, file: str, error: BucketCatalogError, reference: SegmentReference) -> None:
        """Note that the index of a segment could not be read: but for events its key range is in no answer. Or raise it."""
        ...

    def lose_keys(self, table: str, keys: KeyRange) -> None:
        """Note that rows of these keys were in a block that could not be read."""
        ...

    def without_withheld(self, table: str, ranges: Iterable[KeyRange]) -> list[KeyRange]:
        """The parts of the ranges that answers about a table can be given for."""
        ...

    def lost_keys(self, table: str) -> list[KeyRange]:
        """The keys of a table of which some answer that was given lacks rows."""
        ...


@dataclass(frozen=True, slots=True)
class Strict:
    """What cannot be read is an error."""

    reads_on: bool = field(default=False, init=False)
    found: tuple[Loss, ...] = field(default=(), init=False)

    def add(self, file: str, error: BucketCatalogError, held: Iterable[Held] = ()) -> NoReturn:
        """Raise it."""
        raise error

    def tell(self, *, called_from: int = 2) -> None:
        """There is nothing to tell of."""

    def lose_segment(self, file: str, error: BucketCatalogError, reference: SegmentReference) -> NoReturn:
        """Raise it."""
        raise error

    def lose_keys(self, table: str, keys: KeyRange) -> None:
        """Nobody comes to this, for the block was an error."""

    def without_withheld(self, table: str, ranges: Iterable[KeyRange]) -> list[KeyRange]:
        """All of them."""
        return list(ranges)

    def lost_keys(self, table: str) -> list[KeyRange]:
        """None."""
        return []


STRICT = Strict()


class Losses:
    """What a reader that reads on has met, each once. Threads may share it; a pickle is empty, since what is read there is met there."""

    reads_on = True

    def __init__(self) -> None:
        self._found: dict[tuple[str, tuple[Held, ...]], Loss] = {}
        self._untold: list[Loss] = []
        self._withheld: dict[str, list[KeyRange]] = {}
        self._lost: dict[str, list[KeyRange]] = {}
        self._adding = threading.Lock()

    def __reduce__(self) -> tuple[type[Losses], tuple[()]]:
        return Losses, ()

    @property
    def found(self) -> tuple[Loss, ...]:
        """What was met so far."""
        with self._adding:
            return tuple(self._found.values())

    def add(self, file: str, error: BucketCatalogError, held: Iterable[Held] = ()) -> Loss | None:
        """Note that a file, or the part of it that held this, could not be read; None where it was noted before."""
        loss = Loss(file, error.code, error.message, tuple(held))
        with self._adding:
            if (file, loss.held) in self._found:
                return None
            self._found[file, loss.held] = loss
            self._untold.append(loss)
            return loss

    def tell(self, *, called_from: int = 2) -> None:
        """Warn, as of the call so many frames above, of what was noted since this was asked for the last time."""
        with self._adding:
            untold, self._untold = self._untold, []
        for loss in untold:
            warnings.warn(str(loss), CatalogWarning, stacklevel=called_from + 1)

    def lose_segment(self, file: str, error: BucketCatalogError, reference: SegmentReference) -> None:
        """Note, with a warning, that the index of a segment could not be read: but for events its key range is left out of every answer."""
        loss = self.add(file, error, held_in_segment(reference))
        if loss is None:
            return
        with self._adding:
            if (run := reference.run).is_of_rows and run.block_class is not BlockClass.EVENTS:
                self._withheld.setdefault(run.table, []).append(KeyRange.closed(run.first_key, run.last_key))
        self.tell()

    def lose_keys(self, table: str, keys: KeyRange) -> None:
        """Note that rows of these keys were in a block that could not be read."""
        with self._adding:
            self._lost.setdefault(table, []).append(keys)

    def without_withheld(self, table: str, ranges: Iterable[KeyRange]) -> list[KeyRange]:
        """The parts of the ranges that answers about a table can be given for."""
        left = list(ranges)
        with self._adding:
            withheld = list(self._withheld.get(table, ()))
        for lost in withheld:
            left = [part for keys in left for part in keys.without(lost)]
        return left

    def lost_keys(self, table: str) -> list[KeyRange]:
        """The keys of a table of which some answer that was given lacks rows: of segments without an index, and of blocks."""
        with self._adding:
            return [*self._withheld.get(table, ()), *self._lost.get(table, ())]
