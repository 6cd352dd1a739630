"""The server that the lane relies on: what it keeps, how it ends, and what it says when it cannot start."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import stat
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from botocore.exceptions import BotoCoreError, ClientError, SSLError

from minio import process
from minio.clients import client
from minio.process import PortTaken, Server, ServerError

ROOT = Path(process.__file__).resolve().parent.parent


@pytest.fixture
def own() -> Iterator[Server]:
    """A server that the test may end."""
    with Server() as running:
        yield running


def put(server: Server, key: str, body: bytes) -> None:
    s3 = client(server.storage_options, ca_file=server.ca_file)
    try:
        if not s3.list_buckets()["Buckets"]:
            s3.create_bucket(Bucket="some")
        s3.put_object(Bucket="some", Key=key, Body=body)
    finally:
        s3.close()


def get(server: Server, key: str) -> bytes:
    s3 = client(server.storage_options, ca_file=server.ca_file)
    try:
        with s3.get_object(Bucket="some", Key=key)["Body"] as body:
            return bytes(body.read())
    finally:
        s3.close()


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_block_leaves_neither_process_nor_files_behind() -> None:
    with Server() as server:
        put(server, "x", b"1")
        pid, folder = server.pid, server.folder
        assert server.running
        assert any((server.data / "some").iterdir())
    assert not exists(pid)
    assert not folder.exists()
    assert not server.running
    with pytest.raises(ServerError, match="not running"):
        _ = server.pid


def test_an_ended_server_has_its_data_and_address_when_it_starts_again(own: Server) -> None:
    address, credentials = own.endpoint_url, (own.access_key, own.secret_key)
    for number, end in enumerate((own.kill, own.stop, lambda: os.kill(own.pid, signal.SIGKILL))):
        put(own, str(number), b"kept")
        pid = own.pid
        end()
        own.restart()
        assert own.pid != pid
        assert [get(own, str(earlier)) for earlier in range(number + 1)] == [b"kept"] * (number + 1)
    assert (own.endpoint_url, (own.access_key, own.secret_key)) == (address, credentials)


def test_a_killed_server_answers_nobody(own: Server) -> None:
    put(own, "x", b"1")
    own.kill()
    with pytest.raises(BotoCoreError):
        get(own, "x")


def test_starting_a_running_server_changes_nothing(own: Server) -> None:
    pid = own.pid
    assert own.start().pid == pid


def test_a_folder_of_ones_own_stays(tmp_path: Path) -> None:
    with Server(tmp_path / "server") as server:
        put(server, "x", b"1")
    assert (tmp_path / "server" / "data" / "some").is_dir()


def test_two_servers_share_nothing(own: Server) -> None:
    with Server() as other:
        put(own, "x", b"own")
        put(other, "x", b"other")
        assert (get(own, "x"), get(other, "x")) == (b"own", b"other")
        own.kill()
        assert get(other, "x") == b"other"
        foreign = client(other.storage_options | {"secret": own.secret_key})
        with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
            foreign.list_buckets()
        foreign.close()


@pytest.mark.parametrize("sse", ["AES256", "aws:kms"])
def test_objects_can_be_encrypted(own: Server, sse: str) -> None:
    put(own, "plain", b"1")
    s3 = client(own.storage_options)
    assert s3.put_object(Bucket="some", Key="x", Body=b"secret", ServerSideEncryption=sse)["ServerSideEncryption"] == sse
    s3.close()
    own.restart()
    assert get(own, "x") == b"secret"


def test_settings_of_the_environment_do_not_reach_it(monkeypatch: pytest.MonkeyPatch) -> None:
    nowhere = "http://127.0.0.1:9"
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, nowhere)
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("MINIO_ROOT_USER", "x")  # shorter than MinIO takes it
    monkeypatch.setenv("MINIO_VOLUMES", "/nowhere")
    with Server() as server:
        put(server, "x", b"1")
        assert get(server, "x") == b"1"


def test_tls_is_verified_against_its_certificate_alone() -> None:
    with Server(tls=True) as server:
        put(server, "x", b"1")
        assert get(server, "x") == b"1"
        stranger = client(server.storage_options)
        with pytest.raises(SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            stranger.list_buckets()
        stranger.close()
        # What Python 3.13 asks of certificates by itself.
        strict = ssl.create_default_context(cafile=str(server.ca_file))
        strict.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
        handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=strict))
        for host in ("127.0.0.1", "localhost"):
            url = server.endpoint_url.replace("127.0.0.1", host) + "/minio/health/live"
            with urllib.request.build_opener(*handlers).open(url, timeout=10) as response:
                assert response.status == 200


def test_what_ends_the_tests_ends_the_server(own: Server) -> None:
    assert os.getpgid(own.pid) == os.getpgrp()


def test_a_server_that_does_not_end_is_killed(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "STOP_SECONDS", 0.2)
    pid = own.pid
    os.kill(pid, signal.SIGSTOP)
    own.stop()
    assert not exists(pid)


def test_a_port_that_was_taken_in_between_is_left_to_the_other(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = int(own.endpoint_url.rsplit(":", 1)[1]), process.free_port()
    ports = [taken, taken, free]
    monkeypatch.setattr(process, "free_port", lambda: ports.pop(0))
    put(own, "x", b"own")
    with Server() as other:
        assert other.endpoint_url.endswith(f":{free}")
        put(other, "x", b"other")
    assert get(own, "x") == b"own"


def test_a_server_that_finds_no_port_says_so(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = int(own.endpoint_url.rsplit(":", 1)[1])
    monkeypatch.setattr(process, "free_port", lambda: taken)
    other = Server()
    with pytest.raises(PortTaken, match="port is already in use"):
        other.start()
    other.close()


def test_a_free_port_can_be_bound_and_is_given_out_once() -> None:
    ports = [process.free_port() for _ in range(50)]
    assert len(set(ports)) == len(ports)
    socket.create_server(("127.0.0.1", ports[0])).close()


def test_a_start_that_cannot_succeed_gives_the_servers_reason(tmp_path: Path) -> None:
    server = Server(tmp_path)
    server.access_key = "x"
    with pytest.raises(ServerError, match=r"MinIO ended with 1: .*credentials"):
        server.start()
    assert not server.running


def test_a_server_that_is_late_is_ended(tmp_path: Path) -> None:
    server = Server(tmp_path, ready_seconds=0)
    with pytest.raises(ServerError, match="not ready after 0 s"):
        server.start()
    assert not server.running


def test_without_the_binary_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folders = []
    with pytest.raises(ServerError, match="make minio-server"), Server() as server:
        folders.append(server.folder)
    assert folders == []


def test_unfinished_uploads_are_listed_as_the_readme_says(own: Server) -> None:
    def listed(prefix: str) -> list[str]:
        return [upload["Key"] for upload in s3.list_multipart_uploads(Bucket="some", Prefix=prefix).get("Uploads", [])]

    s3 = client(own.storage_options)
    s3.create_bucket(Bucket="some")
    for key in ("a/x", "b"):
        s3.create_multipart_upload(Bucket="some", Key=key)
    assert [listed(prefix) for prefix in ("", "a/x", "a/", "a")] == [["a/x", "b"], ["a/x"], [], []]
    own.restart()
    assert [listed(prefix) for prefix in ("", "a/x")] == [[], ["a/x"]]
    s3.close()


def test_an_object_hides_those_below_it_as_the_readme_says(own: Server) -> None:
    def listed() -> list[str]:
        return [found["Key"] for found in s3.list_objects_v2(Bucket="some").get("Contents", [])]

    put(own, "a/x", b"below")
    s3 = client(own.storage_options)
    assert listed() == ["a/x"]
    put(own, "a", b"above")
    assert listed() == ["a"]
    assert get(own, "a/x") == b"below"
    s3.close()


class Commands:
    """`python -m minio.server` in a folder of its own, each time in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = dict(os.environ)

    def run(self, action: str) -> tuple[int, str, str]:
        """The exit code, and what went to stdout and to stderr."""
        code = "import sys; from pathlib import Path; from minio.server import main; sys.exit(main([sys.argv[1]], Path(sys.argv[2])))"
        command = [sys.executable, "-W", "error", "-c", code, action, str(self.folder)]
        done = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        return done.returncode, done.stdout, done.stderr

    @property
    def state(self) -> dict[str, str]:
        known: dict[str, str] = json.loads((self.folder / "server.json").read_text())
        return known

    @property
    def pid(self) -> int:
        return int(self.state["pid"])


