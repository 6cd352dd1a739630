"""``.proto`` files of users, compiled by whichever compiler there is."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from ..errors import IncompatibleTable, InvalidOption
from ..format.compiled import options_set

_HOW = "protoc --include_imports --descriptor_set_out=FILE.binpb"


def descriptors_of(file: Path, proto_paths: Sequence[Path]) -> bytes:
    """The set of descriptors that a file is, or that a ``.proto`` is compiled to.

    What that imports is looked for beside it and in ``proto_paths``; the options of tables need not be there. ``InvalidOption`` where the
    file cannot be read or there is no compiler, ``IncompatibleTable`` with what the compiler says where it does not compile.
    """
    try:
        given = file.read_bytes()
    except OSError as error:
        raise InvalidOption(
            f"The file {str(file)!r} cannot be read: {error.strerror}.", next_step="Give a .proto, or what one was compiled to."
        ) from None
    return _compiled(file, proto_paths) if file.suffix == ".proto" else given


def _compiled(file: Path, proto_paths: Sequence[Path]) -> bytes:
    with TemporaryDirectory() as folder:
        options, out = Path(folder, "options.binpb"), Path(folder, "out.binpb")
        options.write_bytes(options_set())
        paths = [f"--proto_path={path.resolve()}" for path in dict.fromkeys([*proto_paths, file.parent])]
        command = [*_compiler(file), *paths, f"--descriptor_set_in={options}", "--include_imports", f"--descriptor_set_out={out}"]
        done = subprocess.run([*command, str(file.resolve())], capture_output=True, text=True, check=False)
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).split()) or f"the compiler ended with {done.returncode}"
            raise IncompatibleTable(
                f"{file} does not compile: {said}", next_step="Mend it, or give --proto-path for what it imports."
            )
        return out.read_bytes()


def _compiler(file: Path) -> list[str]:
    found = shutil.which("protoc")
    if found is not None:
        return [found]
    if find_spec("grpc_tools") is not None:
        return [sys.executable, "-m", "grpc_tools.protoc"]
    raise InvalidOption(
        f"There is no compiler for {str(file)!r}: no protoc on the PATH, and no grpcio-tools.",
        next_step=f"pip install grpcio-tools, or compile it elsewhere and register what comes of it: {_HOW} {file.name}.",
    )
