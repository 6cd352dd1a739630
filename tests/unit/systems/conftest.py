"""The system of boxes, installed for a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ...kit.installing import boxes


@pytest.fixture
def with_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in boxes(tmp_path):
        monkeypatch.syspath_prepend(folder)


@pytest.fixture
def install_boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Installs the system of boxes, when it is called."""

    def install() -> None:
        for folder in boxes(tmp_path):
            monkeypatch.syspath_prepend(folder)

    return install
