# ruff: noqa: PTH118, PTH206
"""The trees of the demo: which part of the source to copy, and real changes to the copy.

Usage: demo_tree.py pick SOURCE    number of files, a directory that splits them for two writers, a subtree to copy; with tabs between
       demo_tree.py change COPY    add, overwrite and delete files
"""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from pathlib import Path

MOST_FILES, MOST_BYTES = 12_000, 200_000_000
ADDED, OVERWRITTEN, DELETED = 400, 300, 200


def pick(source: str) -> tuple[int, str, str]:
    """Count the files; the top directory that has most of them splits them; the subtree is a large one that is cheap to copy."""
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    for folder, _, names in os.walk(source):
        parts = os.path.relpath(folder, source).split(os.sep)
        size = sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
        for depth in range(1, min(len(parts), 3) + 1):
            above = os.sep.join(parts[:depth])
            files[above] += len(names)
            sizes[above] += size
    top = {name: count for name, count in files.items() if os.sep not in name and name != "."}
    small = [name for name in files if name != "." and files[name] <= MOST_FILES and sizes[name] <= MOST_BYTES]
    if not top or not small:
        sys.exit(f"{source} has no directories with files: set DEMO_SOURCE to another tree")
    total = sum(top.values()) + files["."]
    return total, max(top, key=lambda name: top[name]), max(small, key=lambda name: (files[name], name))


def change(copy: Path) -> str:
    """Change the copy as its users would: some files are new, some have other content, some are gone, and so is a small directory."""
    folders = sorted(path for path in copy.iterdir() if path.is_dir() and not path.is_symlink())
    gone = min(folders, key=lambda folder: sum(1 for _ in folder.rglob("*"))) if len(folders) > 1 else None
    if gone is not None:
        shutil.rmtree(gone)
    files = sorted(path for path in copy.rglob("*") if path.is_file() and not path.is_symlink())
    overwritten = files[:: max(1, len(files) // OVERWRITTEN)][:OVERWRITTEN]
    for path in overwritten:
        path.unlink()  # it may be a hard link, or not writable
        path.write_text("other content\n")
    left = sorted(set(files) - set(overwritten))
    deleted = left[:: max(1, len(left) // DELETED)][:DELETED]
    for path in deleted:
        path.unlink()
    added = copy / "added-by-the-demo"
    added.mkdir()
    for number in range(ADDED):
        (added / f"{number}.txt").write_text(f"new file {number}\n")
    directory = f", and the directory {gone.name}" if gone is not None else ""
    return f"{ADDED} files added, {len(overwritten)} overwritten, {len(deleted)} deleted{directory}"


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in ("pick", "change"):
        sys.exit(__doc__)
    if sys.argv[1] == "pick":
        print(*pick(sys.argv[2]), sep="\t")
    else:
        print(change(Path(sys.argv[2])))
