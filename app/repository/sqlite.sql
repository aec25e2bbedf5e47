-- SQLite. The statements stand in the same order in the file of every dialect.
-- `:moves` and the like are JSON arrays of objects; lists are JSON arrays too.
-- There is one writer at a time, so nothing needs locking.

-- part: state
t.seq, t.queue_id, t.id, t.queue, t.type, t.status, t.attempts, t.max_attempts, t.available_at, t.expires_at,
    t.lease_owner, t.lease_token_hash, t.lease_until, t.leased_at, t.last_token_hash, t.last_token_fate,
    t.failed_token_hash, t.dedupe_key, t.dedupe_seconds, t.dedupe_until, t.tombstone_id, t.updated_at,
    coalesce(q.id, g.queue_id) AS known_queue_id, coalesce(q.keep_alive_until, g.ended_at) AS queue_ends_at,
    q.history_days, q.max_lease_seconds, q.concurrency_limit,
    q.backoff_base_seconds, q.backoff_factor, q.backoff_max_seconds, q.backoff_jitter

-- part: tasks
mq_tasks AS t
    LEFT JOIN mq_queues AS q ON q.id = t.queue_id
    LEFT JOIN mq_queue_graves AS g ON g.queue_id = t.queue_id

-- part: queue
q.id, q.name, q.declared, q.topic, q.exclusive, q.keep_alive_seconds, q.keep_alive_until, q.max_attempts,
    q.lease_seconds, q.max_lease_seconds, q.backoff_base_seconds, q.backoff_factor, q.backoff_max_seconds,
    q.backoff_jitter,
    q.rate_per_second, q.concurrency_limit, q.paused, q.history_days, q.dlq_days, q.rate_left, q.rate_left_at,
    q.created_at, q.updated_at

-- part: described
queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size, priority, dedupe_key,
    dedupe_seconds, attempts, max_attempts, available_at, expires_at, timeout_seconds, first_leased_at, last_worker,
    last_token_hash, last_token_fate, failed_token_hash, last_error, last_error_at, created_at

-- part: size_in_reply
t.size + coalesce(length(CAST(t.last_error AS BLOB)), 0)

-- part: live_task
t.seq, t.queue_id, {size_in_reply} AS size, t.tenant_id, t.id, t.queue, t.topic, t.publish_id, t.type, t.payload,
    t.payload_is_json, t.content_type, t.meta,
    t.priority, t.dedupe_key, t.attempts, t.max_attempts, t.available_at, t.expires_at, t.timeout_seconds,
    t.last_error, t.last_error_at, t.created_at, t.updated_at, t.first_leased_at

-- part: state_by_now
CASE WHEN t.lease_until > :now THEN t.lease_owner END AS lease_owner,
    CASE WHEN t.lease_until > :now THEN t.lease_until END AS lease_until,
    CASE
        WHEN t.lease_until > :now THEN 'leased'
        WHEN t.status = 'leased' AND t.max_attempts > 0 AND t.attempts >= t.max_attempts THEN 'dead'
        WHEN t.expires_at <= :now THEN 'expired'
        WHEN t.available_at <= :now THEN 'ready'
        ELSE 'scheduled'
    END AS status

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
    AND f.queue = :queue -- if queue is given
    AND f.topic = :topic -- if topic is given
    AND f.type = :type -- if type is given
    AND instr(f.reason, :reason_contains) > 0 -- if reason_contains is given
    AND f.failed_at < :before -- if before is given
    AND f.failed_at > :after -- if after is given
    AND f.task_id IN (SELECT value FROM json_each(:ids)) -- if ids is given

-- name: open
-- The one instant at which everything in a transaction happens, and the queues that it is about.
SELECT clock.now, {queue}
FROM (SELECT :now AS now) AS clock
LEFT JOIN mq_queues AS q ON q.tenant_id = :tenant_id AND q.name IN (SELECT value FROM json_each(:names))

-- name: list_queue_ids
SELECT q.id, q.name FROM mq_queues AS q WHERE q.tenant_id = :tenant_id

