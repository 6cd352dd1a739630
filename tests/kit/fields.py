"""The fields of a table of rows that engines read by themselves: one of each kind that they show as it is stored, or nearly so."""

from __future__ import annotations

SYMBOLS = "enum Mode { MODE_UNSPECIFIED = 0; MODE_FAST = 1; MODE_SLOW = -2; }"
AT = "(column) = {type: LOGICAL_TYPE_TIMESTAMP_MICROS"
FIELDS = f"""
  int64 k = 1;
  optional string text = 2;
  string plain = 3;
  optional int32 number = 4;
  optional uint32 small = 5;
  optional uint64 large = 6;
  optional bytes raw = 7;
  optional bytes uid = 8 [(column) = {{type: LOGICAL_TYPE_UUID}}];
  optional int64 at = 9 [{AT}}}];
  optional bool flag = 10;
  optional Mode mode = 11;
  Mode plain_mode = 12;
  optional double ratio = 13;
  repeated string words = 14;
  map<string, int64> counts = 15;
  optional int64 created = 16 [{AT} default: COLUMN_DEFAULT_CREATED}}];
  optional int64 modified = 17 [{AT} default: COLUMN_DEFAULT_MODIFIED}}];
"""
