-- MySQL. The statements stand in the same order in the file of every dialect.
-- `:moves` and the like are JSON arrays of objects; `:now` is NULL only in `open`.

-- part: state
t.seq, t.queue_id, t.id, t.queue, t.type, t.status, t.attempts, t.max_attempts, t.available_at, t.expires_at,
    t.lease_owner, t.lease_token_hash, t.lease_until, t.leased_at, t.last_token_hash, t.last_token_fate,
    t.failed_token_hash, t.dedupe_key, t.dedupe_seconds, t.dedupe_until, t.tombstone_id, t.updated_at,
    coalesce(q.id, g.queue_id) AS known_queue_id, coalesce(q.keep_alive_until, g.ended_at) AS queue_ends_at,
    q.history_days, q.max_lease_seconds, q.concurrency_limit,
    q.backoff_base_seconds, q.backoff_factor, q.backoff_max_seconds, q.backoff_jitter

-- part: of_tasks
LEFT JOIN mq_queues AS q ON q.id = t.queue_id
    LEFT JOIN mq_queue_graves AS g ON g.queue_id = t.queue_id

-- part: tasks
mq_tasks AS t
    {of_tasks}

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
t.size + coalesce(octet_length(t.last_error), 0)

-- part: picked_task
t.seq, t.queue_id, {size_in_reply} AS size, t.tenant_id, t.id, t.queue, t.topic, t.publish_id, t.type,
    t.payload_is_json, t.content_type, t.priority, t.dedupe_key, t.attempts, t.max_attempts, t.available_at,
    t.expires_at, t.timeout_seconds, t.last_error_at, t.created_at, t.updated_at, t.first_leased_at

-- part: short_contents
CASE WHEN {size_in_reply} <= :short THEN t.payload END AS payload,
    CASE WHEN {size_in_reply} <= :short THEN t.meta END AS meta,
    CASE WHEN {size_in_reply} <= :short THEN t.last_error END AS last_error

-- part: live_task
{picked_task}, t.payload, t.meta, t.last_error

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
JSON_TABLE(:moves, '$[*]' COLUMNS (
    seq BIGINT PATH '$.seq', task_id VARCHAR(64) PATH '$.task_id', status VARCHAR(16) PATH '$.status',
    at DATETIME(6) PATH '$.at', attempts INT PATH '$.attempts', available_at DATETIME(6) PATH '$.available_at',
    reason TEXT PATH '$.reason', error TEXT PATH '$.error', error_at DATETIME(6) PATH '$.error_at',
    result MEDIUMTEXT PATH '$.result', token_hash VARCHAR(32) PATH '$.token_hash',
    token_fate VARCHAR(16) PATH '$.token_fate', keep_until DATETIME(6) PATH '$.keep_until',
    dedupe_until DATETIME(6) PATH '$.dedupe_until'
)) AS m

-- part: waiting_for_time
mq_tasks FORCE INDEX (ix_mq_tasks_ready)
        WHERE status IN ('leased', 'scheduled') AND line_rank = 0

-- part: each_task
-- One by one by their keys: of a table that it takes for small, MySQL would read and lock every row.
STRAIGHT_JOIN mq_tasks AS t FORCE INDEX (PRIMARY) ON

-- part: by_key
-- Likewise, in the order of the keys.
mq_tasks AS t FORCE INDEX (PRIMARY)

-- part: candidate
SELECT t.seq, t.queue_id, t.priority, t.line_rank, t.line_at, :place AS place, :room AS room
        FROM mq_tasks AS t

-- part: may_be_had
AND (t.expires_at IS NULL OR t.expires_at > :now)
            AND t.id NOT IN :exclude_ids

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
    AND locate(:reason_contains, f.reason) > 0 -- if reason_contains is given
    AND f.failed_at < :before -- if before is given
    AND f.failed_at > :after -- if after is given
    AND f.task_id IN :ids -- if ids is given

-- name: open
-- The one instant at which everything in a transaction happens, and the queues that it is about.
SELECT clock.now, {queue}
FROM (SELECT CAST(coalesce(:now, utc_timestamp(6)) AS DATETIME(6)) AS now) AS clock
LEFT JOIN mq_queues AS q ON q.tenant_id = :tenant_id AND q.name IN :names

-- name: list_queue_ids
SELECT q.id, q.name FROM mq_queues AS q WHERE q.tenant_id = :tenant_id

