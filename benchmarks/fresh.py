"""Functions in a process of their own: nothing imported, cached or allocated before.

``python -m benchmarks.fresh MODULE FUNCTION JSON`` calls the function with the JSON object as keyword arguments and prints what it
returns as JSON. This module itself imports nothing but the standard library.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_MARK = "result: "


class FreshProcessFailed(Exception):
    """The process ended with an error, which the message shows."""


def run_fresh(
    module: str, function: str, *, cores: int | None = None, packages: Path | None = None, **arguments: Any
) -> dict[str, Any]:
    """What ``benchmarks.<module>.<function>(**arguments)`` returns in a new process, which may use so many ``cores`` only.

    It finds what is installed in the folder ``packages`` before what the environment has.
    """
    command = [sys.executable, "-m", "benchmarks.fresh", module, function, json.dumps(arguments), str(cores or 0)]
    paths = [*([str(packages)] if packages else []), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise FreshProcessFailed(f"{module}.{function} ended with {done.returncode}:\n{done.stderr.strip()}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1].removeprefix(_MARK))
    return result


def _limit_cores(cores: int) -> None:
    """Bind the process to its first cores, and have Arrow use as many threads."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    import pyarrow as pa

    pa.set_cpu_count(cores)
    pa.set_io_thread_count(cores)


def _main(module: str, function: str, arguments: str, cores: str) -> None:
    if int(cores):
        _limit_cores(int(cores))
    result = getattr(importlib.import_module(f"benchmarks.{module}"), function)(**json.loads(arguments))
    print(_MARK + json.dumps(result), flush=True)
    os._exit(0)  # libraries with threads of their own sometimes abort while the interpreter is torn down, which nobody measures


if __name__ == "__main__":
    _main(*sys.argv[1:])
