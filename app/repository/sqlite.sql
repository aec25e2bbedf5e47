-- SQLite. The statements stand in the same order in the file of every dialect.
-- `:moves` and the like are JSON arrays of objects; lists are JSON arrays too.
-- There is one writer at a time, so nothing needs locking.

-- part: state
t.seq, t.id, t.queue, t.type, t.status, t.attempts, t.max_attempts, t.available_at, t.expires_at, t.lease_owner,
    t.lease_token_hash, t.lease_until, t.leased_at, t.last_token_hash, t.last_token_fate, t.failed_token_hash, t.dedupe_key,
    t.dedupe_seconds, t.dedupe_until, t.tombstone_id, t.updated_at

-- part: described
queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size, priority, dedupe_key,
    dedupe_seconds, attempts, max_attempts, available_at, expires_at, timeout_seconds, first_leased_at, last_worker,
    last_token_hash, last_token_fate, failed_token_hash, last_error, last_error_at, created_at

-- part: live_task
t.seq, t.tenant_id, t.id, t.queue, t.topic, t.publish_id, t.type, t.payload, t.payload_is_json, t.content_type, t.meta,
    t.priority, t.dedupe_key, t.attempts, t.max_attempts, t.available_at, t.expires_at, t.timeout_seconds,
    t.last_error, t.last_error_at, t.created_at, t.updated_at, t.first_leased_at

-- part: finished_task
f.id AS row_id, f.tenant_id, f.task_id AS id, f.queue, f.topic, f.publish_id, f.type, f.payload, f.payload_is_json,
    f.content_type, f.meta, f.priority, f.dedupe_key, f.attempts, f.max_attempts, f.available_at, f.expires_at,
    f.timeout_seconds, f.last_worker AS lease_owner, f.last_error, f.last_error_at, f.created_at, f.first_leased_at

-- part: moves
(
    SELECT json_extract(value, '$.seq') AS seq, json_extract(value, '$.status') AS status,
        json_extract(value, '$.at') AS at, json_extract(value, '$.attempts') AS attempts,
        json_extract(value, '$.available_at') AS available_at, json_extract(value, '$.reason') AS reason,
        json_extract(value, '$.error') AS error, json_extract(value, '$.error_at') AS error_at,
        json_extract(value, '$.result') AS result, json_extract(value, '$.token_hash') AS token_hash,
        json_extract(value, '$.token_fate') AS token_fate, json_extract(value, '$.keep_until') AS keep_until,
        json_extract(value, '$.dedupe_until') AS dedupe_until
    FROM json_each(:moves)
) AS m

-- part: moved
t.queue, t.topic, t.publish_id, t.type, t.payload, t.payload_is_json, t.content_type, t.meta, t.size, t.priority,
    t.dedupe_key, t.dedupe_seconds, m.attempts, t.max_attempts, m.available_at, t.expires_at, t.timeout_seconds,
    t.first_leased_at, t.last_worker, m.token_hash, m.token_fate, t.failed_token_hash,
    coalesce(m.error, t.last_error), coalesce(m.error_at, t.last_error_at), t.created_at

-- part: letters
f.tenant_id = :tenant_id
    AND (:queue IS NULL OR f.queue = :queue)
    AND (:topic IS NULL OR f.topic = :topic)
    AND (:type IS NULL OR f.type = :type)
    AND (:reason_contains IS NULL OR instr(f.reason, :reason_contains) > 0)
    AND (:before IS NULL OR f.failed_at < :before)
    AND (:after IS NULL OR f.failed_at > :after)
    AND (:any_id OR f.task_id IN (SELECT value FROM json_each(:ids)))

-- name: find_id_holders
-- The live tasks that have one of these ids.
SELECT {state} FROM mq_tasks AS t
WHERE t.tenant_id = :tenant_id AND t.id IN (SELECT value FROM json_each(:ids))

-- name: find_key_holders
-- The tasks and tombstones that hold one of these dedupe keys.
SELECT {state}
FROM (
    SELECT json_extract(value, '$.queue') AS queue, json_extract(value, '$.dedupe_key') AS dedupe_key
    FROM json_each(:keys)
) AS k
-- CROSS JOIN keeps the order: the keys first.
CROSS JOIN mq_tasks AS t ON t.tenant_id = :tenant_id AND t.queue = k.queue AND t.dedupe_key = k.dedupe_key

