"""``du``, ``top``, ``find``, ``dups``, ``age`` and ``cost``: what there is, how much of it, how old, how often and at what price."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..console.answers import Form, places_of, print_answer
from ..console.options import (
    AsOf,
    BucketArgument,
    CatalogArgument,
    Csv,
    Database,
    Depth,
    IgnoreCorruption,
    Json,
    Limit,
    Owner,
    PrefixArgument,
    StorageOption,
    open_catalog,
    time_or_version,
)
from ..console.output import number, size
from ..errors import InvalidOption
from ..questions import age as age_of
from ..questions import cost as cost_of
from ..questions import du as du_of
from ..questions import dups as dups_of
from ..questions import find as find_in
from ..questions import top as top_of
from ..questions.ages import EDGES

Text = str | None


def du(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    depth: Depth = None,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    limit: Limit = None,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """How many objects there are, and how many bytes, by bucket or by prefix.

    Example: bucketcatalog du ./catalog photos 2024/ --depth 1
    """
    form = Form(as_json, as_csv, limit)
    found = du_of(
        open_catalog(catalog, storage_option),
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        depth=depth,
        as_of=time_or_version(as_of),
        database=database,
        ignore_corruption=ignore_corruption,
    )
    objects, total = (sum(map(int, found[name].to_pylist())) for name in ("objects", "bytes"))
    shown = ["objects", "bytes", *places_of(found)]
    print_answer(found, shown, form, nothing="No object.", after=f"{number(objects, 'object')}, {size(total)}")


def top(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    by: Annotated[str, typer.Option("--by", metavar="WHAT", help="largest, oldest or newest.")] = "largest",
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most N objects.")] = 10,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The largest, the oldest or the newest objects.

    Example: bucketcatalog top ./catalog photos --by oldest -n 20
    """
    form = Form(as_json, as_csv)
    found = top_of(
        open_catalog(catalog, storage_option),
        by,
        limit,
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        as_of=time_or_version(as_of),
        database=database,
        ignore_corruption=ignore_corruption,
    )
    print_answer(found, ["content_length", "modified", "bucket", "name"], form, nothing="No object.")