-- name: lock_queues
-- These queues, locked in order of name: their limits are looked at under the lock.
SELECT {queue} FROM mq_queues AS q WHERE q.id IN (SELECT value FROM json_each(:queue_ids)) ORDER BY q.name

-- name: insert_queue
INSERT INTO mq_queues (
    tenant_id, name, declared, topic, exclusive, keep_alive_seconds, keep_alive_until, max_attempts, lease_seconds,
    max_lease_seconds, backoff_base_seconds, backoff_factor, backoff_max_seconds, backoff_jitter, rate_per_second,
    concurrency_limit, paused, history_days, dlq_days, rate_left, rate_left_at, created_at, updated_at
)
VALUES (
    :tenant_id, :name, :declared, :topic, :exclusive, :keep_alive_seconds, :keep_alive_until, :max_attempts,
    :lease_seconds, :max_lease_seconds, :backoff_base_seconds, :backoff_factor, :backoff_max_seconds,
    :backoff_jitter, :rate_per_second, :concurrency_limit, :paused, :history_days, :dlq_days, :rate_left, :now,
    :now, :now
)

-- name: insert_grave
INSERT INTO mq_queue_graves (queue_id, tenant_id, ended_at, deleted_at, look_at, clear_at, has_leases)
SELECT id, tenant_id, min(coalesce(keep_alive_until, :now), :now), :now, :now, :now, true
FROM mq_queues WHERE id = :queue_id

-- name: delete_queue
DELETE FROM mq_queues WHERE id = :queue_id

-- name: find_id_holders
-- The live tasks that have one of these ids.
SELECT {state} FROM {tasks}
WHERE t.tenant_id = :tenant_id AND t.id IN (SELECT value FROM json_each(:ids))

-- name: find_key_holders
-- The tasks and tombstones that hold one of these dedupe keys.
SELECT {state}
FROM (
    SELECT json_extract(value, '$.queue_id') AS queue_id, json_extract(value, '$.dedupe_key') AS dedupe_key
    FROM json_each(:keys)
) AS k
-- CROSS JOIN keeps the order: the keys first.
CROSS JOIN mq_tasks AS t ON t.queue_id = k.queue_id AND t.dedupe_key = k.dedupe_key
LEFT JOIN mq_queues AS q ON q.id = t.queue_id
LEFT JOIN mq_queue_graves AS g ON g.queue_id = t.queue_id

-- name: insert_tasks
-- New tasks in input order; a taken id or dedupe key is an error.
INSERT INTO mq_tasks (
    tenant_id, queue_id, id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size,
    priority, dedupe_key, dedupe_seconds, status, attempts, max_attempts, available_at, expires_at, timeout_seconds,
    created_at, updated_at
)
VALUES (
    :tenant_id, :queue_id, :id, :queue, :topic, :publish_id, :type, :payload, :payload_is_json, :content_type, :meta,
    :size, :priority, :dedupe_key, :dedupe_seconds, :status, 0, :max_attempts, :available_at, :expires_at,
    :timeout_seconds, :now, :now
)

-- name: probe_overdue
-- Whether time has changed anything in these queues that nobody has moved yet.
SELECT
    EXISTS (
        SELECT 1 FROM mq_tasks
        WHERE queue_id IN (SELECT value FROM json_each(:queue_ids))
            AND status = 'leased' AND lease_until <= :now
    )
    OR EXISTS (
        SELECT 1 FROM mq_tasks
        WHERE queue_id IN (SELECT value FROM json_each(:queue_ids))
            AND status = 'scheduled' AND available_at <= :now
    )
    OR EXISTS (
        SELECT 1 FROM mq_tasks
        WHERE queue_id IN (SELECT value FROM json_each(:queue_ids))
            AND status IN ('scheduled', 'ready') AND expires_at <= :now
    ) AS overdue