-- name: insert_tasks
-- New tasks in input order; a taken id or dedupe key is an error.
INSERT INTO mq_tasks (
    tenant_id, id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size, priority,
    dedupe_key, dedupe_seconds, status, attempts, max_attempts, available_at, expires_at, timeout_seconds,
    created_at, updated_at
)
VALUES (
    :tenant_id, :id, :queue, :topic, :publish_id, :type, :payload, :payload_is_json, :content_type, :meta, :size,
    :priority, :dedupe_key, :dedupe_seconds, :status, 0, :max_attempts, :available_at, :expires_at, :timeout_seconds,
    :now, :now
)

-- name: probe_overdue
-- Whether time has changed anything in these queues that nobody has moved yet.
SELECT
    EXISTS (
        SELECT 1 FROM mq_tasks
        WHERE tenant_id = :tenant_id AND queue IN (SELECT value FROM json_each(:queues))
            AND status = 'leased' AND lease_until <= :now
    )
    OR EXISTS (
        SELECT 1 FROM mq_tasks
        WHERE tenant_id = :tenant_id AND queue IN (SELECT value FROM json_each(:queues))
            AND status = 'scheduled' AND available_at <= :now
    )
    OR EXISTS (
        SELECT 1 FROM mq_tasks
        WHERE tenant_id = :tenant_id AND queue IN (SELECT value FROM json_each(:queues))
            AND status IN ('scheduled', 'ready') AND expires_at <= :now
    ) AS overdue

-- name: lock_overdue
-- Tasks of these queues that time has changed, locked; those that somebody else is moving are left to them.
SELECT {state}
FROM mq_tasks AS t
JOIN (
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE tenant_id = :tenant_id AND queue IN (SELECT value FROM json_each(:queues))
            AND status = 'leased' AND lease_until <= :now
        LIMIT :limit
    )
    UNION
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE tenant_id = :tenant_id AND queue IN (SELECT value FROM json_each(:queues))
            AND status = 'scheduled' AND available_at <= :now
        LIMIT :limit
    )
    UNION
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE tenant_id = :tenant_id AND queue IN (SELECT value FROM json_each(:queues))
            AND status IN ('scheduled', 'ready') AND expires_at <= :now
        LIMIT :limit
    )
    LIMIT :limit
) AS overdue ON overdue.seq = t.seq

-- name: lock_finished_by_time
-- Tasks of the whole tenant that time may have finished, locked likewise.
SELECT {state}
FROM mq_tasks AS t
JOIN (
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE tenant_id = :tenant_id AND status = 'leased' AND lease_until <= :now LIMIT :limit
    )
    UNION
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE tenant_id = :tenant_id AND status IN ('scheduled', 'ready') AND expires_at <= :now LIMIT :limit
    )
) AS overdue ON overdue.seq = t.seq

-- name: lock_rows
-- These rows, locked in order.
SELECT {state} FROM mq_tasks AS t WHERE t.seq IN (SELECT value FROM json_each(:seqs)) ORDER BY t.seq

-- name: lock_tasks
-- The live tasks of these ids, locked in order.
SELECT {state} FROM mq_tasks AS t
WHERE t.tenant_id = :tenant_id AND t.id IN (SELECT value FROM json_each(:ids))
ORDER BY t.id

-- name: pick_queue
-- The first ready tasks of one queue.
SELECT t.seq, t.size
FROM mq_tasks AS t
WHERE t.tenant_id = :tenant_id AND t.queue = :queue AND t.status = 'ready'
    AND (t.expires_at IS NULL OR t.expires_at > :now)
    AND t.id NOT IN (SELECT value FROM json_each(:exclude_ids))
ORDER BY t.priority DESC, t.available_at, t.seq
LIMIT :limit

-- name: rank_lanes
-- The best of every lane, merged. Among equal priorities the queues take turns.
SELECT t.seq, t.size,
    row_number() OVER (PARTITION BY t.queue, t.priority ORDER BY t.available_at, t.seq) AS turn
