"""The server of `make minio`: one that keeps running, and what is remembered of it.

    python -m minio.server start|stop|status

Tests and benchmarks take ``Server``, which ends with them. This here starts one that outlives the command, and remembers it in a file
of its folder, `build/minio`, beside its data.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from .process import REGION, STOP_SECONDS, Server, ServerError
from .seed import LAKE, PHOTOS, seed

__all__ = ["Server", "ServerError", "State", "main", "start", "status", "stop"]

FOLDER = Path(__file__).resolve().parent.parent / "build" / "minio"
_KILLED_SECONDS = 5.0


@dataclass(frozen=True)
class State:
    """What is remembered of a server that keeps running; whoever can read it is its root user."""

    pid: int
    endpoint_url: str
    access_key: str
    secret_key: str


def start(folder: Path) -> tuple[State, bool]:
    """Make sure that a server with the buckets of ``minio.seed`` runs in ``folder``; also says whether this call started it.

    A start that fails leaves neither a process nor files behind. Raises ``ServerError``.
    """
    with _alone(folder):
        known = status(folder)
        if known is not None:
            return known, False
        # What is left there belonged to a server that the machine ended, so no command removed it.
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        server = Server(folder, detached=True)
        try:
            server.start()
            state = State(server.pid, server.endpoint_url, server.access_key, server.secret_key)
            _remember(folder, state)
            seed(server.storage_options)
        except BaseException as error:
            server.stop()
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, BotoCoreError | ClientError):
                raise ServerError(f"MinIO started, but did not take the first objects: {error}") from error
            raise
        server.leave()
        return state, True


def status(folder: Path) -> State | None:
    """The server that runs in ``folder``, or None."""
    try:
        state = State(**json.loads((folder / "server.json").read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise ServerError(f"{folder / 'server.json'} cannot be read ({error}): end that server, and remove {folder}") from error
    return state if _is_server(state.pid, folder) else None


def stop(folder: Path) -> int | None:
    """End the server of ``folder`` and remove the folder; gives the id of the process, or None if none was running."""
    with _alone(folder):
        known = status(folder)
        if known is not None:
            _end(known.pid, folder)
        shutil.rmtree(folder, ignore_errors=True)
        return known.pid if known else None


def _end(pid: int, folder: Path) -> None:
    for number, seconds in ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, _KILLED_SECONDS)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        except PermissionError as error:
            raise ServerError(f"MinIO (process {pid}) belongs to another user, who has to stop it") from error
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not _is_server(pid, folder):
                return
            time.sleep(0.05)
    raise ServerError(f"MinIO (process {pid}) does not end: it may be waiting for a disk")


def _is_server(pid: int, folder: Path) -> bool:
    """Whether the process ``pid`` is the server of ``folder``, and no other that got the id of one that is gone."""
    if Path("/proc/self/cmdline").exists():
        try:
            arguments = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            return False
    else:
        done = subprocess.run(["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False)
        arguments = done.stdout
    return f" server {folder.absolute() / 'data'} --address " in arguments


def _remember(folder: Path, state: State) -> None:
    """Write the state so that nobody else can read it, at no moment."""
    with os.fdopen(os.open(folder / "server.json", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(state), file)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Of several commands about one folder, one runs and the others wait."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _explanation(state: State) -> str:
    return "\n".join(
        (
            f"export AWS_ENDPOINT_URL={state.endpoint_url}",
            f"export AWS_ACCESS_KEY_ID={state.access_key}",
            f"export AWS_SECRET_ACCESS_KEY={state.secret_key}",
            f"export AWS_REGION={REGION}",
            f"export AWS_DEFAULT_REGION={REGION}",
            "",
            f"bucketcatalog harvest s3://{PHOTOS} s3://{LAKE}/inventory",
        )
    )


def main(arguments: list[str], folder: Path = FOLDER) -> int:
    """Run the command and return its exit code: 0, or 1 with one line that says why."""
    parser = argparse.ArgumentParser(prog="python -m minio.server", description="A MinIO server that keeps running.")
    parser.add_argument("action", choices=["start", "stop", "status"])
    action = parser.parse_args(arguments).action
    try:
        if action == "stop":
            pid = stop(folder)
            _say("MinIO is not running" if pid is None else f"MinIO (process {pid}) is stopped, its data are removed")
            return 0
        left = (folder / "server.json").exists()
        state, started = start(folder) if action == "start" else (status(folder), False)
    except (ServerError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if state is None:
        _say("MinIO is not running: `make minio` starts it")
    else:
        runs = "runs" if started else "is running already"
        if started and left:
            print("the server before this one ended without being stopped: its data are removed", file=sys.stderr)
        _say(f"MinIO {runs} (process {state.pid}); `make minio-stop` ends it and removes its data\n\n{_explanation(state)}")
    return 0


def _say(text: str) -> None:
    """Print, also to a reader that goes away early, such as `head`."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