-- name: lock_overdue
-- Tasks of these queues that time has changed, locked; those that somebody else is moving are left to them.
SELECT {state}
FROM {tasks}
JOIN (
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE queue_id IN (SELECT value FROM json_each(:queue_ids))
            AND status = 'leased' AND lease_until <= :now
        LIMIT :limit
    )
    UNION
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE queue_id IN (SELECT value FROM json_each(:queue_ids))
            AND status = 'scheduled' AND available_at <= :now
        LIMIT :limit
    )
    UNION
    SELECT seq FROM (
        SELECT seq FROM mq_tasks
        WHERE queue_id IN (SELECT value FROM json_each(:queue_ids))
            AND status IN ('scheduled', 'ready') AND expires_at <= :now
        LIMIT :limit
    )
    LIMIT :limit
) AS overdue ON overdue.seq = t.seq

-- name: lock_rows
-- These rows, locked in order.
SELECT {state} FROM {tasks} WHERE t.seq IN (SELECT value FROM json_each(:seqs)) ORDER BY t.seq

-- name: lock_tasks
-- The live tasks of these ids, locked in order.
SELECT {state} FROM {tasks}
WHERE t.tenant_id = :tenant_id AND t.id IN (SELECT value FROM json_each(:ids))
ORDER BY t.id

-- name: pick_queue
-- The first ready tasks of one queue.
SELECT t.seq, t.queue_id, {size_in_reply} AS size
FROM mq_tasks AS t
WHERE t.queue_id = :queue_id AND t.status = 'ready'
    AND (t.expires_at IS NULL OR t.expires_at > :now)
    AND t.id NOT IN (SELECT value FROM json_each(:exclude_ids))
ORDER BY t.priority DESC, t.available_at, t.seq
LIMIT :limit

-- name: rank_lanes
-- The best of every lane, merged. Among equal priorities the queues take turns.
SELECT seq, queue_id, size FROM (
    SELECT t.seq, t.queue_id, t.priority, {size_in_reply} AS size, lanes.place, lanes.room,
        row_number() OVER (PARTITION BY t.queue_id, t.priority ORDER BY t.available_at, t.seq) AS turn,
        row_number() OVER (PARTITION BY t.queue_id ORDER BY t.priority DESC, t.available_at, t.seq) AS nth
    FROM (
        SELECT json_extract(value, '$.queue_id') AS queue_id, json_extract(value, '$.type') AS type,
            json_extract(value, '$.place') AS place, json_extract(value, '$.room') AS room
        FROM json_each(:lanes)
    ) AS lanes
    JOIN mq_tasks AS t ON t.seq IN (
        SELECT seq FROM (
            SELECT b.seq
            FROM mq_tasks AS b
            WHERE lanes.type IS NULL
                AND b.queue_id = lanes.queue_id AND b.status = 'ready'
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
                AND b.queue_id = lanes.queue_id AND b.status = 'ready'
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
                AND b.queue_id = lanes.queue_id AND b.status = 'ready' AND b.type = lanes.type
                AND (b.expires_at IS NULL OR b.expires_at > :now)
                AND b.id NOT IN (SELECT value FROM json_each(:exclude_ids))
            ORDER BY b.priority DESC, b.available_at, b.seq
            LIMIT :limit
        )
    )
) AS ranked
WHERE nth <= room
ORDER BY priority DESC, turn, place
LIMIT :limit

-- name: lease_many
UPDATE mq_tasks AS t
SET status = 'leased', attempts = t.attempts + 1, lease_owner = n.worker_id, last_worker = n.worker_id,
    lease_token_hash = n.token_hash, lease_until = n.lease_until, leased_at = :now,
    first_leased_at = coalesce(t.first_leased_at, :now), last_token_hash = NULL, last_token_fate = NULL,
    updated_at = :now