FROM (
    SELECT json_extract(value, '$.queue') AS queue, json_extract(value, '$.type') AS type,
        json_extract(value, '$.place') AS place
    FROM json_each(:lanes)
) AS lanes
JOIN mq_tasks AS t ON t.seq IN (
    SELECT seq FROM (
        SELECT b.seq
        FROM mq_tasks AS b
        WHERE lanes.type IS NULL
            AND b.tenant_id = :tenant_id AND b.queue = lanes.queue AND b.status = 'ready'
            AND (b.expires_at IS NULL OR b.expires_at > :now)
            AND b.id NOT IN (SELECT value FROM json_each(:exclude_ids))
        ORDER BY b.priority DESC, b.available_at, b.seq
        LIMIT :limit
    )
    UNION ALL
    SELECT seq FROM (
        SELECT b.seq
        FROM mq_tasks AS b
        WHERE lanes.type = '' AND b.type = ''
            AND b.tenant_id = :tenant_id AND b.queue = lanes.queue AND b.status = 'ready'
            AND (b.expires_at IS NULL OR b.expires_at > :now)
            AND b.id NOT IN (SELECT value FROM json_each(:exclude_ids))
        ORDER BY b.priority DESC, b.available_at, b.seq
        LIMIT :limit
    )
    UNION ALL
    SELECT seq FROM (
        SELECT b.seq
        FROM mq_tasks AS b
        WHERE lanes.type <> '' AND b.type <> ''
            AND b.tenant_id = :tenant_id AND b.queue = lanes.queue AND b.status = 'ready' AND b.type = lanes.type
            AND (b.expires_at IS NULL OR b.expires_at > :now)
            AND b.id NOT IN (SELECT value FROM json_each(:exclude_ids))
        ORDER BY b.priority DESC, b.available_at, b.seq
        LIMIT :limit
    )
)
ORDER BY t.priority DESC, turn, lanes.place
LIMIT :limit

-- name: lease_many
UPDATE mq_tasks AS t
SET status = 'leased', attempts = t.attempts + 1, lease_owner = :worker_id, last_worker = :worker_id,
    lease_token_hash = n.token_hash, lease_until = :lease_until, leased_at = :now,
    first_leased_at = coalesce(t.first_leased_at, :now), last_token_hash = NULL, last_token_fate = NULL,
    updated_at = :now
FROM (
    SELECT json_extract(value, '$.seq') AS seq, json_extract(value, '$.token_hash') AS token_hash
    FROM json_each(:leases)
) AS n
WHERE t.seq = n.seq

-- name: read_leased
SELECT {live_task}, t.status, t.lease_owner, t.lease_until
FROM mq_tasks AS t
WHERE t.seq IN (SELECT value FROM json_each(:seqs))

-- name: next_available
-- When the next task of these lanes is due, or may come back because its lease ends.
SELECT min(next_at) AS next_at
FROM (
    SELECT (
        SELECT min(t.available_at)
        FROM mq_tasks AS t
        WHERE t.tenant_id = :tenant_id AND t.queue = l.queue AND t.status = 'scheduled'
            AND (t.expires_at IS NULL OR t.expires_at > t.available_at)
            AND (l.type IS NULL OR t.type = l.type)
    ) AS next_at
    FROM (
        SELECT json_extract(value, '$.queue') AS queue, json_extract(value, '$.type') AS type
        FROM json_each(:lanes)
    ) AS l
    UNION ALL
    SELECT (
        SELECT min(t.lease_until)
        FROM mq_tasks AS t
        WHERE t.tenant_id = :tenant_id AND t.queue = l.queue AND t.status = 'leased'
            AND (t.max_attempts = 0 OR t.attempts < t.max_attempts)
            AND (t.expires_at IS NULL OR t.expires_at > t.lease_until)
            AND (l.type IS NULL OR t.type = l.type)
    ) AS next_at
    FROM (
        SELECT json_extract(value, '$.queue') AS queue, json_extract(value, '$.type') AS type
        FROM json_each(:lanes)
    ) AS l
)

-- name: extend_many
-- The leases end that long from now.
UPDATE mq_tasks AS t SET lease_until = m.lease_until, updated_at = :now
FROM (
    SELECT json_extract(value, '$.seq') AS seq, json_extract(value, '$.lease_until') AS lease_until
    FROM json_each(:moves)
) AS m
WHERE t.seq = m.seq

-- name: return_many
-- Back to the queue, without a lease.
UPDATE mq_tasks AS t
SET status = m.status, attempts = m.attempts, available_at = m.available_at,
    lease_owner = NULL, lease_token_hash = NULL, lease_until = NULL, leased_at = NULL,
    last_token_hash = m.token_hash, last_token_fate = m.token_fate,
    last_error = coalesce(m.error, t.last_error), last_error_at = coalesce(m.error_at, t.last_error_at),
    updated_at = m.at
