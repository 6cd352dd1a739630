"""Two systems' worth of tables that are as odd as a ``.proto`` allows, compiled in the tests."""

from __future__ import annotations

from typing import Any

from google.protobuf.descriptor import Descriptor

from .world import messages, proto

SOURCE = proto(
    """
    // Integer keys of every width, and a key that is not in the order of the fields.
    message Part {
      option (table) = {
        name: "odd.parts" key: "volume" key: "upload" key: "number"
        data_reference: "location"
        parent: { table: "odd.uploads" field: "upload" }
        sums: { name: "bytes" field: "size" group: "volume" }
        orders: { name: "by_size" fields: "size" }
        tombstone_retention_seconds: 60
      };
      uint32 number = 1;
      sint64 upload = 2;
      fixed32 volume = 200;
      optional uint64 size = 4;
      optional string location = 5;
      optional float ratio = 6;
      optional double exact = 7;
      optional sfixed32 small = 8;
    }
    message Upload {
      option (table) = { name: "odd.uploads" key: "number" id: "number" };
      fixed64 number = 1;
    }
    enum Mode { MODE_UNSPECIFIED = 0; MODE_FAST = 1; MODE_SLOW = -2; }
    message Acl {
      string grantee = 1;
      repeated string rights = 2;
      Mode mode = 3;
      optional int64 until = 4 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
      message Reason { string text = 1; bytes id = 2 [(column) = {type: LOGICAL_TYPE_UUID}]; }
      Reason reason = 5;
      map<string, Mode> modes = 6;
    }
    // Everything nested in everything, and fields without presence.
    message Thing {
      option (table) = { name: "odd.things" key: "when" key: "blob" id: "token" tombstones: TOMBSTONES_DROPPED };
      int64 when = 1 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
      bytes blob = 2;
      optional string token = 3;
      string text = 4;
      int32 count = 5;
      bool flag = 6;
      double weight = 7;
      bytes raw = 8;
      bytes uid = 9 [(column) = {type: LOGICAL_TYPE_UUID}];
      int64 seen = 10 [(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS}];
      Mode mode = 11;
      Acl acl = 12;
      repeated Acl acls = 13;
      map<string, Acl> by_name = 14;
      map<int64, string> by_number = 15;
      repeated Mode several = 16;
      repeated int64 numbers = 17;
      repeated bytes uids = 18 [(column) = {type: LOGICAL_TYPE_UUID}];
      optional string note = 19 [(column) = {sensitive: true max_bytes: 5}];
      repeated string labels = 20 [(column) = {max_bytes: 5}];
      optional string facts = 21 [(column) = {type: LOGICAL_TYPE_JSON}];
      optional string at = 22 [(column) = {type: LOGICAL_TYPE_CUT}];
      map<string, bytes> blobs = 23;
      map<bool, int32> flags = 24;
      repeated double ratios = 25;
    }
    // One column, which is the key.
    message Word {
      option (table) = { name: "odd.words" key: "word" };
      string word = 7;
    }
    message Helper { string not_a_table = 1; }
    """
)


def odd() -> dict[str, Descriptor]:
    return messages(SOURCE)


UID = "44444444-4444-4444-8444-444444444444"
ACL: dict[str, Any] = {
    "grantee": "ann",
    "rights": ["r", "w"],
    "mode": "MODE_SLOW",
    "until": 5,
    "reason": {"text": "why", "id": UID},
    "modes": {"x": "MODE_FAST"},
}
FULL: dict[str, Any] = {
    "when": 7,
    "blob": b"\x00\xff",
    "token": "t",
    "text": "é\x00",
    "count": -(2**31),
    "flag": True,
    "weight": 0.1,
    "raw": b"\x00",
    "uid": UID,
    "seen": 8,
    "mode": "MODE_FAST",
    "acl": ACL,
    "acls": [ACL, {}, {"grantee": "bob"}],
    "by_name": {"a": ACL, "b": {}},
    "by_number": {-1: "x", 2: ""},
    "several": ["MODE_FAST", "MODE_UNSPECIFIED", "MODE_SLOW"],
    "numbers": [2**63 - 1, -(2**63), 0],
    "uids": [UID, UID],
    "note": "12345",
    "labels": ["", "12345"],
    "facts": {"b": [1, None], "a": "é"},
    "at": "w@0:00000000000000000000000000000000",
    "blobs": {"k": b"\xff"},
    "flags": {True: 1, False: 0},
    "ratios": [0.5, -1.0],
}