-- name: lock_queues
-- These queues, locked in order of name: their limits are looked at under the lock.
SELECT {queue} FROM mq_queues AS q WHERE q.id IN :queue_ids ORDER BY q.name
FOR UPDATE

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
SELECT id, tenant_id, least(coalesce(keep_alive_until, :now), :now), :now, :now, :now, true
FROM mq_queues WHERE id = :queue_id

-- name: delete_queue
DELETE FROM mq_queues WHERE id = :queue_id

-- name: find_id_holders
-- The live tasks that have one of these ids.
SELECT {state} FROM {tasks}
WHERE t.tenant_id = :tenant_id AND t.id IN :ids

-- name: find_key_holders
-- The tasks and tombstones that hold one of these dedupe keys.
SELECT {state}
FROM JSON_TABLE(:keys, '$[*]' COLUMNS (
    queue_id BIGINT PATH '$.queue_id', dedupe_key VARCHAR(128) PATH '$.dedupe_key'
)) AS k
JOIN mq_tasks AS t ON t.queue_id = k.queue_id AND t.dedupe_key = k.dedupe_key COLLATE utf8mb4_0900_bin
LEFT JOIN mq_queues AS q ON q.id = t.queue_id
LEFT JOIN mq_queue_graves AS g ON g.queue_id = t.queue_id

-- name: insert_tasks
-- New tasks in input order, one row of values for each; a taken id or dedupe key is an error.
INSERT INTO mq_tasks (
    tenant_id, queue_id, id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size,
    priority, dedupe_key, dedupe_seconds, status, max_attempts, available_at, expires_at, timeout_seconds, created_at,
    updated_at, attempts
)
VALUES :tasks

-- name: probe_overdue
-- Whether time has changed anything in these queues that nobody has moved yet.
SELECT
    EXISTS (
        SELECT 1 FROM {waiting_for_time} AND queue_id IN :queue_ids AND line_at <= :now
    )
    OR EXISTS (
        SELECT 1 FROM mq_tasks FORCE INDEX (ix_mq_tasks_expiring)
        WHERE queue_id IN :queue_ids AND status IN ('scheduled', 'ready') AND expires_at <= :now
    ) AS overdue

-- name: lock_overdue
-- Tasks of these queues that time has changed, locked; those that somebody else is moving are left to them.
SELECT {state}
FROM {tasks}
JOIN (
    (
        SELECT seq FROM {waiting_for_time} AND queue_id IN :queue_ids AND line_at <= :now
        LIMIT :limit
    )
    UNION
    (
        SELECT seq FROM mq_tasks FORCE INDEX (ix_mq_tasks_expiring)
        WHERE queue_id IN :queue_ids AND status IN ('scheduled', 'ready') AND expires_at <= :now
        LIMIT :limit
    )
    LIMIT :limit
) AS overdue ON overdue.seq = t.seq
FOR UPDATE OF t SKIP LOCKED

-- name: lock_rows
-- These rows, locked in order.
SELECT {state} FROM {by_key} {of_tasks} WHERE t.seq IN :seqs ORDER BY t.seq FOR UPDATE OF t

-- name: lock_tasks
-- The live tasks of these ids, locked in their order.
SELECT {state}
FROM mq_tasks AS t FORCE INDEX (uq_mq_tasks_id)
    {of_tasks}
WHERE t.tenant_id = :tenant_id AND t.id IN :ids
FOR UPDATE OF t

-- name: lock_held
-- Those of these tasks whose lease lasts and whose end leaves nothing behind but history, locked in their order.
SELECT t.seq, t.id, t.queue, t.lease_token_hash, q.history_days
FROM mq_tasks AS t FORCE INDEX (uq_mq_tasks_id)
STRAIGHT_JOIN mq_queues AS q ON q.id = t.queue_id
WHERE t.tenant_id = :tenant_id AND t.id IN :ids AND t.lease_until > :now
    AND (t.dedupe_key IS NULL OR t.dedupe_seconds = 0)
FOR UPDATE OF t

-- name: pick_queue
-- The first ready tasks of one queue, locked; rows that somebody else is claiming are passed over.
SELECT {picked_task}, {short_contents}
FROM mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
WHERE t.queue_id = :queue_id AND t.status = 'ready'
    AND (t.expires_at IS NULL OR t.expires_at > :now)
    AND t.id NOT IN :exclude_ids
