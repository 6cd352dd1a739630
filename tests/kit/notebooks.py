"""Notebooks, run by a kernel that is this interpreter, whatever Jupyter the user has, and that is gone afterwards with all it started."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from traitlets.config import Config

_MARK = "BUCKETCATALOG_TEST_NOTEBOOK"


class Kernels(AsyncKernelManager):
    """Starts the interpreter that runs the tests, whatever kernels are installed."""

    @property
    def kernel_spec(self) -> KernelSpec:
        command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=command, display_name="here", language="python")


def notebook_of(*cells: str) -> nbformat.NotebookNode:
    """A notebook of these cells of code."""
    return new_notebook(cells=[new_code_cell(cell) for cell in cells])


def run(notebook: nbformat.NotebookNode, folder: Path, seconds: int = 60) -> nbformat.NotebookNode:
    """Execute a notebook in the folder ``work`` below this one, which is empty, and with ``tmpdir`` for temporary files.

    ``CellExecutionError`` says which cell fails, and how.
    """
    work, mark = folder / "work", str(folder)
    own = {name: str(folder / name.lower()) for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "MPLCONFIGDIR", "TMPDIR")}
    for each in (work, *own.values()):
        Path(each).mkdir()
    path = os.pathsep.join(entry for entry in sys.path if entry)
    environment = {**os.environ, **own, _MARK: mark, "PYTHONPATH": path}
    config = Config({"Kernels": {"connection_file": str(folder / "kernel.json")}})
    client = NotebookClient(notebook, kernel_manager_class=Kernels, timeout=seconds, config=config)
    try:
        return client.execute(env=environment, cwd=str(work))
    finally:
        left = _left_of(mark, seconds=20)
        for pid in left:
            os.kill(pid, 9)
        assert not left, "processes outlive the kernel"


def _left_of(mark: str, *, seconds: float) -> list[int]:
    """The processes that the kernel started and that are there still, once so much time has passed."""
    until = time.monotonic() + seconds
    while (left := _of(mark)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def _of(mark: str) -> list[int]:
    found, wanted = [], f"{_MARK}={mark}".encode()
    for variables in Path("/proc").glob("[0-9]*/environ"):
        try:
            if wanted in variables.read_bytes().split(b"\0"):
                found.append(int(variables.parent.name))
        except OSError:  # it has ended, or is another user's
            continue
    return found


def printed(notebook: nbformat.NotebookNode) -> str:
    """What the cells printed, in order."""
    return "".join(output.text for output in _outputs(notebook) if output.output_type == "stream" and output.name == "stdout")


def displayed(notebook: nbformat.NotebookNode, kind: str) -> list[Any]:
    """What the cells displayed of a media type, in order."""
    return [output.data[kind] for output in _outputs(notebook) if kind in output.get("data", {})]


def _outputs(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]
