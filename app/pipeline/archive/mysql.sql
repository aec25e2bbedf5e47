-- The archive's statements for MySQL. The three files have the same statements in the same order.

-- name: identity
-- What tells this database from others.
SELECT concat('mysql ', @@server_uuid, ' ', database()) AS identity

-- name: clock
SELECT CAST(coalesce(:now, utc_timestamp(6)) AS DATETIME(6)) AS now

-- name: upcoming_history
-- The next finished tasks in the order of their ids: up to which id, and how many of them are old enough.
SELECT max(id) AS high, count(CASE WHEN finished_at < :cut_off THEN 1 END) AS old_rows
FROM (SELECT id, finished_at FROM mq_task_history WHERE id > :low ORDER BY id LIMIT :limit) AS upcoming

-- name: upcoming_attempts
-- The next attempts in the order of their ids: up to which id, and how many of them are old enough.
SELECT max(id) AS high, count(CASE WHEN finished_at < :cut_off THEN 1 END) AS old_rows
FROM (SELECT id, finished_at FROM mq_task_attempts WHERE id > :low ORDER BY id LIMIT :limit) AS upcoming

-- name: upcoming_dlq
-- The next dead letters in the order of their ids: up to which id, and how many of them are old enough.
SELECT max(id) AS high, count(CASE WHEN failed_at < :cut_off THEN 1 END) AS old_rows
FROM (SELECT id, failed_at FROM mq_task_dlq WHERE id > :low ORDER BY id LIMIT :limit) AS upcoming

-- name: count_attempts
-- How many attempts would go: their tasks are neither live nor kept beyond the run.
SELECT count(*) AS attempts
FROM mq_task_attempts AS a
WHERE a.id > :low AND a.id <= :high AND a.finished_at < :cut_off
    AND NOT EXISTS (SELECT 1 FROM mq_tasks AS t WHERE t.tenant_id = a.tenant_id AND t.id = a.task_id)
    AND NOT EXISTS (
        SELECT 1 FROM mq_task_history AS f
        WHERE f.tenant_id = a.tenant_id AND f.task_id = a.task_id AND f.finished_at >= :finished_from
    )
    AND NOT EXISTS (
        SELECT 1 FROM mq_task_dlq AS d
        WHERE d.tenant_id = a.tenant_id AND d.task_id = a.task_id AND d.failed_at >= :failed_from
    )

-- name: short_lived_history
-- Queues whose finished tasks are dropped before they are old enough.
SELECT tenant_id, name, history_days AS days FROM mq_queues
WHERE history_days <= :days
ORDER BY tenant_id, name

-- name: short_lived_dead_letters
SELECT tenant_id, name, dlq_days AS days FROM mq_queues
WHERE dlq_days <= :days
ORDER BY tenant_id, name

-- name: delete_history
-- Rows that are in the lake, by id and instant in microseconds since 1970: one that has changed meanwhile stays.
DELETE f FROM JSON_TABLE(:keys, '$[*]' COLUMNS (id BIGINT PATH '$[0]', instant BIGINT PATH '$[1]')) AS k
STRAIGHT_JOIN mq_task_history AS f ON f.id = k.id
WHERE f.finished_at = timestampadd(MICROSECOND, k.instant, TIMESTAMP '1970-01-01 00:00:00')
    AND f.status IN ('done', 'expired', 'cancelled')

-- name: delete_attempts
-- The same for attempts.
DELETE f FROM JSON_TABLE(:keys, '$[*]' COLUMNS (id BIGINT PATH '$[0]', instant BIGINT PATH '$[1]')) AS k
STRAIGHT_JOIN mq_task_attempts AS f ON f.id = k.id
WHERE f.finished_at = timestampadd(MICROSECOND, k.instant, TIMESTAMP '1970-01-01 00:00:00')

-- name: delete_dlq
-- The same for dead letters.
DELETE f FROM JSON_TABLE(:keys, '$[*]' COLUMNS (id BIGINT PATH '$[0]', instant BIGINT PATH '$[1]')) AS k
STRAIGHT_JOIN mq_task_dlq AS f ON f.id = k.id
WHERE f.failed_at = timestampadd(MICROSECOND, k.instant, TIMESTAMP '1970-01-01 00:00:00')
