"""How far long work is, for whoever watches: a line on a terminal, or below the cell of a notebook; nothing where nobody does.

``with progress_line("verifying") as tell: findings = list(catalog.verify(tell=tell))``: whatever takes ``progress`` or ``tell`` can be
given it. Of the rest the line says what it is and, once it has ended, how long it took.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from .. import clock
from .output import visible

Tell = Callable[[object], None]
_SECONDS_APART = 0.1


@contextmanager
def progress_line(label: str) -> Iterator[Tell]:
    """A line with ``label`` and what it is told last: text, a number, or what a harvest has done."""
    display = _display_of_notebook()
    if display is not None:
        line = _NotebookLine(display, label)
        try:
            yield line.tell
        finally:
            line.show()
    elif sys.stderr.isatty():
        with _terminal_line(label) as tell:
            yield tell
    else:
        yield lambda _: None


def _line(label: str, told: object) -> str:
    return visible(f"{label}  {told:,}" if isinstance(told, int) else f"{label}  {told}")


@contextmanager
def _terminal_line(label: str) -> Iterator[Tell]:
    """A spinner on standard error, which is gone in the end.

    Rich is imported here, and only for somebody: it takes longer than most commands do.
    """
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(visible(label), total=None)
        yield lambda told: progress.update(task, description=_line(label, told))


def _display_of_notebook() -> Any:
    """``IPython.display.display`` where this process is the kernel of a notebook, else None; in one IPython is loaded already."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return None if getattr(shell, "kernel", None) is None else import_module("IPython.display").display


class _NotebookLine:
    """An output of the cell that is changed in place, and stays: a few times a second at most, for each change is a message."""

    def __init__(self, display: Any, label: str) -> None:
        self._label, self._told = label, ""
        self._began = self._shown = clock.monotonic()
        self._handle = display({"text/plain": visible(label)}, raw=True, display_id=True)

    def tell(self, told: object) -> None:
        """Take note of how far the work is, and show it where that was some time ago."""
        self._told = _line("", told)
        if clock.monotonic() - self._shown >= _SECONDS_APART:
            self.show()

    def show(self) -> None:
        """Show what was told last, and how long it has taken so far."""
        self._shown = clock.monotonic()
        text = f"{visible(self._label)}{self._told}  {self._shown - self._began:.1f} s"
        self._handle.update({"text/plain": text}, raw=True)