ORDER BY t.line_rank, t.line_at, t.seq
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: rank_lanes
-- The best of every lane without a lock, merged. Among equal priorities the queues take turns.
SELECT ranked.seq, ranked.queue_id, ranked.priority
FROM (
    SELECT best.*,
        row_number() OVER (PARTITION BY best.queue_id, best.line_rank ORDER BY best.line_at, best.seq) AS turn,
        row_number() OVER (PARTITION BY best.queue_id ORDER BY best.line_rank, best.line_at, best.seq) AS nth
    FROM (
    -- each lane, by UNION ALL: in a LATERAL join its rows would all be sorted
    (
        {candidate}
        -- Those without a type are no line by themselves: they are picked out of all.
        WHERE t.queue_id = :queue_id AND t.status = 'ready'
            AND coalesce(:type, '') = '' AND t.type = coalesce(:type, t.type)
            {may_be_had}
        ORDER BY t.line_rank, t.line_at, t.seq
        LIMIT :limit
    )
    UNION ALL
    (
        {candidate}
        WHERE t.queue_id = :queue_id AND t.status = 'ready'
            AND :type <> '' AND t.line_type = :type
            {may_be_had}
        ORDER BY t.type_rank, t.type_at, t.seq
        LIMIT :limit
    )
    -- end of lane
    ) AS best
) AS ranked
WHERE ranked.nth <= ranked.room
ORDER BY ranked.line_rank, ranked.turn, ranked.place
LIMIT :limit

-- name: lock_ranked
-- The winners, locked and looked at again.
SELECT {picked_task}, {short_contents} FROM {by_key}
WHERE t.seq IN :seqs AND t.status = 'ready'
FOR UPDATE OF t SKIP LOCKED

-- name: lease_many
-- Each under its own token: the one that stands where its key does among the keys, which are in order, so that it is
-- found by halves. The tokens' hashes are one text, of 32 letters each. Columns are set from first to last.
UPDATE {by_key}
SET t.status = 'leased', t.attempts = t.attempts + 1,
    t.lease_owner = elt(interval(t.seq, :keys), :worker_ids), t.last_worker = t.lease_owner,
    t.lease_token_hash = substr(_ascii :token_hashes, 32 * interval(t.seq, :keys) - 31, 32),
    t.updated_at = greatest(:now, t.updated_at), t.leased_at = t.updated_at,
    t.first_leased_at = coalesce(t.first_leased_at, t.updated_at),
    t.lease_until = timestampadd(MICROSECOND, elt(field(t.queue_id, :queue_ids), :leases), t.updated_at),
    t.last_token_hash = NULL, t.last_token_fate = NULL
WHERE t.seq IN :seqs

-- name: read_contents
-- What is long, of those that are leased and not of all that were picked.
SELECT t.seq, t.payload, t.meta, t.last_error FROM {by_key} WHERE t.seq IN :seqs

-- name: next_available
-- When the next task of these lanes is due, or may come back because its lease ends.
SELECT min(next_at) AS next_at
FROM (
    -- each lane, by UNION ALL
    (
        SELECT t.line_at AS next_at
        FROM mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
        WHERE t.queue_id = :queue_id AND t.status = 'scheduled' AND t.line_rank = 0
            AND (t.expires_at IS NULL OR t.expires_at > t.line_at)
            AND (:type IS NULL OR t.type = :type)
        ORDER BY t.line_at
        LIMIT 1
    )
    UNION ALL
    (
        SELECT t.line_at
        FROM mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
        WHERE t.queue_id = :queue_id AND t.status = 'leased' AND t.line_rank = 0
            AND (t.max_attempts = 0 OR t.attempts < t.max_attempts)
            AND (t.expires_at IS NULL OR t.expires_at > t.line_at)
            AND (:type IS NULL OR t.type = :type)
        ORDER BY t.line_at
        LIMIT 1
    )
    -- end of lane
) AS upcoming

-- name: count_leased
-- How many leases run in these queues.
SELECT queue_id, count(*) AS leased FROM mq_tasks
WHERE queue_id IN :queue_ids AND status = 'leased' AND line_rank = 0 AND line_at > :now
GROUP BY queue_id