FROM (
    SELECT json_extract(value, '$.seq') AS seq, json_extract(value, '$.token_hash') AS token_hash,
        json_extract(value, '$.worker_id') AS worker_id, json_extract(value, '$.lease_until') AS lease_until
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
        WHERE t.queue_id = l.queue_id AND t.status = 'scheduled'
            AND (t.expires_at IS NULL OR t.expires_at > t.available_at)
            AND (l.type IS NULL OR t.type = l.type)
    ) AS next_at
    FROM (
        SELECT json_extract(value, '$.queue_id') AS queue_id, json_extract(value, '$.type') AS type
        FROM json_each(:lanes)
    ) AS l
    UNION ALL
    SELECT (
        SELECT min(t.lease_until)
        FROM mq_tasks AS t
        WHERE t.queue_id = l.queue_id AND t.status = 'leased'
            AND (t.max_attempts = 0 OR t.attempts < t.max_attempts)
            AND (t.expires_at IS NULL OR t.expires_at > t.lease_until)
            AND (l.type IS NULL OR t.type = l.type)
    ) AS next_at
    FROM (
        SELECT json_extract(value, '$.queue_id') AS queue_id, json_extract(value, '$.type') AS type
        FROM json_each(:lanes)
    ) AS l
)

-- name: count_leased
-- How many leases run in these queues.
SELECT queue_id, count(*) AS leased FROM mq_tasks
WHERE queue_id IN (SELECT value FROM json_each(:queue_ids)) AND status = 'leased' AND lease_until > :now
GROUP BY queue_id

-- name: queues_with_ready
SELECT q.id AS queue_id FROM mq_queues AS q
WHERE q.id IN (SELECT value FROM json_each(:queue_ids)) AND EXISTS (
    SELECT 1 FROM mq_tasks AS t WHERE t.queue_id = q.id AND t.status = 'ready'
)

-- name: set_rate_left
UPDATE mq_queues SET rate_left = :rate_left, rate_left_at = :now WHERE id = :queue_id

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
ORDER BY t.seq

-- name: bury_many
-- Into the dead letters; the live rows go in the same transaction.
INSERT INTO mq_task_dlq (tenant_id, task_id, {described}, reason, failed_at)
SELECT t.tenant_id, t.id, {moved}, m.reason, m.at
FROM {moves}
JOIN mq_tasks AS t ON t.seq = m.seq
ORDER BY t.seq

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
-- The tokens of these tasks as they ended, as far as that is known.
SELECT task_id, queue, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_history
WHERE tenant_id = :tenant_id AND task_id IN (SELECT value FROM json_each(:ids))
UNION ALL
SELECT task_id, queue, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_dlq
WHERE tenant_id = :tenant_id AND task_id IN (SELECT value FROM json_each(:ids))

-- name: get_live
SELECT {live_task}, t.status, t.lease_owner, t.lease_until
FROM {tasks}
WHERE t.tenant_id = :tenant_id AND t.id = :id
    AND (t.lease_until > :now OR q.id IS NOT NULL AND (q.keep_alive_until IS NULL OR q.keep_alive_until > :now))

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

-- name: span_of_tasks
-- The first of the rows behind one, and the last of all.
SELECT
    (SELECT min(seq) FROM mq_tasks WHERE seq > :after_seq) AS first_seq, (SELECT max(seq) FROM mq_tasks) AS last_seq

-- name: list_live
-- Live tasks in order of acceptance, each in the state that it has by now, out of a span of rows.
SELECT * FROM (
    SELECT {live_task},
    {state_by_now}
    FROM {tasks}
    WHERE t.seq > :after_seq AND t.seq <= :until_seq AND t.tenant_id = :tenant_id AND t.id IS NOT NULL
        AND (t.lease_until > :now OR q.id IS NOT NULL AND (q.keep_alive_until IS NULL OR q.keep_alive_until > :now))
        AND t.queue = :queue -- if queue is given
        AND t.topic = :topic -- if topic is given
        AND t.type = :type -- if type is given
) AS live
WHERE status IN ('scheduled', 'ready', 'leased')
    AND status = :status -- if status is given
ORDER BY seq
LIMIT :limit

-- name: find_ready
SELECT t.seq FROM mq_tasks AS t INDEXED BY ix_mq_tasks_ready
WHERE t.queue_id IN (SELECT value FROM json_each(:queue_ids)) AND t.status = 'ready' AND +t.seq > :after_seq
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY +t.seq
LIMIT :limit