def find(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    name: Annotated[
        Text, typer.Option("--name", metavar="GLOB", help="What stands behind the last /; with a / in it, the whole name.")
    ] = None,
    larger: Annotated[Text, typer.Option("--larger", metavar="SIZE", help="Than this, such as 10MiB.")] = None,
    smaller: Annotated[Text, typer.Option("--smaller", metavar="SIZE", help="Than this.")] = None,
    older: Annotated[Text, typer.Option("--older", metavar="AGE|T", help="Modified longer ago, such as 30d.")] = None,
    newer: Annotated[Text, typer.Option("--newer", metavar="AGE|T", help="Modified since then.")] = None,
    content_type: Annotated[Text, typer.Option("--content-type", metavar="GLOB", help="Such as 'image/*'.")] = None,
    storage_class: Annotated[Text, typer.Option("--storage-class", metavar="CLASS", help="Of this class.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option("--tag", metavar="K[=V]", help="That has the tag; repeat it for several.")
    ] = None,
    file_type: Annotated[Text, typer.Option("--file-type", metavar="TYPE", help="file, symlink and so on.")] = None,
    deleted: Annotated[bool, typer.Option("--deleted", help="Look among tombstones: what was there.")] = False,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    limit: Limit = None,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """The objects that meet all of the conditions, in byte order of their names within a bucket.

    Example: bucketcatalog find ./catalog photos --name '*.jpg' --larger 10MiB --older 365d
    """
    form = Form(as_json, as_csv, limit)
    shown = [*(["deleted_at"] if deleted else []), "content_length", "modified", "bucket", "name"]
    found = find_in(
        open_catalog(catalog, storage_option),
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        name=name,
        larger=larger,
        smaller=smaller,
        older=older,
        newer=newer,
        content_type=content_type,
        storage_class=storage_class,
        tag=tag,
        file_type=file_type,
        deleted=deleted,
        columns=shown if form.is_for_people else None,
        as_of=time_or_version(as_of),
        database=database,
        ignore_corruption=ignore_corruption,
    )
    print_answer(found, shown, form, nothing="No object.")


def dups(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    larger: Annotated[Text, typer.Option("--larger", metavar="SIZE", help="Of objects larger than this.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=1, help="At most N groups.")] = 20,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Objects of one content, by size and checksum, those first that waste the most.

    Example: bucketcatalog dups ./catalog --larger 1MB
    """
    form = Form(as_json, as_csv)
    found = dups_of(
        open_catalog(catalog, storage_option),
        larger=larger,
        limit=limit,
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        as_of=time_or_version(as_of),
        database=database,
        ignore_corruption=ignore_corruption,
    )
    summary: dict[str, Any] = {
        "groups": found.all_groups,
        "wasted_bytes": found.all_wasted_bytes,
        "without_hash": found.without_hash,
        "empty": found.empty,
        "unsized": found.unsized,
    }
    told = f"{number(found.all_groups, 'group')}, {size(found.all_wasted_bytes)} wasted; "
    told += f"{number(found.without_hash, 'object')} without a hash, {found.empty:,} empty, {found.unsized:,} of unknown size"
    shown = ["wasted_bytes", "copies", "content_length", "kind", "examples"]
    print_answer(found.groups, shown, form, nothing="No copy.", after=told, summary=summary)


def age(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    edge: Annotated[
        list[str] | None,
        typer.Option(
            "--edge", metavar="AGE", help=f"An age at which a row begins; repeat it.  [default: {', '.join(map(str, EDGES))}]"
        ),
    ] = None,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """How much was modified how long ago, by storage class.

    Example: bucketcatalog age ./catalog photos --edge 30d --edge 365d
    """
    form = Form(as_json, as_csv)
    found = age_of(
        open_catalog(catalog, storage_option),
        edges=edge or EDGES,
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        as_of=time_or_version(as_of),
        database=database,
        ignore_corruption=ignore_corruption,
    )
    print_answer(found, ["storage_class", "from_age", "below_age", "objects", "bytes"], form, nothing="No object.")


def cost(
    catalog: CatalogArgument,
    bucket: BucketArgument = None,
    prefix: PrefixArgument = None,
    prices: Annotated[
        Text, typer.Option("--prices", metavar="FILE", help="TOML or JSON: storage classes and their prices a GiB and month.")
    ] = None,
    price: Annotated[
        list[str] | None, typer.Option("--price", metavar="CLASS=N", help="The price of a class, or of the default; repeat it.")
    ] = None,
    depth: Depth = None,
    as_of: AsOf = None,
    ignore_corruption: IgnoreCorruption = False,
    limit: Limit = None,
    owner: Owner = None,
    database: Database = None,
    storage_option: StorageOption = None,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """What the objects cost a month, by bucket or prefix and storage class, by prices that you give.

    Example: bucketcatalog cost ./catalog --price STANDARD=0.023 --price GLACIER=0.0036
    """
    form = Form(as_json, as_csv, limit)
    if (prices is None) == (not price):
        raise InvalidOption("The prices come from a file or from options.", next_step="Give --prices FILE, or --price CLASS=N.")
    found = cost_of(
        open_catalog(catalog, storage_option),
        prices if prices is not None else dict(_priced(each) for each in price or ()),
        bucket=bucket,
        owner=owner,
        prefix=prefix,
        depth=depth,
        as_of=time_or_version(as_of),
        database=database,
        ignore_corruption=ignore_corruption,
    )
    currency = next(iter(found["currency"].to_pylist()), None)
    total = f"{sum(found['cost'].to_pylist()):,.2f}{f' {currency}' if currency else ''} a month"
    shown = ["cost", "objects", "bytes", "storage_class", *places_of(found)]
    print_answer(found, shown, form, nothing="No object.", after=total)


def _priced(text: str) -> tuple[str, str]:
    name, equals, amount = text.rpartition("=")
    if not equals or not name:
        raise InvalidOption(f"{text!r} is no price.", next_step="Write CLASS=N, such as STANDARD=0.023.")
    return name, amount


COMMANDS = {"du": du, "top": top, "find": find, "dups": dups, "age": age, "cost": cost}
