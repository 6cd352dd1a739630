"""What a result depends on besides the code: the machine and the versions of what took part. No names of hosts, users or paths."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("boto3", "bucketcatalog", "deltalake", "duckdb", "numpy", "polars", "pyarrow", "pyiceberg", "pyspark", "protobuf")


def facts(directory: Path) -> dict[str, Any]:
    """The machine; ``directory`` is where the benchmarks write."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": f"{platform.system()} {platform.release()}",
        "file_system": file_system(directory),
    }


def versions() -> dict[str, str]:
    """Of Python and the packages."""
    return {"python": platform.python_version(), **{name: _version(name) for name in PACKAGES}}


def load() -> list[float]:
    """The load averages of 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def file_system(directory: Path) -> str:
    """The type of the file system that holds a directory."""
    found = subprocess.run(["stat", "-f", "-c", "%T", str(directory)], capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