-- name: find_scheduled
SELECT t.seq FROM mq_tasks AS t INDEXED BY ix_mq_tasks_scheduled
WHERE t.queue_id IN (SELECT value FROM json_each(:queue_ids)) AND t.status = 'scheduled' AND +t.seq > :after_seq
    AND t.available_at <= :due_by -- if due_by is given
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY +t.seq
LIMIT :limit

-- name: find_leased
SELECT t.seq FROM mq_tasks AS t INDEXED BY ix_mq_tasks_leased
WHERE t.queue_id IN (SELECT value FROM json_each(:queue_ids)) AND t.status = 'leased' AND +t.seq > :after_seq
    AND t.lease_until <= :due_by -- if due_by is given
    AND t.queue = :queue -- if queue is given
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY +t.seq
LIMIT :limit

-- name: read_live
-- Those of these rows that are tasks still: one that was done meanwhile may have left its key there.
SELECT {live_task},
{state_by_now}
FROM {tasks}
WHERE t.seq IN (SELECT value FROM json_each(:seqs))
    AND (t.lease_until > :now OR q.id IS NOT NULL AND (q.keep_alive_until IS NULL OR q.keep_alive_until > :now))
    AND t.status <> 'done'
ORDER BY t.seq

-- name: list_finished
SELECT {finished_task}, f.status, f.result, f.finished_at
FROM mq_task_history AS f
WHERE f.tenant_id = :tenant_id AND f.status = :status
    AND f.queue = :queue -- if queue is given
    AND f.topic = :topic -- if topic is given
    AND f.type = :type -- if type is given
    AND (f.finished_at, f.id) < (:after_at, :after_id) -- if after_at is given
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
    AND (f.failed_at, f.id) < (:after_at, :after_id) -- if after_at is given
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
WHERE {letters}
    AND f.id > :after_id AND f.id <= :last_id
ORDER BY f.id
LIMIT :limit

-- name: restore_many
-- Dead letters back to the queue; a taken id or dedupe key is an error.
INSERT INTO mq_tasks (
    tenant_id, queue_id, id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size,
    priority, dedupe_key, dedupe_seconds, status, attempts, max_attempts, available_at, expires_at, timeout_seconds,
    first_leased_at, last_worker, last_token_hash, last_token_fate, failed_token_hash, last_error, last_error_at,
    created_at, updated_at
)
SELECT
    f.tenant_id, r.queue_id, f.task_id, f.queue, f.topic, f.publish_id, f.type, f.payload, f.payload_is_json,
    f.content_type, f.meta, f.size, f.priority, f.dedupe_key, f.dedupe_seconds, r.status,
    r.attempts, r.max_attempts, r.available_at, r.expires_at, f.timeout_seconds, f.first_leased_at, f.last_worker,
    f.last_token_hash, f.last_token_fate,
    CASE WHEN f.last_token_fate = 'failed' THEN f.last_token_hash ELSE f.failed_token_hash END,
    f.last_error, f.last_error_at, f.created_at, :now
FROM (
    SELECT json_extract(value, '$.row_id') AS row_id, json_extract(value, '$.queue_id') AS queue_id,
        json_extract(value, '$.status') AS status,
        json_extract(value, '$.attempts') AS attempts, json_extract(value, '$.max_attempts') AS max_attempts,
        json_extract(value, '$.available_at') AS available_at, json_extract(value, '$.expires_at') AS expires_at
    FROM json_each(:letters)
) AS r
JOIN mq_task_dlq AS f ON f.id = r.row_id
ORDER BY f.id

-- name: delete_dead_letters
DELETE FROM mq_task_dlq WHERE id IN (SELECT value FROM json_each(:row_ids))