FROM {moves}
WHERE t.seq = m.seq

-- name: archive_many
-- Into the history; the live rows go in the same transaction.
INSERT INTO mq_task_history (tenant_id, task_id, {described}, status, result, finished_at, keep_until)
SELECT t.tenant_id, t.id, {moved}, m.status, m.result, m.at, m.keep_until
FROM {moves}
JOIN mq_tasks AS t ON t.seq = m.seq

-- name: bury_many
-- Into the dead letters; the live rows go in the same transaction.
INSERT INTO mq_task_dlq (tenant_id, task_id, {described}, reason, failed_at)
SELECT t.tenant_id, t.id, {moved}, m.reason, m.at
FROM {moves}
JOIN mq_tasks AS t ON t.seq = m.seq

-- name: entomb_many
-- A done task whose dedupe key is held on: only the key and the id stay.
UPDATE mq_tasks AS t
SET status = 'done', id = NULL, tombstone_id = t.id, dedupe_until = m.dedupe_until, payload = x'', meta = '{}',
    size = 0, lease_owner = NULL, lease_token_hash = NULL, lease_until = NULL, leased_at = NULL, updated_at = m.at
FROM {moves}
WHERE t.seq = m.seq

-- name: delete_many
DELETE FROM mq_tasks WHERE seq IN (SELECT value FROM json_each(:seqs))

-- name: insert_attempts
INSERT INTO mq_task_attempts (
    tenant_id, task_id, queue, type, attempt_no, worker_id, started_at, finished_at, success, reason
)
SELECT
    :tenant_id, a.task_id, a.queue, a.type, a.attempt_no, a.worker_id, a.started_at, a.finished_at, a.success, a.reason
FROM (
    SELECT json_extract(value, '$.task_id') AS task_id, json_extract(value, '$.queue') AS queue,
        json_extract(value, '$.type') AS type, json_extract(value, '$.attempt_no') AS attempt_no,
        json_extract(value, '$.worker_id') AS worker_id, json_extract(value, '$.started_at') AS started_at,
        json_extract(value, '$.finished_at') AS finished_at, json_extract(value, '$.success') AS success,
        json_extract(value, '$.reason') AS reason
    FROM json_each(:attempts)
) AS a

-- name: find_finished
-- How these tasks ended, as far as is known, and under which token.
SELECT task_id, queue, status, attempts, available_at, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_history
WHERE tenant_id = :tenant_id AND task_id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT task_id, queue, 'dead', attempts, available_at, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_dlq
WHERE tenant_id = :tenant_id AND task_id IN (SELECT value FROM json_each(:ids))

-- name: get_live
SELECT {live_task}, t.status, t.lease_owner, t.lease_until
FROM mq_tasks AS t
WHERE t.tenant_id = :tenant_id AND t.id = :id

-- name: get_finished
-- The task of that id that finished last.
SELECT {finished_task}, f.status, f.result, f.finished_at
FROM mq_task_history AS f
WHERE f.tenant_id = :tenant_id AND f.task_id = :id
UNION ALL
SELECT {finished_task}, 'dead', NULL, f.failed_at
FROM mq_task_dlq AS f
WHERE f.tenant_id = :tenant_id AND f.task_id = :id
ORDER BY finished_at DESC, row_id DESC
LIMIT 1

-- name: list_live
-- Live tasks in order of acceptance, each in the state that it has by now.
SELECT * FROM (
    SELECT {live_task},
        CASE WHEN t.lease_until > :now THEN t.lease_owner END AS lease_owner,
        CASE WHEN t.lease_until > :now THEN t.lease_until END AS lease_until,
        CASE
            WHEN t.lease_until > :now THEN 'leased'
            WHEN t.status = 'leased' AND t.max_attempts > 0 AND t.attempts >= t.max_attempts THEN 'dead'
            WHEN t.expires_at <= :now THEN 'expired'
            WHEN t.available_at <= :now THEN 'ready'
            ELSE 'scheduled'
        END AS status
    FROM mq_tasks AS t
    WHERE t.tenant_id = :tenant_id AND t.id IS NOT NULL AND t.seq > :after_seq
        AND (:queue IS NULL OR t.queue = :queue)
        AND (:topic IS NULL OR t.topic = :topic)
        AND (:type IS NULL OR t.type = :type)
) AS live
WHERE status IN ('scheduled', 'ready', 'leased') AND (:status IS NULL OR status = :status)
ORDER BY seq
LIMIT :limit

