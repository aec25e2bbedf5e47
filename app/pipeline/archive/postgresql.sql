-- The archive's statements for PostgreSQL. The three files have the same statements in the same order.

-- name: identity
-- What tells this database from others.
SELECT concat('postgresql ', system_identifier, ' ', current_database()) AS identity FROM pg_control_system()

-- name: clock
SELECT coalesce(CAST(:now AS timestamptz), now()) AS now

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

-- part: in_the_lake
-- What a batch holds, by id and instant in microseconds since 1970. The arrays are queries of their own, so that nobody knows
-- beforehand how long they are: where `work_mem` is small, they would be looked through for each row.
SELECT k.id, TIMESTAMPTZ 'epoch' + k.instant * INTERVAL '1 microsecond'
    FROM unnest(
        (SELECT CAST(string_to_array(:ids, ' ') AS bigint[])), (SELECT CAST(string_to_array(:instants, ' ') AS bigint[]))
    ) AS k (id, instant)

-- name: delete_history
-- Rows of a range of ids that are in the lake: one that has changed meanwhile stays. IS TRUE has them looked up in a table of
-- hashes, where a join would look for each row by itself.
DELETE FROM mq_task_history AS f
WHERE f.id BETWEEN :low AND :high AND ((f.id, f.finished_at) IN ({in_the_lake})) IS TRUE
    AND f.status IN ('done', 'expired', 'cancelled')

-- name: delete_attempts
-- The same for attempts.
DELETE FROM mq_task_attempts AS f
WHERE f.id BETWEEN :low AND :high AND ((f.id, f.finished_at) IN ({in_the_lake})) IS TRUE

-- name: delete_dlq
-- The same for dead letters.
DELETE FROM mq_task_dlq AS f
WHERE f.id BETWEEN :low AND :high AND ((f.id, f.failed_at) IN ({in_the_lake})) IS TRUE