-- name: update_queue
UPDATE mq_queues
SET declared = :declared, topic = :topic, exclusive = :exclusive, keep_alive_seconds = :keep_alive_seconds,
    keep_alive_until = :keep_alive_until, max_attempts = :max_attempts, lease_seconds = :lease_seconds,
    max_lease_seconds = :max_lease_seconds, backoff_base_seconds = :backoff_base_seconds,
    backoff_factor = :backoff_factor, backoff_max_seconds = :backoff_max_seconds, backoff_jitter = :backoff_jitter,
    rate_per_second = :rate_per_second, concurrency_limit = :concurrency_limit, paused = :paused,
    history_days = :history_days, dlq_days = :dlq_days, updated_at = :now
WHERE id = :queue_id

-- name: list_queues
-- Declared queues that are there by now, in order of name.
SELECT {queue} FROM mq_queues AS q
WHERE q.tenant_id = :tenant_id AND q.declared AND q.name > :after_name
    AND (q.keep_alive_until IS NULL OR q.keep_alive_until > :now)
    AND (:topic IS NULL OR q.topic = :topic)
ORDER BY q.name
LIMIT :limit

-- name: lock_subscribers
-- The queues of a topic, locked against deletion, so that a message goes to all of them or to none.
SELECT {queue} FROM mq_queues AS q
WHERE q.tenant_id = :tenant_id AND q.topic = :topic AND (q.keep_alive_until IS NULL OR q.keep_alive_until > :now)
ORDER BY q.name

-- name: lock_topic
SELECT name, created_at FROM mq_topics WHERE tenant_id = :tenant_id AND name = :name

-- name: lock_topic_to_delete
SELECT name, created_at FROM mq_topics WHERE tenant_id = :tenant_id AND name = :name

-- name: insert_topic
INSERT INTO mq_topics (tenant_id, name, created_at) VALUES (:tenant_id, :name, :now)

-- name: delete_topic
DELETE FROM mq_topics WHERE tenant_id = :tenant_id AND name = :name

-- name: list_topics
SELECT name, created_at FROM mq_topics
WHERE tenant_id = :tenant_id AND name > :after_name
ORDER BY name
LIMIT :limit

-- name: lock_ready
-- What is ready in a queue, locked; what somebody is reserving is left to them.
SELECT t.seq FROM mq_tasks AS t
WHERE t.queue_id = :queue_id AND t.status = 'ready' AND +t.seq <= :last_seq
ORDER BY t.priority DESC, t.available_at, t.seq
LIMIT :limit

-- name: lock_scheduled
SELECT t.seq FROM mq_tasks AS t
WHERE t.queue_id = :queue_id AND t.status = 'scheduled' AND +t.seq <= :last_seq
ORDER BY t.available_at
LIMIT :limit

-- name: last_seq
SELECT coalesce(max(seq), 0) AS last_seq FROM mq_tasks

-- name: pick_history
-- Finished tasks of a queue that ended before a moment.
SELECT id AS row_id, tenant_id, task_id, finished_at FROM mq_task_history
WHERE tenant_id = :tenant_id AND queue = :queue AND status = :status AND finished_at <= :before
ORDER BY finished_at, id
LIMIT :limit

-- name: pick_history_to_drop
-- Finished tasks of anybody that have been kept for long enough.
SELECT id AS row_id, tenant_id, task_id, finished_at FROM mq_task_history
WHERE keep_until <= :now
ORDER BY keep_until
LIMIT :limit

-- name: delete_history
DELETE FROM mq_task_history WHERE id IN (SELECT value FROM json_each(:row_ids))

-- name: delete_attempts_of
-- The attempts of tasks that are gone, but not those of a later one that has the same id.
DELETE FROM mq_task_attempts WHERE id IN (
    SELECT a.id
    FROM (
        SELECT json_extract(value, '$.tenant_id') AS tenant_id, json_extract(value, '$.task_id') AS task_id,
            json_extract(value, '$.finished_at') AS finished_at
        FROM json_each(:tasks)
    ) AS f
    CROSS JOIN mq_task_attempts AS a
    WHERE a.tenant_id = f.tenant_id AND a.task_id = f.task_id AND a.started_at <= f.finished_at
)