-- name: queues_with_ready
SELECT q.id AS queue_id FROM mq_queues AS q
-- Not EXISTS, which would read all of the ready tasks at once.
WHERE q.id IN :queue_ids AND (
    SELECT 1 FROM mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
    WHERE t.queue_id = q.id AND t.status = 'ready'
    LIMIT 1
) IS NOT NULL

-- name: set_rate_left
UPDATE mq_queues SET rate_left = :rate_left, rate_left_at = :now WHERE id = :queue_id

-- name: extend_many
-- The leases end that long from now.
UPDATE JSON_TABLE(:moves, '$[*]' COLUMNS (
    seq BIGINT PATH '$.seq', lease_until DATETIME(6) PATH '$.lease_until'
)) AS m
{each_task} t.seq = m.seq
SET t.lease_until = m.lease_until, t.updated_at = :now

-- name: return_many
-- Back to the queue, without a lease.
UPDATE {moves}
{each_task} t.seq = m.seq
SET t.status = m.status, t.attempts = m.attempts, t.available_at = m.available_at,
    t.lease_owner = NULL, t.lease_token_hash = NULL, t.lease_until = NULL, t.leased_at = NULL,
    t.last_token_hash = m.token_hash, t.last_token_fate = m.token_fate,
    t.last_error = coalesce(m.error, t.last_error), t.last_error_at = coalesce(m.error_at, t.last_error_at),
    t.updated_at = m.at

-- name: archive_many
-- Into the history; the live rows go in the same transaction.
INSERT INTO mq_task_history (tenant_id, task_id, {described}, status, result, finished_at, keep_until)
SELECT t.tenant_id, t.id, {moved}, m.status, m.result, m.at, m.keep_until
FROM {moves}
{each_task} t.seq = m.seq
ORDER BY t.seq

-- name: archive_acked
-- Likewise those that were acked without a result, about which nothing need be said that is not in their rows.
INSERT INTO mq_task_history (tenant_id, task_id, {described}, status, finished_at, keep_until)
SELECT t.tenant_id, t.id, t.queue, t.topic, t.publish_id, t.type, t.payload, t.payload_is_json, t.content_type, t.meta,
    t.size, t.priority, t.dedupe_key, t.dedupe_seconds, t.attempts, t.max_attempts, t.available_at, t.expires_at,
    t.timeout_seconds, t.first_leased_at, t.last_worker, t.lease_token_hash, 'acked', t.failed_token_hash,
    t.last_error, t.last_error_at, t.created_at, 'done', :at, :keep_until
FROM {by_key}
WHERE t.seq IN :seqs
ORDER BY t.seq

-- name: bury_many
-- Into the dead letters; the live rows go in the same transaction.
INSERT INTO mq_task_dlq (tenant_id, task_id, {described}, reason, failed_at)
SELECT t.tenant_id, t.id, {moved}, m.reason, m.at
FROM {moves}
{each_task} t.seq = m.seq
ORDER BY t.seq

-- name: entomb_many
-- A done task whose dedupe key is held on: only the key and the id stay.
UPDATE {moves}
{each_task} t.seq = m.seq
SET t.status = 'done', t.id = NULL, t.tombstone_id = m.task_id, t.dedupe_until = m.dedupe_until, t.payload = '',
    t.meta = '{}', t.size = 0,
    t.lease_owner = NULL, t.lease_token_hash = NULL, t.lease_until = NULL, t.leased_at = NULL, t.updated_at = m.at

-- name: delete_many
-- By their keys too: DELETE does not know FORCE INDEX, and a hint is passed over by servers older than 8.0.20.
DELETE /*+ INDEX(mq_tasks PRIMARY) */ FROM mq_tasks WHERE seq IN :seqs

-- name: insert_attempts
INSERT INTO mq_task_attempts (
    tenant_id, task_id, queue, type, attempt_no, worker_id, started_at, finished_at, success, reason
)
SELECT
    :tenant_id, a.task_id, a.queue, a.type, a.attempt_no, a.worker_id, a.started_at, a.finished_at, a.success, a.reason
FROM JSON_TABLE(:attempts, '$[*]' COLUMNS (
    task_id VARCHAR(64) PATH '$.task_id', queue VARCHAR(255) PATH '$.queue', type VARCHAR(255) PATH '$.type',
    attempt_no INT PATH '$.attempt_no', worker_id VARCHAR(128) PATH '$.worker_id',
    started_at DATETIME(6) PATH '$.started_at', finished_at DATETIME(6) PATH '$.finished_at',
    success BOOLEAN PATH '$.success', reason TEXT PATH '$.reason'
)) AS a

