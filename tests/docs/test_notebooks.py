"""The notebooks that need no Spark, as their readers run them: what they say is what their data were made to be."""

from __future__ import annotations

import base64
import csv
import hashlib
import json
from html.parser import HTMLParser
from pathlib import Path

import nbformat
import pyarrow.parquet as pq
import pytest

from ..kit.blocks import ROOT
from ..kit.notebooks import displayed, printed, run

EXAMPLES = ROOT / "examples"
WITH_SPARK = {"time_travel"}  # run in tests/spark
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.ipynb") if path.stem not in WITH_SPARK)
QUESTIONS = ROOT / "docs" / "guide" / "questions.md"

GIB = 1 << 30

pytestmark = pytest.mark.long


def done(name: str, folder: Path) -> nbformat.NotebookNode:
    """A notebook once all its cells have run; nothing is left in the working directory."""
    found = run(nbformat.read(EXAMPLES / f"{name}.ipynb", nbformat.NO_CONVERT), folder)
    assert [*(folder / "work").iterdir()] == []
    assert {output.get("name") for cell in found.cells for output in cell.get("outputs", [])} <= {None, "stdout"}, "warnings"
    return found


class _Cells(HTMLParser):
    """The texts of a table's cells, row by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._open = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("th", "td"):
            self._open = True
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("th", "td")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.rows[-1][-1] += data


def frames(notebook: nbformat.NotebookNode) -> list[list[dict[str, str]]]:
    """The rows of each frame that was displayed, by column; that of the index is called ``""``, or by its own name."""
    found = []
    for shown in displayed(notebook, "text/html"):
        cells = _Cells()
        cells.feed(shown)
        head, *rows = cells.rows
        if rows and not any(rows[0][1:]):  # the second line of a head names the index
            head, rows = [rows[0][0], *head[1:]], rows[1:]
        found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def test_each_notebook_is_run_by_a_test_here() -> None:
    assert NAMES == ["audit", "clean_up", "incident", "migration", "storage_bill"]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_short_is_linked_is_stored_without_outputs_and_its_cells_keep_their_names(name: str) -> None:
    notebook = nbformat.read(EXAMPLES / f"{name}.ipynb", nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    ids = [cell.id for cell in notebook.cells]
    assert len({*ids}) == len(ids) and ids[:2] == ["title", "setup"] and 8 <= len(ids) <= 15
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all((cell.outputs, cell.execution_count, dict(cell.metadata)) == ([], None, {}) for cell in code)
    assert f"(../../examples/{name}.ipynb)" in QUESTIONS.read_text()


def test_the_storage_bill_is_that_of_what_was_uploaded(tmp_path: Path) -> None:
    found = done("storage_bill", tmp_path)

    photos = [10 * (1 + week // 6) for week in range(12)]
    dumps = [25 if week < 8 else 7 * 25 for week in range(12)]
    price, cold = 0.023, 0.0125
    now = {"backups": sum(dumps), "logs": 4 * 5, "photos": sum(photos)}
    then = {"backups": sum(dumps[:4]), "logs": 4 * 5, "photos": sum(photos[:4])}
    bill, old_bill = ({name: gib * (cold if name == "logs" else price) for name, gib in sizes.items()} for sizes in (now, then))
    older = sum(dumps[:-1])
    assert printed(found).splitlines() == [
        f"a month: {sum(bill.values()):.2f} USD",
        f"8 weeks ago: {sum(old_bill.values()):.2f} USD",
        f"more backups each week, GiB: {' '.join(map(str, dumps))}",
        f"{8 + 3 * 7} dumps older than a week: {older * (price - cold):.2f} USD less a month in STANDARD_IA",
    ]
    used, costs, more, ages = frames(found)
    objects = {"backups": 8 + 4 * 7, "logs": 4, "photos": 120}
    assert [(row["bucket"], int(row["objects"]), int(row["bytes"])) for row in used] == [
        (name, objects[name], gib * GIB) for name, gib in now.items()
    ]
    assert {row["bucket"]: float(row["cost"]) for row in costs} == pytest.approx(bill)
    assert {row["bucket"]: float(row["more than then"]) for row in more} == pytest.approx(
        {name: bill[name] - old_bill[name] for name in bill}
    )
    # A week's dumps are half a day older than a whole number of weeks.
    by_age = [dumps[11:], dumps[7:11], dumps[3:7], dumps[:3]]
    assert [int(row["bytes"]) for row in ages] == [sum(sizes) * GIB for sizes in by_age]
    (figure,) = displayed(found, "image/png")
    assert base64.b64decode(figure).startswith(b"\x89PNG")


def test_the_incident_gives_back_what_one_program_deleted_and_nothing_else(tmp_path: Path) -> None:
    found = done("incident", tmp_path)

    lost, edited, mine, uploaded = 40, 5, 3, 12
    megabytes = 3 * (lost - edited) + 5 * edited
    lines = printed(found).splitlines()
    assert lines == [
        "2023/000.jpg: by janitor in its commit 0, {'rule': 'logs-365d', 'ticket': 'OPS-1742'}",
        f"would put {lost + mine} back and delete {uploaded}",
        f"{lost - 1} to give back, 1 there again",
        "given back in ben@0 with 0 conflicts",
        f"before: 2023/ {lost} pictures, {megabytes} MB",
        "before: 2024/ 30 pictures, 120 MB",
        "lost: 2024/ 30 pictures, 120 MB",
        f"now: 2023/ {lost} pictures, {megabytes - 3 + 2} MB",
        f"now: 2024/ {30 - mine + uploaded} pictures, {4 * (30 - mine + uploaded)} MB",
    ]
    told, summed = frames(found)
    assert [tuple(row.values())[1:6] for row in told] == [
        ("gateway-1", "delete", "deleted", str(mine), str(4_000_000 * mine)),
        ("janitor", "expire", "deleted", str(lost), str(1_000_000 * megabytes)),
    ]
    assert [tuple(row.values())[1:] for row in summed] == [
        ("janitor", str(lost), str(1_000_000 * megabytes)),
        ("gateway-1", str(mine), str(4_000_000 * mine)),
    ]


def test_the_migration_ends_with_both_servers_alike(tmp_path: Path) -> None:
    found = done("migration", tmp_path)

    def text(number: int) -> str:
        return f"document {number} " * (number + 1)

    sizes = [len(text(number)) for number in range(100)]
    copied = sum(sizes) - sum(sizes[40:60]) - sizes[30] + 100
    (written,) = (tmp_path / "tmpdir").glob("migration-*")
    assert printed(found).splitlines() == [
        f"everything is in {written}",
        f"old: 100 files, {sum(sizes):,} bytes, 100 read",
        f"new: 80 files, {copied:,} bytes, 80 read",
        "{'same': 78, 'missing': 20, 'differs': 2}",
        "98 unchanged, 2 read",
        "{'same': 76, 'missing': 21, 'differs': 3, 'extra': 1}",
        "{'same': 100}",
        "200 rows in proof.parquet",
    ]
    _, differs, meanwhile, log = frames(found)  # the first is the tag
    assert [tuple(row.values()) for row in differs] == [
        ("2021/030.txt", str(sizes[30]), "100.0"),
        ("2024/090.txt", str(sizes[90]), f"{sizes[90]}.0"),
    ]
    assert [tuple(row.values())[1:] for row in meanwhile] == [
        ("overwritten", "2020/005.txt", str(len("document 5, second edition"))),
        ("deleted", "2020/007.txt", str(sizes[7])),
        ("created", "2024/100.txt", str(len("document 100"))),
    ]
    shown = ("_catalog", "created", "overwritten", "deleted", "unchanged")
    assert [tuple(row[name] for name in shown) for row in log] == [
        ("old", "100", "0", "0", "0"),
        ("old", "1", "1", "1", "98"),
        ("new", "80", "0", "0", "0"),
        ("new", "21", "3", "1", "76"),
    ]

    sides = [
        {str(path.relative_to(side)): path.read_bytes() for path in side.rglob("*.txt")} for side in written.glob("*-server")
    ]
    assert len(sides) == 2 and sides[0] == sides[1]
    proof = pq.read_table(written / "proof.parquet").to_pylist()
    hashes = {name: base64.b64encode(hashlib.sha256(data).digest()).decode() for name, data in sides[0].items()}
    for server in ("old", "new"):
        assert {row["name"]: row["checksum"] for row in proof if row["_catalog"] == server} == hashes


def test_the_audit_shows_the_documents_of_the_date_and_who_deleted_too_early(tmp_path: Path) -> None:
    found = done("audit", tmp_path)

    held, size = 6 * 10, sum(200_000 + number for number in range(10))
    (written,) = (tmp_path / "tmpdir").glob("audit-*")
    first, again = (next((written / place).rglob("manifest.json")) for place in ("first", "again"))
    digest = hashlib.md5(first.read_bytes(), usedforsecurity=False).hexdigest()
    assert printed(found).splitlines() == [
        "settled: True",
        f"{held} documents in acme.csv",
        f"first: {held} documents, manifest {digest}",
        f"again: {held} documents, manifest {digest}",
        "3 of 23 deleted before their 180 days were over",
    ]
    assert first.read_bytes() == again.read_bytes() and json.loads(first.read_bytes())["sourceBucket"] == "documents"
    months = ["2025-07", "2025-08", "2025-09", "2025-10", "2025-11", "2025-12"]
    names = [f"acme/{month}/{number:02}.pdf" for month in months for number in range(10)]
    with (written / "acme.csv").open(newline="") as file:
        assert [(row["name"], row["content_length"]) for row in csv.DictReader(file)] == [
            (name, str(200_000 + int(name[-6:-4]))) for name in names
        ]

    usage, listed, since, ended, early, life = frames(found)
    assert [tuple(row.values())[1:] for row in usage] == [(f"{who}/", str(held), str(6 * size)) for who in ("acme", "globex")]
    assert [row["name"] for row in listed] == names[:3]
    assert {row["month"]: (row["created"], row["deleted"], row["overwritten"]) for row in since} == {
        "2025-07": ("0", "10", "0"),
        "2025-08": ("0", "10", "0"),
        "2025-11": ("0", "0", "1"),
        **{f"2026-{month:02}": ("7" if month == 4 else "10", "0", "0") for month in range(1, 7)},
    }
    assert [(row["writer"], row["operation"], row["did"], row["objects"]) for row in ended] == [
        ("support-desk", "delete", "deleted", "3"),
        ("retention", "expire", "deleted", "20"),
        ("scanner-1", "correct", "overwrote", "1"),
    ]
    assert [(row["name"], row["kept"][:7], row["_end_writer"], row["_end_metadata"]) for row in early] == [
        (f"acme/2026-04/{number:02}.pdf", "30 days", "support-desk", "{'ticket': '4711'}") for number in range(3)
    ]
    assert [(row["_change_type"], row["_operation"], row["content_length"]) for row in life] == [
        ("put", "scan", "200003"),
        ("put", "correct", "260000"),
    ]


def test_the_clean_up_deletes_what_was_planned_and_nothing_else(tmp_path: Path) -> None:
    found = done("clean_up", tmp_path)

    kilobytes = {f"projects/new/{number:02}.dat": 300 + number for number in range(30)}
    kilobytes |= {f"projects/2022/{number:02}.dat": 800 for number in range(12)}
    kilobytes |= {f"tmp/job-{number:02}.tmp": 400 for number in range(25)}
    kilobytes |= dict.fromkeys(["home/ann/holidays.mov", "home/bob/holidays (1).mov", "backup/holidays.mov"], 9000)
    rules = {
        "copy": ["backup/holidays.mov", "home/bob/holidays (1).mov"],
        "temporary": [f"tmp/job-{number:02}.tmp" for number in range(25) if 3 * number >= 30],
        "untouched": [f"projects/2022/{number:02}.dat" for number in range(12)],
    }
    gone = {name for names in rules.values() for name in names}
    before, freed = sum(kilobytes.values()), sum(kilobytes[name] for name in gone)
    (written,) = (tmp_path / "tmpdir").glob("clean-up-*")
    assert printed(found).splitlines() == [
        f"everything is in {written}",
        f"{len(kilobytes)} files, {before / 1e3:.0f} MB",
        "1 group, 18 MB in copies",
        "as planned: True",
        f"before-clean-up: {before / 1e3:.1f} MB",
        f"now: {(before - freed) / 1e3:.1f} MB",
    ]
    largest, ages, copies, plan, log = frames(found)
    assert [(row["name"], row["content_length"]) for row in largest] == [
        (name, "9000000") for name in ("backup/holidays.mov", "home/ann/holidays.mov", "home/bob/holidays (1).mov")
    ] + [("projects/2022/00.dat", "800000")]
    assert [(row["from_age"], int(row["objects"])) for row in ages] == [("0s", 25), ("30d", 32), ("365d", 1), ("730d", 12)]
    assert [row["name"] for row in copies] == ["home/ann/holidays.mov", "home/bob/holidays (1).mov", "backup/holidays.mov"]
    assert [(row["reason"], int(row["count"]), int(row["sum"])) for row in plan] == [
        (reason, len(names), 1000 * sum(kilobytes[name] for name in names)) for reason, names in rules.items()
    ]
    assert [tuple(row.values())[1:] for row in log] == [
        (str(len(kilobytes)), "0", "0", "0"),
        ("0", str(len(gone)), str(1000 * freed), str(len(kilobytes) - len(gone))),
    ]
    left = {str(path.relative_to(written / "server")) for path in (written / "server").rglob("*.*") if path.is_file()}
    assert left == kilobytes.keys() - gone
    with (written / "protocol.csv").open(newline="") as file:
        assert {(row["_change_type"], row["name"]) for row in csv.DictReader(file)} == {("deleted", name) for name in gone}