@pytest.fixture
def commands(tmp_path: Path) -> Iterator[Commands]:
    given = Commands(tmp_path / "build" / "minio")
    yield given
    given.environment = dict(os.environ)
    given.run("stop")


def wait_for_end(pid: int) -> None:
    """Wait until the process does nothing any more; it is nobody's child here, so where no init looks after it, its id stays."""
    deadline = time.monotonic() + 10
    while exists(pid):
        with suppress(OSError):
            if "State:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_server_outlives_the_command_that_started_it(commands: Commands) -> None:
    code, out, err = commands.run("start")
    assert (code, err) == (0, "")
    exported = dict(re.findall(r"^export (\w+)=(\S+)$", out, re.MULTILINE))
    assert sorted(exported) == [
        "AWS_ACCESS_KEY_ID",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
        "AWS_REGION",
        "AWS_SECRET_ACCESS_KEY",
    ]
    assert out.splitlines()[-1] == "bucketcatalog harvest s3://photos s3://lake/inventory"
    assert stat.S_IMODE((commands.folder / "server.json").stat().st_mode) == 0o600
    assert os.getsid(commands.pid) == commands.pid

    options = {
        "endpoint_url": exported["AWS_ENDPOINT_URL"],
        "key": exported["AWS_ACCESS_KEY_ID"],
        "secret": exported["AWS_SECRET_ACCESS_KEY"],
        "region": exported["AWS_REGION"],
    }
    s3 = client(options)
    history = s3.list_object_versions(Bucket="photos")
    versions = [version["Key"] for version in history["Versions"]]
    assert versions.count("index.html") == 2
    assert [marker["Key"] for marker in history["DeleteMarkers"]] == ["2025/lisbon/tower.jpg"]
    assert s3.head_object(Bucket="photos", Key="2026/oslo/film.mp4")["ETag"].endswith('-2"')
    assert s3.list_objects_v2(Bucket="lake")["KeyCount"] == 0
    s3.close()

    again = commands.run("start")
    assert again[0] == 0
    assert again[1].startswith("MinIO is running already")
    assert again[1].splitlines()[1:] == out.splitlines()[1:]
    assert commands.run("status") == again