-- name: log_acked
-- Likewise of those that were acked, before their rows go.
INSERT INTO mq_task_attempts (
    tenant_id, task_id, queue, type, attempt_no, worker_id, started_at, finished_at, success
)
SELECT t.tenant_id, t.id, t.queue, t.type, t.attempts, t.lease_owner, t.leased_at, :at, true
FROM {by_key}
WHERE t.seq IN :seqs
ORDER BY t.seq

-- name: find_finished
-- The tokens of these tasks as they ended, as far as that is known.
SELECT task_id, queue, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_history
WHERE tenant_id = :tenant_id AND task_id IN :ids
UNION ALL
SELECT task_id, queue, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_dlq
WHERE tenant_id = :tenant_id AND task_id IN :ids

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
SELECT t.seq FROM mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
WHERE t.queue_id IN :queue_ids AND t.status = 'ready' AND t.seq > :after_seq
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY t.seq
LIMIT :limit

-- name: find_scheduled
SELECT t.seq FROM mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
WHERE t.queue_id IN :queue_ids AND t.status = 'scheduled' AND t.line_rank = 0 AND t.seq > :after_seq
    AND t.line_at <= :due_by -- if due_by is given
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY t.seq
LIMIT :limit

-- name: find_leased
SELECT t.seq FROM mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
WHERE t.queue_id IN :queue_ids AND t.status = 'leased' AND t.line_rank = 0 AND t.seq > :after_seq
    AND t.line_at <= :due_by -- if due_by is given
    AND t.queue = :queue -- if queue is given
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY t.seq
LIMIT :limit

-- name: read_live
-- Those of these rows that are tasks still: one that was done meanwhile may have left its key there.
SELECT {live_task},
{state_by_now}
FROM {tasks}
WHERE t.seq IN :seqs
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
    AND f.finished_at <= :after_at AND (f.finished_at < :after_at OR f.id < :after_id) -- if after_at is given
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
    AND f.failed_at <= :after_at AND (f.failed_at < :after_at OR f.id < :after_id) -- if after_at is given
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
FOR UPDATE

-- name: lock_dead_letters
-- Some dead letters, oldest first, locked; those that somebody else is moving are left to them.
SELECT f.id AS row_id, f.task_id, f.queue, f.dedupe_key, f.attempts, f.max_attempts, f.expires_at, f.created_at
FROM mq_task_dlq AS f
WHERE {letters}
    AND f.id > :after_id AND f.id <= :last_id
ORDER BY f.id
LIMIT :limit
FOR UPDATE SKIP LOCKED

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
FROM JSON_TABLE(:letters, '$[*]' COLUMNS (
    row_id BIGINT PATH '$.row_id', queue_id BIGINT PATH '$.queue_id', status VARCHAR(16) PATH '$.status',
    attempts INT PATH '$.attempts', max_attempts INT PATH '$.max_attempts',
    available_at DATETIME(6) PATH '$.available_at', expires_at DATETIME(6) PATH '$.expires_at'
)) AS r
JOIN mq_task_dlq AS f ON f.id = r.row_id
ORDER BY f.id

-- name: delete_dead_letters
DELETE FROM mq_task_dlq WHERE id IN :row_ids

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
FOR SHARE

-- name: lock_topic
SELECT name, created_at FROM mq_topics WHERE tenant_id = :tenant_id AND name = :name
FOR SHARE

-- name: lock_topic_to_delete
SELECT name, created_at FROM mq_topics WHERE tenant_id = :tenant_id AND name = :name
FOR UPDATE

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
WHERE t.queue_id = :queue_id AND t.status = 'ready' AND t.seq <= :last_seq
ORDER BY t.line_rank, t.line_at, t.seq
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: lock_scheduled
SELECT t.seq FROM mq_tasks AS t
WHERE t.queue_id = :queue_id AND t.status = 'scheduled' AND t.line_rank = 0 AND t.seq <= :last_seq
ORDER BY t.line_at
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: last_seq
SELECT coalesce(max(seq), 0) AS last_seq FROM mq_tasks

