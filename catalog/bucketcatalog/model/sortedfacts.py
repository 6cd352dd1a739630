"""Facts of one table in the order of their keys, with the keys beside them, so that those of a range are found by bisection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from .arrays import one_chunk
from .facts import Facts, concat
from .keys import KeyRange, encode_keys, span
from .tables import Table


@dataclass(frozen=True)
class SortedFacts:
    """Facts and their encoded keys, of one length and in the keys' order."""

    facts: Facts
    keys: pa.Array

    @classmethod
    def of(cls, facts: Facts, table: Table) -> Self:
        """``facts`` in order of their keys, as they often are already."""
        keys = one_chunk(encode_keys(table, facts.rows)) if len(facts) else pa.array([], pa.binary())
        if pc.all(pc.less_equal(keys[:-1], keys[1:]), min_count=0).as_py():
            return cls(facts, keys)
        order = pc.sort_indices(keys)
        return cls(facts.take(order), keys.take(order))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """All of the parts, at least one, in order."""
        if len(parts) == 1:
            return parts[0]
        keys = pa.concat_arrays([part.keys for part in parts])
        order = pc.sort_indices(keys)
        return cls(concat([part.facts for part in parts]).take(order), keys.take(order))

    def __len__(self) -> int:
        return len(self.keys)

    def within(self, keys: KeyRange) -> Self:
        """The part whose keys lie in the range, without copying."""
        start, stop = span(self.keys, keys)
        return replace(self, facts=self.facts.slice(start, stop), keys=self.keys[start:stop])

    def filter(self, mask: npt.NDArray[np.bool_]) -> Self:
        """The facts where ``mask`` is true."""
        rows = pa.array(mask)
        return replace(self, facts=self.facts.filter(rows), keys=self.keys.filter(rows))

    def keyed(self, table: Table) -> Self:
        """The same facts with the keys that the table gives them, which have the same order."""
        return replace(self, keys=one_chunk(encode_keys(table, self.facts.rows)))

    def of_keys(self, keys: pa.Array) -> Self:
        """The part about these keys."""
        mask = pc.is_in(self.keys, value_set=keys)
        return replace(self, facts=self.facts.filter(mask), keys=self.keys.filter(mask))
