-- How much each bucket has grown, hour by hour. An event does not say what it removes: a delete has no size, and a put does not
-- name the version that it replaces. So each is compared with the event of its key before it. A version lives from its put to the next
-- put of the key, or the first delete that is blind or names it; what is said of it later changes nothing that is live.
CREATE MATERIALIZED VIEW growth
COMMENT 'Objects and bytes that came and went, by bucket and hour, and how many there are after it; computed anew in each run.'
AS WITH
ordered AS (
  SELECT *, named_struct(
      'time', _commit_timestamp, 'writer', _writer, 'revision', _revision,
      'uuid', substring_index(_stamp, ':', 1), 'sequence', cast(substring_index(_stamp, ':', -1) AS long)) AS stamp
  FROM object_events WHERE _change_type <> 'purge' -- which is of what has ended already
),
of_versions AS (
  SELECT *, last_value(CASE WHEN _change_type = 'put' THEN _version END) IGNORE NULLS
      OVER (PARTITION BY owner, bucket_id, name ORDER BY stamp) AS version
  FROM ordered
),
of_latest AS (
  SELECT *, count_if(_change_type = 'delete') OVER (
      PARTITION BY owner, bucket_id, name, version ORDER BY stamp ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS ends
  FROM of_versions WHERE version = coalesce(_version, version)
),
sized AS (
  SELECT *, if(_change_type = 'delete', 0, 1) AS lives, if(_change_type = 'delete', 0, coalesce(content_length, 0)) AS size
  FROM of_latest WHERE ends = 0
),
compared AS (
  SELECT *, lag(lives, 1, 0) OVER of_key AS lived, lag(size, 1, 0) OVER of_key AS old_size
  FROM sized WINDOW of_key AS (PARTITION BY owner, bucket_id, name ORDER BY stamp)
),
hours AS (
  SELECT bucket_id, date_trunc('HOUR', _commit_timestamp) AS hour,
    count_if(_change_type = 'put') AS objects_put, -- each is a version, of a new name or of one that is there
    count_if(_change_type <> 'update' AND lived = 1) AS objects_ended, -- deleted, or replaced by a put
    sum(CASE _change_type WHEN 'update' THEN greatest(size - old_size, 0) ELSE size END) AS bytes_added,
    sum(CASE _change_type WHEN 'update' THEN greatest(old_size - size, 0) ELSE old_size END) AS bytes_removed
  FROM compared GROUP BY bucket_id, hour
)
SELECT bucket_id, b.name AS bucket, hour, objects_put, objects_ended, bytes_added, bytes_removed,
  sum(objects_put - objects_ended) OVER so_far AS objects, sum(bytes_added - bytes_removed) OVER so_far AS bytes
FROM hours LEFT JOIN named_buckets b ON b.id = bucket_id
WINDOW so_far AS (PARTITION BY bucket_id ORDER BY hour)
