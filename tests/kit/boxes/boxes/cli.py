"""``bucketcatalog boxes``: what there is to type."""

from __future__ import annotations

from bucketcatalog.console.app import program
from bucketcatalog.console.options import CatalogArgument, Database, Json, StorageOption, open_catalog
from bucketcatalog.console.output import print_facts

app = program(help="Boxes of rows.")


@app.callback()
def _root() -> None:
    """Boxes of rows."""


@app.command()
def weigh(
    catalog: CatalogArgument, database: Database = None, storage_option: StorageOption = None, as_json: Json = False
) -> None:
    """Say how heavy all boxes are together."""
    weights = (
        open_catalog(catalog, storage_option).snapshot(database=database).scan("box_weights", columns=["kilograms"]).to_arrow()
    )
    print_facts(
        {"boxes": len(weights), "kilograms": sum(w for w in weights["kilograms"].to_pylist() if w is not None)}, as_json=as_json
    )
