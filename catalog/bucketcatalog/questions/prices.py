"""``cost``: what is stored as money a month, by prices that the user gives.

Sums are exact, and so are prices, which are decimals; only the cost of each row is rounded, at the end.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidOption
from ..log.versions import Version
from ..model.arrays import one_chunk
from ..model.sizes import parse_size
from ..model.times import Time
from .asking import BUCKET, BUCKET_ID, CLASS, NAME, OWNER, SIZE, Owner, Source, asked
from .grouping import BYTES, COUNT, Totals, narrow
from .usage import OF_BUCKETS, PREFIX, PrefixesOf, depth_of

STANDARD = "STANDARD"
"""The class of objects of which none is known, as S3 has it."""
CURRENCY, DEFAULT, COST = "currency", "default", "cost"
_BILLED = "billed"
_GIB = 1 << 30
_DIGITS, _PRECISION = 6, 80
_OF_A_CLASS = ("gib_month", "thousand_objects", "minimum_size")
_FORM = (
    'Map storage classes to prices a GiB and month, such as {"STANDARD": 0.023}, or to tables of gib_month, thousand_objects and '
    "minimum_size; default is the price of all others, currency the name of the money."
)
Prices = Mapping[str, Any] | str | os.PathLike[str]
"""Prices, or the TOML or JSON file that has them."""


@dataclass(frozen=True)
class Price:
    """What a class costs a month: for a GiB, and for a thousand objects. What is smaller than the minimum is billed as that."""

    gib_month: Decimal
    thousand_objects: Decimal = Decimal(0)
    minimum_size: int = 0

    def of(self, objects: int, billed: int) -> float:
        """The cost of so many objects that are billed as so many bytes, rounded."""
        with localcontext(prec=_PRECISION):
            return float(round(self.gib_month * billed / _GIB + self.thousand_objects * objects / 1_000, _DIGITS))


@dataclass(frozen=True)
class PriceList:
    """The prices of classes, and of those that are not named."""

    classes: Mapping[str, Price]
    default: Price | None = None
    currency: str | None = None

    @classmethod
    def of(cls, given: Prices) -> PriceList:
        """The prices as a mapping or a file has them; ``InvalidOption`` for what is none."""
        table = given if isinstance(given, Mapping) else _read(given)
        currency = table.get(CURRENCY)
        if not isinstance(currency, str | None):
            raise InvalidOption(f"The currency {currency!r} is no text.", next_step=_FORM)
        prices = {str(name): _price(str(name), value) for name, value in table.items() if name != CURRENCY}
        default = prices.pop(DEFAULT, None)
        if not prices and default is None:
            raise InvalidOption("There is no price.", next_step=_FORM)
        return cls(prices, default, currency)

    def price(self, storage_class: str) -> Price | None:
        """The price of a class, None where there is none."""
        return self.classes.get(storage_class, self.default)

    def minimums(self, classes: pa.Array) -> pa.Array | None:
        """The minimum size for each of these values; None where no class has one."""
        known = [*self.classes.values(), *([self.default] if self.default is not None else [])]
        if not any(price.minimum_size for price in known):
            return None
        distinct = pc.unique(classes)
        sizes = [found.minimum_size if (found := self.price(name)) is not None else 0 for name in distinct.to_pylist()]
        return pa.array(sizes, pa.int64()).take(pc.index_in(classes, value_set=distinct))


def cost(
    source: Source,
    prices: Prices,
    *,
    bucket: str | None = None,
    owner: Owner = None,
    prefix: str | None = None,
    depth: int | None = None,
    as_of: Time | Version | None = None,
    database: str | None = None,
    ignore_corruption: bool = False,
) -> pa.Table:
    """What the objects cost a month by bucket, or by prefix as of ``du``, and storage class, by ``prices``.

    These are a mapping, or the path of a TOML or JSON file, of storage classes to prices: that of a GiB and month, or a table of
    ``gib_month``, ``thousand_objects`` and ``minimum_size``, as which smaller objects are billed. ``default`` is the price of classes that
    are not named; without it one of these is ``InvalidOption``. ``currency`` is shown. An object without a class is of ``STANDARD``.

    Columns: owner, bucket, bucket_id, with a prefix that, storage_class, objects, bytes, cost, currency.
    """
    listed = PriceList.of(prices)
    about = asked(
        source, as_of=as_of, database=database, bucket=bucket, owner=owner, prefix=prefix, ignore_corruption=ignore_corruption
    )
    deep = depth_of(about, depth)
    of_prefix = None if deep is None else PrefixesOf(about, deep)
    keys = [*OF_BUCKETS, *([] if of_prefix is None else [pa.field(PREFIX, pa.string())]), pa.field(CLASS, pa.string())]
    totals = Totals(keys, [_BILLED])
    read = [OWNER, BUCKET_ID, CLASS, SIZE, *([] if of_prefix is None else [NAME])]
    for batch in about.scan(read).in_any_order().to_batches():
        classes, sizes = pc.fill_null(batch[CLASS], STANDARD), pc.fill_null(batch[SIZE], 0)
        groups = {OWNER: batch[OWNER], BUCKET_ID: batch[BUCKET_ID], CLASS: classes}
        if of_prefix is not None:
            groups[PREFIX] = of_prefix(batch[NAME])
        least = listed.minimums(classes)
        totals.add(groups, {BYTES: sizes, _BILLED: sizes if least is None else pc.max_element_wise(sizes, least)})
    exact = totals.exact()
    money = pa.array(_costs(exact, listed), pa.float64())
    found = narrow(exact.drop_columns([_BILLED]), [COUNT, BYTES])
    found = found.append_column(COST, money).append_column(
        CURRENCY, pa.repeat(pa.scalar(listed.currency, pa.string()), len(found))
    )
    order = [name for name in (BUCKET, OWNER, BUCKET_ID, PREFIX, CLASS) if name == BUCKET or name in found.column_names]
    return about.with_names(found).sort_by([(name, "ascending") for name in order])


def _costs(groups: pa.Table, listed: PriceList) -> list[float]:
    """The cost of each group; ``InvalidOption`` that names the classes without a price."""
    classes = one_chunk(groups[CLASS]).to_pylist()
    if missing := sorted({name for name in classes if listed.price(name) is None}):
        raise InvalidOption(
            f"There is no price of the storage class{'es' if len(missing) > 1 else ''} {', '.join(missing)}.",
            next_step="Add one, or a default.",
        )
    each = zip(classes, groups[COUNT].to_pylist(), groups[_BILLED].to_pylist(), strict=True)
    return [price.of(int(count), int(billed)) for name, count, billed in each if (price := listed.price(name)) is not None]


def _price(name: str, given: Any) -> Price:
    if not isinstance(given, Mapping):
        return Price(_amount(name, given))
    if "gib_month" not in given or (unknown := sorted(given.keys() - {*_OF_A_CLASS})):
        what = f"a {unknown[0]!r} that nobody knows" if "gib_month" in given else "no gib_month"
        raise InvalidOption(f"The price of {name} has {what}.", next_step=_FORM)
    return Price(
        _amount(name, given["gib_month"]),
        _amount(name, given.get("thousand_objects", 0)),
        parse_size(given.get("minimum_size", 0)),
    )


def _amount(name: str, given: Any) -> Decimal:
    try:
        if isinstance(given, bool) or not isinstance(given, (int, float, Decimal, str)):
            raise TypeError
        amount = Decimal(str(given))
    except (InvalidOperation, TypeError):
        raise InvalidOption(f"The price of {name} is {given!r}, which is no number.", next_step=_FORM) from None
    if not amount.is_finite() or not 0 <= amount <= 1_000_000_000:
        raise InvalidOption(f"The price of {name} is {given!r}.", next_step="Give one from 0 on.")
    return amount


def _read(path: str | os.PathLike[str]) -> Mapping[str, Any]:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidOption(f"The prices are a {type(path).__name__}.", next_step=_FORM)
    file = Path(path)
    try:
        text = file.read_text("utf-8")
        loaded = (
            json.loads(text, parse_float=Decimal) if file.suffix.lower() == ".json" else tomllib.loads(text, parse_float=Decimal)
        )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error).splitlines()[0]
        raise InvalidOption(
            f"The prices in {str(file)!r} cannot be read: {why}.",
            next_step="Give a TOML file, or a JSON file whose name ends in .json.",
        ) from None
    if not isinstance(loaded, dict):
        raise InvalidOption(f"{str(file)!r} has no table of prices.", next_step=_FORM)
    return loaded
