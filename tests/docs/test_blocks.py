"""Every code block of the documentation runs, except those that say that they are only text."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..kit.blocks import FILES, ROOT, Block, blocks_of, files_with, is_known, run_blocks

pytestmark = pytest.mark.long

OF_OTHER_LANES = frozenset({"python spark", "python s3", "bash s3", "bash spark", "bash postgres"})


def named(file: Path) -> str:
    return str(file.relative_to(ROOT))


@pytest.mark.parametrize("file", files_with("python", "bash", "proto"), ids=named)
def test_blocks_run(file: Path, tmp_path: Path) -> None:
    run_blocks(blocks_of(file), tmp_path, {}, skip=OF_OTHER_LANES)


@pytest.mark.parametrize("file", FILES, ids=named)
def test_every_block_says_what_it_is(file: Path) -> None:
    assert [b for b in blocks_of(file) if not is_known(b.kind)] == []
    assert file.read_text().count("\n```") + file.read_text().startswith("```") == 2 * len(blocks_of(file))


def test_a_block_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        run_blocks([Block(tmp_path, 1, "python", "1 / 0")], tmp_path, {}, skip=frozenset())


def test_a_command_that_fails_is_noticed(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="no catalog"):
        run_blocks([Block(tmp_path, 1, "bash", "bucketcatalog ls nowhere | cat")], tmp_path, {}, skip=frozenset())
