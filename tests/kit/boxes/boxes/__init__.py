"""Boxes of rows, each a few Parquet files: a small system, with one of everything that a system can have."""

from __future__ import annotations

from bucketcatalog import between
from bucketcatalog.query.views import Computed, SqlView, View
from bucketcatalog.registry import IN_CATALOG, System

from . import tables_pb2
from .columns import KILOGRAMS, kilograms

SYSTEM = System(
    name="boxes",
    declarations=tables_pb2,
    names=("packed",),
    views=(
        View(
            "box_weights",
            "boxes.boxes",
            {"box": "name", "kilograms": Computed(KILOGRAMS, ("grams",), kilograms), "since": "packed"},
        ),
        View("heavy_boxes", "boxes.boxes", {"box": "name", "grams": "grams", "again": "grams"}, where={"grams": between(1000)}),
        View("lost_boxes", "deleted_boxes.boxes", {"box": "name", "lost": "deleted_at"}),
        SqlView(
            "box_sizes",
            "SELECT b.box, sum(p.rows) AS size FROM {box_weights} b JOIN {boxes.parts} p ON b.box = p.box GROUP BY b.box",
        ),
    ),
    commands="boxes.cli:app",
    reads="boxes.packed:READS",
    writes="boxes.packed:WRITES",
    jobs="boxes.repack:JOBS",
    collects={"boxes.boxes": "boxes.labels:peeler", "boxes.parts": IN_CATALOG},
)
