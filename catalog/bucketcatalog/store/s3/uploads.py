"""Large objects, in parts: nothing shows them before the last step, and what was never completed can be found and thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from operator import methodcaller
from typing import Any

from botocore.exceptions import ClientError

from ...parallel import in_order
from ..base import UnfinishedPut
from .calls import Calls

THRESHOLD_BYTES = 32 << 20
PART_BYTES = 16 << 20


def upload(calls: Calls, key: str, name: str, data: bytes, settings: dict[str, Any]) -> None:
    """Put an object in parts, several at a time. A part may be tried again by itself; the last step, which shows the object, may not.

    What stays of an upload that fails is left to ``unfinished``: that its last step was not carried out is never certain.
    """
    whole = {"Bucket": calls.bucket, "Key": key}
    started = calls.repeated("upload", name, lambda c: c.create_multipart_upload(**whole, ChecksumAlgorithm="CRC32", **settings))
    whole["UploadId"] = started["UploadId"]
    view = memoryview(data)

    def send(number: int) -> dict[str, Any]:
        part = bytes(view[(number - 1) * PART_BYTES : number * PART_BYTES])
        sent = calls.repeated(
            "upload", name, lambda c: c.upload_part(**whole, PartNumber=number, Body=part, ChecksumAlgorithm="CRC32")
        )
        return {"PartNumber": number, **{key: sent[key] for key in ("ETag", "ChecksumCRC32") if key in sent}}

    numbers = range(1, -(-len(data) // PART_BYTES) + 1)
    parts = list(in_order(send, numbers, threads=min(4, calls.options.max_concurrency)))
    calls.put(name, lambda c: c.complete_multipart_upload(**whole, MultipartUpload={"Parts": parts}))


def unfinished(calls: Calls, root: str) -> Iterator[UnfinishedPut]:
    """The uploads below ``root`` that were neither completed nor thrown away.

    The whole bucket is asked for them: some servers list uploads by the exact name or not at all where a prefix is given.
    """
    markers: dict[str, str] = {}
    while True:
        request = methodcaller("list_multipart_uploads", Bucket=calls.bucket, **markers)
        page = calls.listed("list uploads of", "", request, "NextKeyMarker")
        for found in page.get("Uploads", ()):
            if found["Key"].startswith(root):
                begun = int(datetime.fromisoformat(found["Initiated"]).timestamp() * 1_000_000)
                yield UnfinishedPut(found["Key"][len(root) :], begun, found["UploadId"])
        if not page.get("IsTruncated"):
            return
        markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page.get("NextUploadIdMarker", "")}


def discard(calls: Calls, key: str, put: UnfinishedPut) -> None:
    """Throw the parts of an upload away, if there are any."""

    def request(client: Any) -> None:
        try:
            client.abort_multipart_upload(Bucket=calls.bucket, Key=key, UploadId=put.token)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") != "NoSuchUpload":
                raise

    calls.repeated("discard", put.name, request)
