"""Two buckets to try things out with: `photos`, a versioned one with some history, and `lake`, an empty one for a catalog."""

from __future__ import annotations

from collections.abc import Mapping

from .clients import client

PHOTOS, LAKE = "photos", "lake"

_PART = 5 << 20  # the least that S3 takes for a part which is not the last
_OBJECTS = {
    "2025/lisbon/tram.jpg": b"a tram",
    "2025/lisbon/tower.jpg": b"a tower",
    "2026/oslo/fjord with snow.jpg": b"a fjord",
    "2026/oslo/opera.jpg": b"an opera",
    "index.html": b"<h1>Photos</h1>",
}


def seed(options: Mapping[str, str]) -> None:
    """Make both buckets, which must not exist; `photos` gets an object with an older version, a deleted one and one of two parts."""
    s3 = client(options)
    try:
        for bucket in (PHOTOS, LAKE):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_versioning(Bucket=PHOTOS, VersioningConfiguration={"Status": "Enabled"})
        for key, body in _OBJECTS.items():
            s3.put_object(Bucket=PHOTOS, Key=key, Body=body)
        s3.put_object(Bucket=PHOTOS, Key="index.html", Body=b"<h1>Photos of two journeys</h1>")
        s3.delete_object(Bucket=PHOTOS, Key="2025/lisbon/tower.jpg")

        film = {"Bucket": PHOTOS, "Key": "2026/oslo/film.mp4"}
        upload = {**film, "UploadId": s3.create_multipart_upload(**film)["UploadId"]}
        parts = [
            {"PartNumber": number, "ETag": s3.upload_part(**upload, PartNumber=number, Body=body)["ETag"]}
            for number, body in enumerate((bytes(_PART), b"the end"), start=1)
        ]
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    finally:
        s3.close()