def test_a_reader_that_goes_away_early_is_no_error(commands: Commands) -> None:
    code = "import sys; from pathlib import Path; from minio.server import main; sys.exit(main(['status'], Path(sys.argv[1])))"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(commands.folder)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as started:
        assert started.stdout is not None
        started.stdout.close()
        assert started.stderr is not None
        assert started.stderr.read() == b""
        assert started.wait(timeout=60) == 0


def test_stop_ends_that_server_and_removes_what_it_had(commands: Commands, own: Server) -> None:
    commands.run("start")
    pid = commands.pid
    code, out, _ = commands.run("stop")
    assert (code, out) == (0, f"MinIO (process {pid}) is stopped, its data are removed\n")
    wait_for_end(pid)
    assert not commands.folder.exists()
    assert own.running

    assert commands.run("stop") == (0, "MinIO is not running\n", "")
    assert commands.run("status")[1].startswith("MinIO is not running")


def test_a_process_that_got_the_id_of_an_ended_server_is_not_touched(commands: Commands) -> None:
    commands.run("start")
    state, pid = commands.state, commands.pid
    os.kill(pid, signal.SIGKILL)
    wait_for_end(pid)
    with subprocess.Popen(["sleep", "60"]) as bystander:
        (commands.folder / "server.json").write_text(json.dumps({**state, "pid": bystander.pid}))
        assert commands.run("status")[1].startswith("MinIO is not running")
        assert commands.run("stop") == (0, "MinIO is not running\n", "")
        assert bystander.poll() is None
        bystander.kill()


def test_after_a_crash_a_start_begins_afresh(commands: Commands) -> None:
    commands.run("start")
    before = commands.state
    os.kill(commands.pid, signal.SIGKILL)
    wait_for_end(commands.pid)

    code, out, err = commands.run("start")

    assert code == 0
    assert out.startswith("MinIO runs")
    assert err == "the server before this one ended without being stopped: its data are removed\n"
    assert commands.state["secret_key"] != before["secret_key"]


def test_starts_at_the_same_time_make_one_server(commands: Commands) -> None:
    code = "import sys; from pathlib import Path; from minio.server import main; sys.exit(main(['start'], Path(sys.argv[1])))"
    command = [sys.executable, "-c", code, str(commands.folder)]
    both = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate(timeout=60)[0].splitlines() for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted(lines[0].split(" (")[0] for lines in told) == ["MinIO is running already", "MinIO runs"]
    assert told[0][1:] == told[1][1:]


def test_a_start_that_fails_says_why_in_one_line_and_leaves_nothing(commands: Commands, tmp_path: Path) -> None:
    commands.environment["XDG_CACHE_HOME"] = str(tmp_path / "empty")
    code, out, err = commands.run("start")
    assert (code, out) == (1, "")
    assert re.fullmatch(r"\S+ is missing: run `make minio-server`\n", err)
    assert not commands.folder.exists()


def test_a_state_that_cannot_be_read_is_an_error_that_names_it(commands: Commands) -> None:
    commands.folder.mkdir(parents=True)
    (commands.folder / "server.json").write_text("{}")
    for action in ("start", "stop", "status"):
        code, out, err = commands.run(action)
        assert (code, out) == (1, "")
        assert err.count("\n") == 1
        assert "server.json cannot be read" in err
    (commands.folder / "server.json").unlink()