-- name: pick_history
-- Finished tasks of a queue that ended before a moment.
SELECT id AS row_id, tenant_id, task_id, finished_at FROM mq_task_history
WHERE tenant_id = :tenant_id AND queue = :queue AND status = :status AND finished_at <= :before
ORDER BY finished_at, id
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: pick_history_to_drop
-- Finished tasks of anybody that have been kept for long enough.
SELECT id AS row_id, tenant_id, task_id, finished_at FROM mq_task_history
WHERE keep_until <= :now
ORDER BY keep_until
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: delete_history
DELETE FROM mq_task_history WHERE id IN :row_ids

-- name: delete_attempts_of
-- The attempts of tasks that are gone, but not those of a later one that has the same id.
DELETE a FROM mq_task_attempts AS a
JOIN JSON_TABLE(:tasks, '$[*]' COLUMNS (
    tenant_id VARCHAR(64) PATH '$.tenant_id', task_id VARCHAR(64) PATH '$.task_id',
    finished_at DATETIME(6) PATH '$.finished_at'
)) AS f ON a.tenant_id = f.tenant_id COLLATE utf8mb4_0900_bin
    AND a.task_id = f.task_id COLLATE utf8mb4_0900_bin AND a.started_at <= f.finished_at

-- name: count_of_queue
-- How many tasks there are in each state, counted up to a bound, or all of them.
SELECT 'ready' AS status, count(*) AS tasks
FROM (
    SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'ready'
    LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'scheduled', count(*)
FROM (
    SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'scheduled'
    LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'leased', count(*)
FROM (
    SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'leased'
    LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'done', count(*)
FROM (
    SELECT 1 FROM mq_task_history WHERE tenant_id = :tenant_id AND queue = :queue AND status = 'done'
    LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'expired', count(*)
FROM (
    SELECT 1 FROM mq_task_history WHERE tenant_id = :tenant_id AND queue = :queue AND status = 'expired'
    LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'cancelled', count(*)
FROM (
    SELECT 1 FROM mq_task_history WHERE tenant_id = :tenant_id AND queue = :queue AND status = 'cancelled'
    LIMIT :bound -- if bound is given
) AS counted
UNION ALL
SELECT 'dead', count(*)
FROM (
    SELECT 1 FROM mq_task_dlq WHERE tenant_id = :tenant_id AND queue = :queue
    LIMIT :bound -- if bound is given
) AS counted

-- name: count_ready_by_priority
SELECT priority, count(*) AS tasks, min(available_at) AS oldest_at
FROM (
    SELECT -line_rank AS priority, line_at AS available_at
    FROM mq_tasks WHERE queue_id = :queue_id AND status = 'ready'
    LIMIT :bound -- if bound is given
) AS counted
GROUP BY priority
ORDER BY priority DESC

-- name: count_ahead
-- How many ready tasks of the queue come before this one, counted up to a bound.
SELECT count(*) AS ahead
FROM (
    (
        SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'ready' AND line_rank < -:priority LIMIT :bound
    )
    UNION ALL
    (
        SELECT 1 FROM mq_tasks
        WHERE queue_id = :queue_id AND status = 'ready' AND line_rank = -:priority AND line_at < :available_at
        LIMIT :bound
    )
    UNION ALL
    (
        SELECT 1 FROM mq_tasks
        WHERE queue_id = :queue_id AND status = 'ready' AND line_rank = -:priority AND line_at = :available_at
            AND seq < :seq
        LIMIT :bound
    )
    LIMIT :bound
) AS counted

-- name: queues_with_overdue
-- Those of the queues in which time has changed something that nobody has moved yet; the first of each kind tells.
SELECT DISTINCT q.tenant_id, q.id AS queue_id
FROM (
    SELECT queue_id, min(line_at) AS at FROM mq_tasks FORCE INDEX (ix_mq_tasks_ready)
    WHERE status IN ('leased', 'scheduled') AND queue_id IN :queue_ids AND line_rank = 0 GROUP BY status, queue_id
    UNION ALL
    SELECT queue_id, min(expires_at) FROM mq_tasks FORCE INDEX (ix_mq_tasks_expiring)
    WHERE queue_id IN :queue_ids GROUP BY queue_id
) AS first
JOIN mq_queues AS q ON q.id = first.queue_id
WHERE first.at <= :now

-- name: next_queue_ids
-- The next few of anybody's queues.
SELECT id FROM mq_queues WHERE id > :after_id ORDER BY id LIMIT :limit

-- name: ended_queues
-- Exclusive queues of anybody whose time is over.
SELECT {queue} FROM mq_queues AS q WHERE q.keep_alive_until <= :now ORDER BY q.keep_alive_until LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: lock_graves_to_clear
-- Graves of anybody in which something may be left.
SELECT queue_id, tenant_id, deleted_at FROM mq_queue_graves
WHERE clear_at <= :now
ORDER BY clear_at
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: lock_graves_to_look_at
-- Graves of a tenant in which time may have changed something.
SELECT queue_id, tenant_id, deleted_at FROM mq_queue_graves
WHERE tenant_id = :tenant_id AND look_at <= :now
ORDER BY look_at
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: list_graves_with_leases
SELECT queue_id FROM mq_queue_graves WHERE tenant_id = :tenant_id AND has_leases

-- name: next_lease_ends
-- When the first of the leases in each of these queues ends.
SELECT queue_id, min(line_at) AS lease_until FROM mq_tasks
WHERE queue_id IN :queue_ids AND status = 'leased' AND line_rank = 0
GROUP BY status, queue_id

-- name: look_at_grave_later
UPDATE mq_queue_graves SET look_at = :at, has_leases = :has_leases WHERE queue_id = :queue_id

-- name: clear_grave_later
UPDATE mq_queue_graves SET clear_at = :at WHERE queue_id = :queue_id

-- name: delete_grave
DELETE FROM mq_queue_graves WHERE queue_id = :queue_id

-- name: lock_old_tombstones
-- Dedupe keys that have been held no longer for a while.
SELECT t.seq
FROM (
    SELECT queue_id, min(line_at) AS at FROM mq_tasks FORCE INDEX (ix_mq_tasks_ready)
    WHERE status = 'done' AND line_rank = 0 GROUP BY status, queue_id
) AS first
STRAIGHT_JOIN mq_tasks AS t FORCE INDEX (ix_mq_tasks_ready)
    ON t.status = 'done' AND t.queue_id = first.queue_id AND t.line_rank = 0 AND t.line_at <= :before
WHERE first.at <= :before
LIMIT :limit
FOR UPDATE OF t SKIP LOCKED

-- name: queues_with_dlq_days
SELECT q.tenant_id, q.name, q.dlq_days FROM mq_queues AS q WHERE q.dlq_days IS NOT NULL ORDER BY q.id

-- name: lock_old_dead_letters
SELECT id AS row_id, tenant_id, task_id, failed_at AS finished_at FROM mq_task_dlq
WHERE tenant_id = :tenant_id AND queue = :queue AND failed_at <= :before
ORDER BY failed_at, id
LIMIT :limit
FOR UPDATE SKIP LOCKED

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
FOR UPDATE

-- name: lock_next_operation
-- The operation of anybody that is to go on next; one that somebody else is at is left to them.
SELECT * FROM mq_operations WHERE status = 'running' ORDER BY next_at LIMIT 1
FOR UPDATE SKIP LOCKED

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
-- The indexes of our tables, and how often each was used since the server began to count.
SELECT s.index_name AS index_name, true AS is_valid, max(s.non_unique) = 0 AS is_unique, max(u.count_read) AS scans,
    NULL AS bytes
FROM information_schema.statistics AS s
LEFT JOIN performance_schema.table_io_waits_summary_by_index_usage AS u
    ON u.object_schema = s.table_schema AND u.object_name = s.table_name AND u.index_name = s.index_name
WHERE s.table_schema = database() AND s.table_name LIKE 'mq\\_%'
GROUP BY s.table_name, s.index_name

-- name: count_dead_rows
-- Versions of rows that somebody might still want to see, in all databases of the server.
SELECT 'undo log' AS place, NULL AS live, m.count AS dead
FROM information_schema.innodb_metrics AS m
WHERE m.name = 'trx_rseg_history_len'

-- name: oldest_transaction
-- How long the oldest transaction of somebody else has been open.
SELECT timestampdiff(SECOND, min(trx_started), convert_tz(utc_timestamp(), '+00:00', 'SYSTEM')) AS seconds
FROM information_schema.innodb_trx
WHERE trx_mysql_thread_id <> connection_id()