-- name: count_of_queue
-- How many tasks there are in each state, counted up to a bound, or all of them.
SELECT 'ready' AS status, count(*) AS tasks
FROM (
    SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'ready'
    ORDER BY priority DESC, available_at, seq LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'scheduled', count(*)
FROM (
    SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'scheduled'
    ORDER BY available_at LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'leased', count(*)
FROM (
    SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'leased'
    ORDER BY lease_until LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'done', count(*)
FROM (
    SELECT 1 FROM mq_task_history WHERE tenant_id = :tenant_id AND queue = :queue AND status = 'done'
    ORDER BY finished_at LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'expired', count(*)
FROM (
    SELECT 1 FROM mq_task_history WHERE tenant_id = :tenant_id AND queue = :queue AND status = 'expired'
    ORDER BY finished_at LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'cancelled', count(*)
FROM (
    SELECT 1 FROM mq_task_history WHERE tenant_id = :tenant_id AND queue = :queue AND status = 'cancelled'
    ORDER BY finished_at LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'dead', count(*)
FROM (
    SELECT 1 FROM mq_task_dlq WHERE tenant_id = :tenant_id AND queue = :queue
    ORDER BY failed_at LIMIT :bound -- if bound is given
) AS counted

-- name: count_ready_by_priority
SELECT priority, count(*) AS tasks, min(available_at) AS oldest_at
FROM (
    SELECT priority, available_at FROM mq_tasks WHERE queue_id = :queue_id AND status = 'ready'
    ORDER BY priority DESC, available_at, seq LIMIT :bound -- if bound is given
) AS counted
GROUP BY priority
ORDER BY priority DESC

-- name: count_ahead
-- How many ready tasks of the queue come before this one, counted up to a bound.
SELECT count(*) AS ahead
FROM (
    SELECT 1 FROM (
        SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'ready' AND priority > :priority LIMIT :bound
    )
    UNION ALL
    SELECT 1 FROM (
        SELECT 1 FROM mq_tasks
        WHERE queue_id = :queue_id AND status = 'ready' AND priority = :priority
            AND (available_at, seq) < (:available_at, :seq)
        LIMIT :bound
    )
    LIMIT :bound
) AS counted

-- name: queues_with_overdue
-- Those of the queues in which time has changed something that nobody has moved yet.
SELECT DISTINCT o.tenant_id, o.id AS queue_id FROM mq_queues AS o
JOIN (
    SELECT q.id FROM mq_queues AS q
    WHERE q.id IN (SELECT value FROM json_each(:queue_ids)) AND (
        EXISTS (SELECT 1 FROM mq_tasks AS t WHERE t.queue_id = q.id AND t.status = 'leased' AND t.lease_until <= :now)
        OR EXISTS (
            SELECT 1 FROM mq_tasks AS t
            WHERE t.queue_id = q.id AND t.status = 'scheduled' AND t.available_at <= :now
        )
        OR EXISTS (
            SELECT 1 FROM mq_tasks AS t
            WHERE t.queue_id = q.id AND t.status IN ('scheduled', 'ready') AND t.expires_at <= :now
        )
    )
) AS overdue ON overdue.id = o.id

-- name: next_queue_ids
-- The next few of anybody's queues.
SELECT id FROM mq_queues WHERE id > :after_id ORDER BY id LIMIT :limit

-- name: ended_queues
-- Exclusive queues of anybody whose time is over.
SELECT {queue} FROM mq_queues AS q WHERE q.keep_alive_until <= :now ORDER BY q.keep_alive_until LIMIT :limit

-- name: lock_graves_to_clear
-- Graves of anybody in which something may be left.
SELECT queue_id, tenant_id, deleted_at FROM mq_queue_graves
WHERE clear_at <= :now
ORDER BY clear_at
LIMIT :limit

-- name: lock_graves_to_look_at
-- Graves of a tenant in which time may have changed something.
SELECT queue_id, tenant_id, deleted_at FROM mq_queue_graves
WHERE tenant_id = :tenant_id AND look_at <= :now
ORDER BY look_at
LIMIT :limit

-- name: list_graves_with_leases
SELECT queue_id FROM mq_queue_graves WHERE tenant_id = :tenant_id AND has_leases

-- name: next_lease_ends
-- When the first of the leases in each of these queues ends.
SELECT queue_id, min(lease_until) AS lease_until FROM mq_tasks
WHERE queue_id IN (SELECT value FROM json_each(:queue_ids)) AND status = 'leased'
GROUP BY queue_id

-- name: look_at_grave_later
UPDATE mq_queue_graves SET look_at = :at, has_leases = :has_leases WHERE queue_id = :queue_id

-- name: clear_grave_later
UPDATE mq_queue_graves SET clear_at = :at WHERE queue_id = :queue_id

-- name: delete_grave
DELETE FROM mq_queue_graves WHERE queue_id = :queue_id

-- name: lock_old_tombstones
-- Dedupe keys that have been held no longer for a while.
SELECT seq FROM mq_tasks WHERE status = 'done' AND dedupe_until <= :before ORDER BY dedupe_until LIMIT :limit

-- name: queues_with_dlq_days
SELECT q.tenant_id, q.name, q.dlq_days FROM mq_queues AS q WHERE q.dlq_days IS NOT NULL ORDER BY q.id

-- name: lock_old_dead_letters
SELECT id AS row_id, tenant_id, task_id, failed_at AS finished_at FROM mq_task_dlq
WHERE tenant_id = :tenant_id AND queue = :queue AND failed_at <= :before
ORDER BY failed_at, id
LIMIT :limit

-- name: insert_operation
INSERT INTO mq_operations (
    tenant_id, id, status, request, rate_per_second, requeued, skipped, after_id, last_id, next_at, created_at,
    updated_at
)
VALUES (:tenant_id, :id, 'running', :request, :rate_per_second, 0, 0, 0, :last_id, :now, :now, :now)

-- name: get_operation
SELECT * FROM mq_operations WHERE tenant_id = :tenant_id AND id = :id

-- name: look_at_operation
-- An operation and what is left of its dead letters, both of the same moment.
SELECT o.*, (
    SELECT count(*) FROM mq_task_dlq AS f
    WHERE {letters}
) AS remaining
FROM mq_operations AS o
WHERE o.tenant_id = :tenant_id AND o.id = :operation_id

-- name: lock_operation
SELECT * FROM mq_operations WHERE tenant_id = :tenant_id AND id = :id

-- name: lock_next_operation
-- The operation of anybody that is to go on next; one that somebody else is at is left to them.
SELECT * FROM mq_operations WHERE status = 'running' ORDER BY next_at LIMIT 1

-- name: advance_operation
UPDATE mq_operations
SET requeued = :requeued, skipped = :skipped, after_id = :after_id, next_at = :next_at, updated_at = :now
WHERE tenant_id = :tenant_id AND id = :id

-- name: end_operation
UPDATE mq_operations SET status = :status, finished_at = :now, updated_at = :now
WHERE tenant_id = :tenant_id AND id = :id

-- name: delete_old_operations
DELETE FROM mq_operations WHERE finished_at <= :before

-- name: list_indexes
-- The indexes of our tables; nobody counts how often they are used.
SELECT m.name AS index_name, 1 AS is_valid, m.sql LIKE 'CREATE UNIQUE%' AS is_unique, NULL AS scans, NULL AS bytes
FROM sqlite_master AS m
WHERE m.type = 'index' AND m.tbl_name LIKE 'mq\_%' ESCAPE '\'

-- name: count_dead_rows
-- Pages of the file in which there is nothing any more.
SELECT 'pages of the file' AS place, p.page_count - f.freelist_count AS live, f.freelist_count AS dead
FROM pragma_page_count AS p CROSS JOIN pragma_freelist_count AS f

-- name: oldest_transaction
-- Nobody tells of the transactions of others.
SELECT NULL AS seconds
