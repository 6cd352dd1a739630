"""What the commands share: the node that they commit by, the bucket that is meant, and how rows are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Annotated, Any

import typer

from ....catalog import DEFAULT_DATABASE, Catalog
from ....console.options import open_catalog
from ....console.output import plain
from ....errors import CatalogNotFound, InvalidOption
from ....model.names import host_writer, owner_id
from ....query.snapshot import Snapshot
from ....write.host_turn import host_turn
from ..errors import BucketNotFound
from ..operations import Manta


def _owner(given: str | None) -> str | None:
    return None if given is None else owner_id(given)


Owner = Annotated[
    str | None,
    typer.Option("--owner", metavar="UUID", callback=_owner, help="Whose it is; not needed where one owner has such a bucket."),
]
WriterOption = Annotated[str | None, typer.Option("--writer", "-w", metavar="W", help="Who commits.  [default: manta-HOST]")]
BucketOrNone = Annotated[str | None, typer.Argument(metavar="BUCKET", help="The bucket's name.", show_default=False)]


@contextmanager
def node(
    catalog: str, storage_option: Sequence[str] | None, database: str | None, writer: str | None, **options: Any
) -> Iterator[tuple[Catalog, Manta]]:
    """A node that commits: by this machine's writer, in its turn, or by the one that is named."""
    opened = open_catalog(catalog, storage_option)
    name = DEFAULT_DATABASE if database is None and not opened.databases() else opened.resolve_database(database)
    with (
        host_turn(opened.store, name, named=writer, default=host_writer("manta-")) as chosen,
        Manta(opened, writer=chosen, database=name, **options) as manta,
    ):
        yield opened, manta


def reading(catalog: str, storage_option: Sequence[str] | None, database: str | None) -> tuple[Catalog, Manta]:
    """A node that commits nothing."""
    opened = open_catalog(catalog, storage_option)
    try:
        opened.require()
    except CatalogNotFound as error:
        raise CatalogNotFound(
            error.message, next_step="Check the path, or begin one: bucketcatalog manta create, or import."
        ) from None
    return opened, Manta(opened, writer=host_writer("manta-"), database=opened.resolve_database(database))


def place_of(snapshot: Snapshot, name: str, owner: str | None) -> dict[str, str]:
    """What the objects of the bucket of a name begin their keys with."""
    where = {"name": name, **({} if owner is None else {"owner": owner})}
    found = snapshot.scan("buckets", columns=["owner", "id"], where=where).to_arrow().to_pylist()
    if not found:
        raise BucketNotFound(f"There is no bucket {name!r}.", next_step="Create it by bucketcatalog manta create.")
    if len(found) > 1:
        owners = ", ".join(row["owner"] for row in islice(found, 5))
        raise InvalidOption(f"{len(found)} owners have a bucket {name!r}.", next_step=f"Give --owner, such as one of {owners}.")
    return {"owner": found[0]["owner"], "bucket_id": found[0]["id"]}


def refuse_given(why: str, **options: Any) -> None:
    """``InvalidOption`` where an option was given that means nothing here: nobody's condition or value is passed over."""
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value not in (None, [], False)]
    if given:
        says = "says" if len(given) == 1 else "say"
        raise InvalidOption(f"{', '.join(given)} {says} nothing {why}.", next_step="Leave it out, or name what it is about.")


def plain_rows(rows: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows as JSON has them."""
    return ({name: plain(value) for name, value in row.items()} for row in rows)