-- name: list_finished
SELECT {finished_task}, f.status, f.result, f.finished_at
FROM mq_task_history AS f
WHERE f.tenant_id = :tenant_id AND f.status = :status
    AND (:queue IS NULL OR f.queue = :queue)
    AND (:topic IS NULL OR f.topic = :topic)
    AND (:type IS NULL OR f.type = :type)
    AND (:after_at IS NULL OR (f.finished_at, f.id) < (:after_at, :after_id))
ORDER BY f.finished_at DESC, f.id DESC
LIMIT :limit

-- name: list_attempts
-- The attempts of one task, not those of an earlier one that had its id.
SELECT id, attempt_no, worker_id, started_at, finished_at, success, reason
FROM mq_task_attempts
WHERE tenant_id = :tenant_id AND task_id = :id AND started_at >= :created_at
    AND (started_at, id) > (:after_at, :after_id)
ORDER BY started_at, id
LIMIT :limit

-- name: edit_task
UPDATE mq_tasks
SET priority = coalesce(:priority, priority), available_at = :available_at, status = :status,
    max_attempts = coalesce(:max_attempts, max_attempts),
    expires_at = coalesce(:expires_at, expires_at), updated_at = :now
WHERE seq = :seq

-- name: list_dead_letters
SELECT {finished_task}, f.reason, f.failed_at
FROM mq_task_dlq AS f
WHERE {letters}
    AND (:after_at IS NULL OR (f.failed_at, f.id) < (:after_at, :after_id))
ORDER BY f.failed_at DESC, f.id DESC
LIMIT :limit

-- name: count_dead_letters
SELECT count(*) AS letters, coalesce(max(f.id), 0) AS last_id FROM mq_task_dlq AS f WHERE {letters}

-- name: lock_dead_letter
-- The newest dead letter of a task, locked.
SELECT f.id AS row_id, f.task_id, f.queue, f.dedupe_key, f.attempts, f.max_attempts, f.expires_at, f.created_at
FROM mq_task_dlq AS f
WHERE f.tenant_id = :tenant_id AND f.task_id = :id
ORDER BY f.failed_at DESC, f.id DESC
LIMIT 1

-- name: lock_dead_letters
-- Some dead letters, oldest first, locked; those that somebody else is moving are left to them.
SELECT f.id AS row_id, f.task_id, f.queue, f.dedupe_key, f.attempts, f.max_attempts, f.expires_at, f.created_at
FROM mq_task_dlq AS f
WHERE {letters} AND f.id > :after_id AND f.id <= :last_id
ORDER BY f.id
LIMIT :limit

-- name: restore_many
-- Dead letters back to the queue; a taken id or dedupe key is an error.
INSERT INTO mq_tasks (
    tenant_id, id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size, priority,
    dedupe_key, dedupe_seconds, status, attempts, max_attempts, available_at, expires_at, timeout_seconds,
    first_leased_at, last_worker, last_token_hash, last_token_fate, failed_token_hash, last_error, last_error_at,
    created_at, updated_at
)
SELECT
    f.tenant_id, f.task_id, f.queue, f.topic, f.publish_id, f.type, f.payload, f.payload_is_json, f.content_type,
    f.meta, f.size, f.priority, f.dedupe_key, f.dedupe_seconds, r.status,
    r.attempts, r.max_attempts, r.available_at, r.expires_at, f.timeout_seconds, f.first_leased_at, f.last_worker,
    f.last_token_hash, f.last_token_fate,
    CASE WHEN f.last_token_fate = 'failed' THEN f.last_token_hash ELSE f.failed_token_hash END,
    f.last_error, f.last_error_at, f.created_at, :now
FROM (
    SELECT json_extract(value, '$.row_id') AS row_id, json_extract(value, '$.status') AS status,
        json_extract(value, '$.attempts') AS attempts, json_extract(value, '$.max_attempts') AS max_attempts,
        json_extract(value, '$.available_at') AS available_at, json_extract(value, '$.expires_at') AS expires_at
    FROM json_each(:letters)
) AS r
JOIN mq_task_dlq AS f ON f.id = r.row_id
ORDER BY f.id

-- name: delete_dead_letters
DELETE FROM mq_task_dlq WHERE id IN (SELECT value FROM json_each(:row_ids))
