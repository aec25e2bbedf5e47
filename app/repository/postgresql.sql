-- PostgreSQL. The statements stand in the same order in the file of every dialect.
-- `:moves` and the like are JSON arrays of objects; `:now` is NULL only in `open`.

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
t.size + coalesce(octet_length(t.last_error), 0)

-- part: live_task
t.seq, t.queue_id, {size_in_reply} AS size, t.tenant_id, t.id, t.queue, t.topic, t.publish_id, t.type, t.payload,
    t.payload_is_json, t.content_type, t.meta,
    t.priority, t.dedupe_key, t.attempts, t.max_attempts, t.available_at, t.expires_at, t.timeout_seconds,
    t.last_error, t.last_error_at, t.created_at, t.updated_at, t.first_leased_at

-- part: said_once
-- Of what is the same for all tasks of a claim, the first row tells.
n.position, CASE WHEN n.position = 1 THEN clock.now END AS now,
    CASE WHEN n.position = 1 THEN clock.now + q.lease END AS leased_until,
    CASE WHEN n.position = 1 THEN q.id END AS queue_id, CASE WHEN n.position = 1 THEN q.returns END AS returns

-- part: leased_task
-- What is as usual is NULL: to send and to read it for every task would cost more than to lease the task.
t.seq, t.id, nullif(t.topic, t.queue) AS topic, t.publish_id, nullif(t.type, '') AS type, t.payload, t.payload_is_json,
    nullif(t.content_type, 'application/json') AS content_type, nullif(t.meta, '{}') AS meta, t.priority, t.dedupe_key,
    t.attempts, t.max_attempts, nullif(t.available_at, t.created_at) AS available_at, t.expires_at, t.timeout_seconds,
    nullif(t.lease_until, clock.now + q.lease) AS lease_until, t.last_error, t.last_error_at, t.created_at,
    nullif(t.updated_at, clock.now) AS updated_at, nullif(t.first_leased_at, clock.now) AS first_leased_at

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
jsonb_to_recordset(CAST(:moves AS jsonb)) AS m (
    seq bigint, status text, at timestamptz, attempts int, available_at timestamptz, reason text, error text,
    error_at timestamptz, result text, token_hash text, token_fate text, keep_until timestamptz,
    dedupe_until timestamptz
)

-- part: each_by_tid
-- The rows are locked, so each stays where it is. A join by key would read a table that was once found empty from end to
-- end, however much has come since.
CROSS JOIN LATERAL (SELECT held.ctid AS tid FROM mq_tasks AS held WHERE held.seq = m.seq LIMIT 1) AS held
WHERE t.ctid = held.tid

-- part: moved
t.queue, t.topic, t.publish_id, t.type, t.payload, t.payload_is_json, t.content_type, t.meta, t.size, t.priority,
    t.dedupe_key, t.dedupe_seconds, m.attempts, t.max_attempts, m.available_at, t.expires_at, t.timeout_seconds,
    t.first_leased_at, t.last_worker, m.token_hash, m.token_fate, t.failed_token_hash,
    coalesce(m.error, t.last_error), coalesce(m.error_at, t.last_error_at), t.created_at

-- part: acked
-- Those of the given leases that are held under their tokens and leave no tombstone: their rows go, and are archived.
WITH clock AS MATERIALIZED (SELECT coalesce(CAST(:now AS timestamptz), clock_timestamp()) AS now),
acked AS (
    -- In the order of their ids, whoever else acks some of them. Who changes a row meanwhile is waited for, and everything that is
    -- asked of it is looked at again. The tokens are not joined: a plan of that which was made for an empty table would read
    -- all of a full one.
    DELETE FROM mq_tasks AS t
    WHERE t.id = ANY(string_to_array(:ids, ' ')) AND t.tenant_id = :tenant_id
        AND ((t.id, t.lease_token_hash) IN (
            SELECT * FROM unnest(string_to_array(:ids, ' '), string_to_array(:token_hashes, ' '))
        )) IS TRUE
        AND t.lease_until > (SELECT now FROM clock)
        AND (t.dedupe_key IS NULL OR t.dedupe_seconds = 0)
    RETURNING t.*
),
homes AS MATERIALIZED (
    -- How long each of the queues keeps its history, in the order of their ids: to ask it of every task takes longer.
    SELECT array_agg(named.queue_id ORDER BY named.queue_id) AS ids, array_agg(
        clock.now + greatest(
            make_interval(secs => 86400 * CASE WHEN q.id IS NULL THEN :default_history_days ELSE q.history_days END),
            CASE WHEN q.id IS NULL OR q.history_days IS NOT NULL THEN INTERVAL '1 hour' END
        ) ORDER BY named.queue_id
    ) AS keep_until
    FROM clock CROSS JOIN (SELECT DISTINCT queue_id FROM acked) AS named
    LEFT JOIN LATERAL (SELECT q.id, q.history_days FROM mq_queues AS q WHERE q.id = named.queue_id LIMIT 1) AS q ON true
),
archived AS (
    INSERT INTO mq_task_history (tenant_id, task_id, {described}, status, result, finished_at, keep_until)
    SELECT t.tenant_id, t.id, t.queue, t.topic, t.publish_id, t.type, t.payload, t.payload_is_json, t.content_type,
        t.meta, t.size, t.priority, t.dedupe_key, t.dedupe_seconds, t.attempts, t.max_attempts, t.available_at,
        t.expires_at, t.timeout_seconds, t.first_leased_at, t.last_worker, t.lease_token_hash, 'acked',
        t.failed_token_hash, t.last_error, t.last_error_at, t.created_at, 'done', CAST(:results AS jsonb) ->> t.id, clock.now,
        homes.keep_until[width_bucket(t.queue_id, homes.ids)]
    FROM clock CROSS JOIN homes CROSS JOIN acked AS t
)

-- part: granted
status = 'leased', attempts = t.attempts + 1, lease_owner = n.worker_id, last_worker = n.worker_id,
    lease_token_hash = n.token_hash, last_token_hash = NULL, last_token_fate = NULL

-- part: dealt_out
-- The first task goes with the first token, and so on; of tokens there may be more.
CROSS JOIN LATERAL (
    SELECT given.*, (CAST(:worker_ids AS text[]))[width_bucket(given.position, CAST(:begins AS bigint[]))] AS worker_id
    FROM unnest(c.tids, string_to_array(:token_hashes, ' ')) WITH ORDINALITY AS given (tid, token_hash, position)
) AS n
WHERE t.ctid = n.tid

-- part: leased_now
leased_at = greatest(:now, t.updated_at), first_leased_at = coalesce(t.first_leased_at, greatest(:now, t.updated_at)),
    updated_at = greatest(:now, t.updated_at)

-- part: ready_here
SELECT t.ctid AS tid, {size_in_reply} AS size
            FROM mq_tasks AS t
            WHERE t.queue_id = (SELECT id FROM open_queue) AND t.status = 'ready'
                AND (t.expires_at IS NULL OR t.expires_at > (SELECT now FROM clock))
                AND t.id <> ALL(CAST(:exclude_ids AS text[]))

-- part: the_first
ORDER BY t.priority DESC, t.available_at, t.seq
            LIMIT :limit
            FOR UPDATE SKIP LOCKED

-- part: picked_from_start
-- A part is looked at, and its rows are locked, only while those before it have not enough; so they come in their order.
picked AS (
    SELECT array_agg(tid) AS tids, array_agg(size) AS sizes, sum(size) AS bytes
    FROM (
        SELECT * FROM (
            {ready_here}
                AND t.priority > (SELECT start_priority FROM open_queue)
                AND t.available_at >= (SELECT looked_until FROM open_queue)
            {the_first}
        ) AS more_urgent
        UNION ALL
        SELECT * FROM (
            {ready_here}
                AND t.priority = (SELECT start_priority FROM open_queue)
                AND (t.available_at, t.seq) > (SELECT start_at, start_seq FROM open_queue)
            {the_first}
        ) AS as_urgent
        UNION ALL
        SELECT * FROM (
            {ready_here}
                AND t.priority < (SELECT start_priority FROM open_queue)
            {the_first}
        ) AS less_urgent
        LIMIT :limit
    ) AS in_order
),
chosen AS MATERIALIZED (
    -- Where the tasks are that the reply has room for, which nearly always is for all. See `each_by_tid`.
    SELECT CASE WHEN bytes <= :max_bytes THEN tids ELSE tids[:(
        SELECT count(*)
        FROM (SELECT sum(size) OVER (ROWS UNBOUNDED PRECEDING) - size AS bytes_before FROM unnest(sizes) AS each (size)) AS sized
        WHERE bytes_before < :max_bytes
    )] END AS tids
    FROM picked
)

-- part: lanes
-- Each begins at the start that is remembered of it, unless something came back to its queue since.
    SELECT l.queue_id, l.type, l.place, l.room, l.lease_until, coalesce(r.returns, 0) AS returns,
        CASE WHEN start.holds THEN l.start_priority ELSE -2147483649 END AS start_priority,
        CASE WHEN start.holds THEN l.start_at ELSE '-infinity' END AS start_at,
        CASE WHEN start.holds THEN l.start_seq ELSE 0 END AS start_seq,
        CASE WHEN start.holds THEN l.looked_until ELSE '-infinity' END AS looked_until
    FROM jsonb_to_recordset(CAST(:lanes AS jsonb)) AS l (
        queue_id bigint, type text, place int, room int, lease_until timestamptz, start_queue_id bigint,
        start_returns bigint, start_priority bigint, start_at timestamptz, start_seq bigint, looked_until timestamptz
    )
    LEFT JOIN mq_queue_returns AS r ON r.queue_id = l.queue_id
    CROSS JOIN LATERAL (
        SELECT l.queue_id = l.start_queue_id AND coalesce(r.returns, 0) = l.start_returns AS holds
    ) AS start

-- part: ready_in_lane
SELECT t.seq, t.priority, t.available_at
                FROM mq_tasks AS t
                WHERE t.queue_id = lanes.queue_id AND t.status = 'ready'
                    AND (t.expires_at IS NULL OR t.expires_at > :now)
                    AND t.id <> ALL(CAST(:exclude_ids AS text[]))

-- part: of_any_type
AND coalesce(lanes.type, '') = '' AND t.type = coalesce(lanes.type, t.type)

-- part: of_its_type
AND lanes.type <> '' AND t.type <> '' AND t.type = lanes.type

-- part: more_urgent
AND t.priority > lanes.start_priority AND t.available_at >= lanes.looked_until

-- part: as_urgent
AND t.priority = lanes.start_priority AND (t.available_at, t.seq) > (lanes.start_at, lanes.start_seq)

-- part: less_urgent
AND t.priority < lanes.start_priority

-- part: best_of_lane
ORDER BY t.priority DESC, t.available_at, t.seq
                LIMIT :limit

-- part: letters
f.tenant_id = :tenant_id
    AND f.queue = :queue -- if queue is given
    AND f.topic = :topic -- if topic is given
    AND f.type = :type -- if type is given
    AND strpos(f.reason, :reason_contains) > 0 -- if reason_contains is given
    AND f.failed_at < :before -- if before is given
    AND f.failed_at > :after -- if after is given
    AND f.task_id = ANY(CAST(:ids AS text[])) -- if ids is given

-- name: open
-- The one instant at which everything in a transaction happens, and the queues that it is about.
SELECT clock.now, {queue}
FROM (SELECT coalesce(CAST(:now AS timestamptz), clock_timestamp()) AS now) AS clock
LEFT JOIN mq_queues AS q ON q.tenant_id = :tenant_id AND q.name = ANY(CAST(:names AS text[]))

-- name: list_queue_ids
SELECT q.id, q.name FROM mq_queues AS q WHERE q.tenant_id = :tenant_id

-- name: lock_queues
-- These queues, locked in order of name: their limits are looked at under the lock.
SELECT {queue} FROM mq_queues AS q WHERE q.id = ANY(CAST(:queue_ids AS bigint[])) ORDER BY q.name
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
SELECT id, tenant_id, least(coalesce(keep_alive_until, CAST(:now AS timestamptz)), :now), CAST(:now AS timestamptz),
    CAST(:now AS timestamptz), CAST(:now AS timestamptz), true
FROM mq_queues WHERE id = :queue_id

-- name: delete_queue
DELETE FROM mq_queues WHERE id = :queue_id

-- name: find_id_holders
-- The live tasks that have one of these ids.
SELECT {state} FROM {tasks}
WHERE t.tenant_id = :tenant_id AND t.id = ANY(CAST(:ids AS text[]))

-- name: find_key_holders
-- The tasks and tombstones that hold one of these dedupe keys.
SELECT {state}
FROM jsonb_to_recordset(CAST(:keys AS jsonb)) AS k (queue_id bigint, dedupe_key text)
CROSS JOIN LATERAL (
    SELECT * FROM mq_tasks AS t WHERE t.queue_id = k.queue_id AND t.dedupe_key = k.dedupe_key LIMIT 1
) AS t
LEFT JOIN mq_queues AS q ON q.id = t.queue_id
LEFT JOIN mq_queue_graves AS g ON g.queue_id = t.queue_id

-- name: insert_tasks
-- New tasks, numbered in input order but inserted in order of key and id: of two batches that have some in common, the one
-- waits for the other, and never both. One whose id or dedupe key is taken after all is left out.
WITH accepted AS MATERIALIZED (
    SELECT nextval(pg_get_serial_sequence('mq_tasks', 'seq')) AS seq, given.*
    FROM (
        SELECT n.*, p.payload
        FROM jsonb_to_recordset(CAST(:tasks AS jsonb)) AS n (
            position bigint, queue_id bigint, id text, queue text, topic text, publish_id text, type text,
            payload_is_json boolean, content_type text, meta text, size int, priority int, dedupe_key text,
            dedupe_seconds float8, status text, max_attempts int, available_at timestamptz, expires_at timestamptz,
            timeout_seconds float8
        )
        JOIN unnest(CAST(:payloads AS bytea[])) WITH ORDINALITY AS p (payload, position) ON p.position = n.position
        ORDER BY n.position
    ) AS given
)
INSERT INTO mq_tasks (
    seq, tenant_id, queue_id, id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size,
    priority, dedupe_key, dedupe_seconds, status, attempts, max_attempts, available_at, expires_at, timeout_seconds,
    created_at, updated_at
)
SELECT
    a.seq, :tenant_id, a.queue_id, a.id, a.queue, a.topic, a.publish_id, a.type, a.payload, a.payload_is_json,
    a.content_type, a.meta, a.size, a.priority, a.dedupe_key, a.dedupe_seconds, a.status, 0, a.max_attempts,
    a.available_at, a.expires_at, a.timeout_seconds, :now, :now
FROM accepted AS a
ORDER BY a.queue_id, a.dedupe_key, a.id
ON CONFLICT DO NOTHING
RETURNING id

-- name: probe_overdue
-- Whether time has changed anything in these queues that nobody has moved yet: the first of each kind tells.
WITH lanes AS MATERIALIZED (
    {lanes}
)
SELECT EXISTS (
    SELECT
    FROM lanes CROSS JOIN LATERAL (
        (
            SELECT FROM mq_tasks AS t
            WHERE t.queue_id = lanes.queue_id AND t.status = 'leased'
                AND t.lease_until > lanes.looked_until AND t.lease_until <= :now
            ORDER BY t.lease_until
            LIMIT 1
        )
        UNION ALL
        (
            SELECT FROM mq_tasks AS t
            WHERE t.queue_id = lanes.queue_id AND t.status = 'scheduled'
                AND t.available_at > lanes.looked_until AND t.available_at <= :now
            ORDER BY t.available_at
            LIMIT 1
        )
        UNION ALL
        (
            SELECT FROM mq_tasks AS t
            WHERE t.queue_id = lanes.queue_id AND t.status IN ('scheduled', 'ready')
                AND t.expires_at > lanes.looked_until AND t.expires_at <= :now
            ORDER BY t.expires_at
            LIMIT 1
        )
    ) AS first
) AS overdue

-- name: lock_overdue
-- Tasks of these queues that time has changed, locked; those that somebody else is moving are left to them.
SELECT {state}
FROM {tasks}
JOIN (
    SELECT DISTINCT first.seq
    FROM unnest(CAST(:queue_ids AS bigint[])) AS asked (queue_id) CROSS JOIN LATERAL (
        (
            SELECT o.seq FROM mq_tasks AS o
            WHERE o.queue_id = asked.queue_id AND o.status = 'leased' AND o.lease_until <= :now
            ORDER BY o.lease_until
            LIMIT :limit
        )
        UNION ALL
        (
            SELECT o.seq FROM mq_tasks AS o
            WHERE o.queue_id = asked.queue_id AND o.status = 'scheduled' AND o.available_at <= :now
            ORDER BY o.available_at
            LIMIT :limit
        )
        UNION ALL
        (
            SELECT o.seq FROM mq_tasks AS o
            WHERE o.queue_id = asked.queue_id
                AND o.status IN ('scheduled', 'ready') AND o.expires_at <= :now
            ORDER BY o.expires_at
            LIMIT :limit
        )
    ) AS first
    LIMIT :limit
) AS overdue ON overdue.seq = t.seq
FOR UPDATE OF t SKIP LOCKED

-- name: lock_rows
-- These rows, locked in order.
SELECT {state} FROM {tasks} WHERE t.seq = ANY(CAST(:seqs AS bigint[])) ORDER BY t.seq FOR UPDATE OF t

-- name: lock_tasks
-- The live tasks of these ids, locked in order.
SELECT {state} FROM {tasks}
WHERE t.tenant_id = :tenant_id AND t.id = ANY(CAST(:ids AS text[]))
ORDER BY t.id
FOR UPDATE OF t

-- name: claim_queue
-- Leases the first ready tasks of one queue; rows that somebody else is claiming are passed over.
WITH clock AS MATERIALIZED (SELECT CAST(:now AS timestamptz) AS now),
lanes AS MATERIALIZED (
    {lanes}
),
open_queue AS MATERIALIZED (SELECT queue_id AS id, lanes.* FROM lanes),
{picked_from_start},
claimed AS (
    UPDATE mq_tasks AS t
    SET {granted}, {leased_now}, lease_until = q.lease_until + (greatest(:now, t.updated_at) - CAST(:now AS timestamptz))
    FROM open_queue AS q CROSS JOIN chosen AS c
    {dealt_out}
    RETURNING n.position, {live_task}, t.status, t.lease_owner, t.lease_until
)
SELECT 0 AS candidates, lanes.queue_id AS lane_queue_id, lanes.type AS lane_type,
    lanes.returns, NULL AS first_priority, NULL AS first_at, NULL AS first_seq, claimed.*
FROM lanes LEFT JOIN claimed ON true

-- name: claim_lanes
-- The same over several queues, or for some types only: the best of every lane without a lock, merged, then the winners
-- locked and looked at again. Among equal priorities the queues take turns. `candidates` tells whether there were any.
WITH lanes AS MATERIALIZED (
    {lanes}
),
candidates AS MATERIALIZED (
    SELECT best.*, lanes.queue_id, lanes.type, lanes.place, lanes.room, lanes.lease_until
    FROM lanes CROSS JOIN LATERAL (
        -- What is looked at one after the other comes in its order.
        SELECT *, row_number() OVER () AS nth_of_lane
        FROM (
            SELECT * FROM (
                {ready_in_lane}
                    {of_any_type}
                    {more_urgent}
                {best_of_lane}
            ) AS more_urgent
            UNION ALL
            SELECT * FROM (
                {ready_in_lane}
                    {of_any_type}
                    {as_urgent}
                {best_of_lane}
            ) AS as_urgent
            UNION ALL
            SELECT * FROM (
                {ready_in_lane}
                    {of_any_type}
                    {less_urgent}
                {best_of_lane}
            ) AS less_urgent
            UNION ALL
            SELECT * FROM (
                {ready_in_lane}
                    {of_its_type}
                    {more_urgent}
                {best_of_lane}
            ) AS more_urgent_of_type
            UNION ALL
            SELECT * FROM (
                {ready_in_lane}
                    {of_its_type}
                    {as_urgent}
                {best_of_lane}
            ) AS as_urgent_of_type
            UNION ALL
            SELECT * FROM (
                {ready_in_lane}
                    {of_its_type}
                    {less_urgent}
                {best_of_lane}
            ) AS less_urgent_of_type
            LIMIT :limit
        ) AS in_order
    ) AS best
),
ranked AS (
    SELECT * FROM (
        SELECT seq, priority, place, room, lease_until,
            row_number() OVER (PARTITION BY queue_id, priority ORDER BY available_at, seq) AS turn,
            row_number() OVER (PARTITION BY queue_id ORDER BY priority DESC, available_at, seq) AS nth
        FROM candidates
    ) AS numbered
    WHERE nth <= room
    ORDER BY priority DESC, turn, place
    LIMIT :limit
),
picked AS (
    SELECT still_ready.tid, r.priority, r.turn, r.place, r.lease_until, still_ready.size
    FROM ranked AS r
    CROSS JOIN LATERAL (
        SELECT t.ctid AS tid, {size_in_reply} AS size FROM mq_tasks AS t
        WHERE t.seq = r.seq AND t.status = 'ready' AND t.priority = r.priority
        LIMIT 1
        FOR UPDATE SKIP LOCKED
    ) AS still_ready
),
numbered AS (
    SELECT tid, lease_until, row_number() OVER in_order AS position, sum(size) OVER in_order - size AS bytes_before
    FROM picked
    WINDOW in_order AS (ORDER BY priority DESC, turn, place)
),
chosen AS MATERIALIZED (
    SELECT array_agg(tid ORDER BY position) FILTER (WHERE bytes_before < :max_bytes) AS tids,
        array_agg(lease_until ORDER BY position) AS ends
    FROM numbered
),
claimed AS (
    UPDATE mq_tasks AS t
    SET {granted}, {leased_now},
        lease_until = c.ends[n.position] + (greatest(:now, t.updated_at) - CAST(:now AS timestamptz))
    FROM chosen AS c
    {dealt_out}
    RETURNING n.position, {live_task}, t.status, t.lease_owner, t.lease_until
)
SELECT (SELECT count(*) FROM ranked) AS candidates, lanes.queue_id AS lane_queue_id, lanes.type AS lane_type,
    lanes.returns, first.priority AS first_priority, first.available_at AS first_at, first.seq AS first_seq, claimed.*
FROM lanes
LEFT JOIN candidates AS first
    ON first.queue_id = lanes.queue_id AND first.type IS NOT DISTINCT FROM lanes.type AND first.nth_of_lane = 1
LEFT JOIN claimed ON claimed.queue_id = lanes.queue_id AND claimed.type = coalesce(lanes.type, claimed.type)

-- name: next_available
-- For each of these lanes: when its next task is due, or may come back because its lease ends, if that is not known.
SELECT l.queue_id, l.type, upcoming.lease_until, least(upcoming.due_at, upcoming.lease_until) AS next_at
FROM jsonb_to_recordset(CAST(:lanes AS jsonb)) AS l (
    queue_id bigint, type text, looked_until timestamptz, knows_leases boolean
)
CROSS JOIN LATERAL (
    SELECT (
        SELECT t.available_at
        FROM mq_tasks AS t
        WHERE t.queue_id = l.queue_id AND t.status = 'scheduled'
            AND t.available_at > coalesce(l.looked_until, '-infinity')
            AND (t.expires_at IS NULL OR t.expires_at > t.available_at)
            AND (l.type IS NULL OR t.type = l.type)
        ORDER BY t.available_at
        LIMIT 1
    ) AS due_at, (
        SELECT t.lease_until
        FROM mq_tasks AS t
        WHERE l.knows_leases IS NOT TRUE
            AND t.queue_id = l.queue_id AND t.status = 'leased'
            AND t.lease_until > coalesce(l.looked_until, '-infinity')
            AND (t.max_attempts = 0 OR t.attempts < t.max_attempts)
            AND (t.expires_at IS NULL OR t.expires_at > t.lease_until)
            AND (l.type IS NULL OR t.type = l.type)
        ORDER BY t.lease_until
        LIMIT 1
    ) AS lease_until
) AS upcoming

-- name: count_leased
-- How many leases run in these queues.
SELECT queue_id, count(*) AS leased FROM mq_tasks
WHERE queue_id = ANY(CAST(:queue_ids AS bigint[])) AND status = 'leased' AND lease_until > :now
GROUP BY queue_id

-- name: queues_with_ready
SELECT q.id AS queue_id FROM mq_queues AS q
WHERE q.id = ANY(CAST(:queue_ids AS bigint[])) AND EXISTS (
    SELECT 1 FROM mq_tasks AS t WHERE t.queue_id = q.id AND t.status = 'ready'
)

-- name: set_rate_left
UPDATE mq_queues SET rate_left = :rate_left, rate_left_at = :now WHERE id = :queue_id

-- name: extend_many
-- The leases end that long from now.
UPDATE mq_tasks AS t SET lease_until = m.lease_until, updated_at = :now
FROM jsonb_to_recordset(CAST(:moves AS jsonb)) AS m (seq bigint, lease_until timestamptz)
{each_by_tid}

-- name: return_many
-- Back to the queue, without a lease.
UPDATE mq_tasks AS t
SET status = m.status, attempts = m.attempts, available_at = m.available_at,
    lease_owner = NULL, lease_token_hash = NULL, lease_until = NULL, leased_at = NULL,
    last_token_hash = m.token_hash, last_token_fate = m.token_fate,
    last_error = coalesce(m.error, t.last_error), last_error_at = coalesce(m.error_at, t.last_error_at),
    updated_at = m.at
FROM {moves}
{each_by_tid}

-- name: count_returns
-- Something came back to these queues; locked in order, to the end of the transaction.
INSERT INTO mq_queue_returns AS r (queue_id, returns)
SELECT queue_id, 1 FROM unnest(CAST(:queue_ids AS bigint[])) AS back (queue_id) ORDER BY queue_id
ON CONFLICT (queue_id) DO UPDATE SET returns = r.returns + 1

-- name: archive_many
-- Into the history; the live rows go in the same transaction.
INSERT INTO mq_task_history (tenant_id, task_id, {described}, status, result, finished_at, keep_until)
SELECT t.tenant_id, t.id, {moved}, m.status, m.result, m.at, m.keep_until
FROM {moves}
CROSS JOIN LATERAL (SELECT * FROM mq_tasks AS t WHERE t.seq = m.seq LIMIT 1) AS t
ORDER BY t.seq

-- name: bury_many
-- Into the dead letters; the live rows go in the same transaction.
INSERT INTO mq_task_dlq (tenant_id, task_id, {described}, reason, failed_at)
SELECT t.tenant_id, t.id, {moved}, m.reason, m.at
FROM {moves}
CROSS JOIN LATERAL (SELECT * FROM mq_tasks AS t WHERE t.seq = m.seq LIMIT 1) AS t
ORDER BY t.seq

-- name: entomb_many
-- A done task whose dedupe key is held on: only the key and the id stay.
UPDATE mq_tasks AS t
SET status = 'done', id = NULL, tombstone_id = t.id, dedupe_until = m.dedupe_until, payload = '', meta = '{}',
    size = 0, lease_owner = NULL, lease_token_hash = NULL, lease_until = NULL, leased_at = NULL, updated_at = m.at
FROM {moves}
{each_by_tid}

-- name: delete_many
DELETE FROM mq_tasks WHERE seq = ANY(CAST(:seqs AS bigint[]))

-- name: insert_attempts
INSERT INTO mq_task_attempts (
    tenant_id, task_id, queue, type, attempt_no, worker_id, started_at, finished_at, success, reason
)
SELECT
    :tenant_id, a.task_id, a.queue, a.type, a.attempt_no, a.worker_id, a.started_at, a.finished_at, a.success, a.reason
FROM jsonb_to_recordset(CAST(:attempts AS jsonb)) AS a (
    task_id text, queue text, type text, attempt_no int, worker_id text, started_at timestamptz,
    finished_at timestamptz, success boolean, reason text
)

-- name: enqueue_at_once
-- New tasks without ids of their callers, if all their queues are there, nobody holds one of their keys, and none is due
-- since a while, which would stand before others that are ready: none, or all of them. An array that is empty says the
-- usual of every task.
WITH clock AS MATERIALIZED (SELECT coalesce(CAST(:now AS timestamptz), clock_timestamp()) AS now),
queues AS MATERIALIZED (
    SELECT q.id, q.name, q.max_attempts
    FROM clock CROSS JOIN mq_queues AS q
    WHERE q.tenant_id = :tenant_id AND q.name = ANY(CAST(:names AS text[]))
        AND (q.keep_alive_until IS NULL OR q.keep_alive_until > clock.now)
),
accepted AS (
    INSERT INTO mq_tasks (
        tenant_id, queue_id, id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size,
        priority, dedupe_key, dedupe_seconds, status, attempts, max_attempts, available_at, expires_at, timeout_seconds,
        created_at, updated_at
    )
    SELECT
        :tenant_id, q.id, n.id, q.name, coalesce(n.topic, q.name), n.publish_id, coalesce(n.type, ''), n.payload,
        coalesce(n.payload_is_json, true), coalesce(n.content_type, 'application/json'), coalesce(n.meta, '{}'), n.size,
        coalesce(n.priority, :default_priority), n.dedupe_key, coalesce(n.dedupe_seconds, 0),
        CASE WHEN due.at > clock.now THEN 'scheduled' ELSE 'ready' END, 0,
        coalesce(n.max_attempts, q.max_attempts), due.at,
        coalesce(clock.now + n.ttl, n.expires_at), n.timeout_seconds,
        clock.now, clock.now
    FROM clock
    CROSS JOIN unnest(
        CAST(:ids AS text[]), CAST(:queues AS text[]), CAST(:topics AS text[]), CAST(:publish_ids AS text[]),
        CAST(:types AS text[]), CAST(:payloads AS bytea[]), CAST(:are_json AS boolean[]),
        CAST(:content_types AS text[]), CAST(:metas AS text[]), CAST(:sizes AS int[]), CAST(:priorities AS int[]),
        CAST(:dedupe_keys AS text[]), CAST(:dedupe_seconds AS float8[]), CAST(:max_attempts AS int[]),
        CAST(:delays AS interval[]), CAST(:available_at AS timestamptz[]), CAST(:ttls AS interval[]), CAST(:expires_at AS timestamptz[]), CAST(:timeouts AS float8[])
    ) WITH ORDINALITY AS n (
        id, queue, topic, publish_id, type, payload, payload_is_json, content_type, meta, size, priority,
        dedupe_key, dedupe_seconds, max_attempts, delay, available_at, ttl, expires_at, timeout_seconds, position
    )
    JOIN queues AS q ON q.name = coalesce(n.queue, (CAST(:names AS text[]))[1])
    CROSS JOIN LATERAL (
        SELECT coalesce(n.available_at, clock.now + n.delay, clock.now) AS at
    ) AS due
    WHERE (SELECT count(*) FROM queues) = cardinality(CAST(:names AS text[]))
        AND NOT EXISTS (
            SELECT
            FROM unnest(CAST(:dedupe_keys AS text[])) AS wanted (dedupe_key) CROSS JOIN queues AS q
            CROSS JOIN LATERAL (
                SELECT FROM mq_tasks AS t WHERE t.queue_id = q.id AND t.dedupe_key = wanted.dedupe_key LIMIT 1
            ) AS holder
        )
        AND (SELECT now FROM clock) <= ALL (CAST(:available_at AS timestamptz[])) IS NOT FALSE
    ORDER BY n.position
    RETURNING 1
)
SELECT clock.now, (SELECT count(*) FROM accepted) AS accepted FROM clock

-- name: claim_at_once
-- Leases the first ready tasks of one queue, if it is open and without limits, and nothing in it is overdue.
-- Rows that were taken leave traces in the indexes for as long as anybody's snapshot may see them. So the look begins
-- where the last one ended (`start_…`, `looked_until`), unless something came back to the queue since.
WITH clock AS MATERIALIZED (SELECT coalesce(CAST(:now AS timestamptz), clock_timestamp()) AS now),
open_queue AS MATERIALIZED (
    SELECT q.id, coalesce(CAST(:lease AS interval), make_interval(secs => q.lease_seconds)) AS lease,
        coalesce(r.returns, 0) AS returns,
        CASE WHEN start.holds THEN CAST(:start_priority AS bigint) ELSE -2147483649 END AS start_priority,
        CASE WHEN start.holds THEN CAST(:start_at AS timestamptz) ELSE '-infinity' END AS start_at,
        CASE WHEN start.holds THEN CAST(:start_seq AS bigint) ELSE 0 END AS start_seq,
        looked_until.at AS looked_until
    FROM clock CROSS JOIN mq_queues AS q
    LEFT JOIN mq_queue_returns AS r ON r.queue_id = q.id
    CROSS JOIN LATERAL (
        SELECT q.id = CAST(:start_queue_id AS bigint) AND coalesce(r.returns, 0) = CAST(:start_returns AS bigint) AS holds
    ) AS start
    CROSS JOIN LATERAL (
        SELECT CASE WHEN start.holds THEN CAST(:looked_until AS timestamptz) ELSE '-infinity' END AS at
    ) AS looked_until
    WHERE q.tenant_id = :tenant_id AND q.name = :queue
        AND NOT q.paused AND q.rate_per_second IS NULL AND q.concurrency_limit IS NULL
        AND (q.keep_alive_until IS NULL OR q.keep_alive_until > clock.now)
        AND coalesce(CAST(:lease_seconds AS float8) <= q.max_lease_seconds, true)
        AND NOT EXISTS (
            (
                SELECT FROM mq_tasks AS t
                WHERE t.queue_id = q.id AND t.status = 'leased'
                    AND t.lease_until > looked_until.at AND t.lease_until <= clock.now
            )
            UNION ALL
            (
                SELECT FROM mq_tasks AS t
                WHERE t.queue_id = q.id AND t.status = 'scheduled'
                    AND t.available_at > looked_until.at AND t.available_at <= clock.now
            )
            UNION ALL
            (
                SELECT FROM mq_tasks AS t
                WHERE t.queue_id = q.id AND t.status IN ('scheduled', 'ready')
                    AND t.expires_at > looked_until.at AND t.expires_at <= clock.now
            )
        )
),
{picked_from_start}
UPDATE mq_tasks AS t
SET {granted}, lease_until = greatest(clock.now, t.updated_at) + q.lease, leased_at = greatest(clock.now, t.updated_at),
    first_leased_at = coalesce(t.first_leased_at, greatest(clock.now, t.updated_at)),
    updated_at = greatest(clock.now, t.updated_at)
FROM clock CROSS JOIN open_queue AS q CROSS JOIN chosen AS c
{dealt_out}
RETURNING {said_once}, {leased_task}

-- name: ack_at_once
{acked}
SELECT queue, string_agg(id, ' ') AS ids FROM acked GROUP BY queue

-- name: ack_and_log_at_once
-- The same, with a line for each in the log of attempts.
{acked},
logged AS (
    INSERT INTO mq_task_attempts (
        tenant_id, task_id, queue, type, attempt_no, worker_id, started_at, finished_at, success
    )
    SELECT a.tenant_id, a.id, a.queue, a.type, a.attempts, a.lease_owner, a.leased_at, clock.now, true
    FROM clock CROSS JOIN acked AS a
    ORDER BY a.seq
)
SELECT queue, string_agg(id, ' ') AS ids FROM acked GROUP BY queue

-- name: find_finished
-- The tokens of these tasks as they ended, as far as that is known.
SELECT task_id, queue, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_history
WHERE tenant_id = :tenant_id AND task_id = ANY(CAST(:ids AS text[]))
UNION ALL
SELECT task_id, queue, last_token_hash, last_token_fate, failed_token_hash
FROM mq_task_dlq
WHERE tenant_id = :tenant_id AND task_id = ANY(CAST(:ids AS text[]))

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
SELECT t.seq FROM mq_tasks AS t
WHERE t.queue_id = ANY(CAST(:queue_ids AS bigint[])) AND t.status = 'ready' AND t.seq + 0 > :after_seq
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY t.seq + 0
LIMIT :limit

-- name: find_scheduled
SELECT t.seq FROM mq_tasks AS t
WHERE t.queue_id = ANY(CAST(:queue_ids AS bigint[])) AND t.status = 'scheduled' AND t.seq + 0 > :after_seq
    AND t.available_at <= :due_by -- if due_by is given
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY t.seq + 0
LIMIT :limit

-- name: find_leased
SELECT t.seq FROM mq_tasks AS t
WHERE t.queue_id = ANY(CAST(:queue_ids AS bigint[])) AND t.status = 'leased' AND t.seq + 0 > :after_seq
    AND t.lease_until <= :due_by -- if due_by is given
    AND t.queue = :queue -- if queue is given
    AND t.topic = :topic -- if topic is given
    AND t.type = :type -- if type is given
ORDER BY t.seq + 0
LIMIT :limit

-- name: read_live
-- Those of these rows that are tasks still: one that was done meanwhile may have left its key there.
SELECT {live_task},
{state_by_now}
FROM {tasks}
WHERE t.seq = ANY(CAST(:seqs AS bigint[]))
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
    AND (f.finished_at, f.id) < (:after_at, CAST(:after_id AS bigint)) -- if after_at is given
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
SET priority = coalesce(CAST(:priority AS int), priority), available_at = :available_at, status = :status,
    max_attempts = coalesce(CAST(:max_attempts AS int), max_attempts),
    expires_at = coalesce(CAST(:expires_at AS timestamptz), expires_at), updated_at = :now
WHERE seq = :seq

-- name: list_dead_letters
SELECT {finished_task}, f.reason, f.failed_at
FROM mq_task_dlq AS f
WHERE {letters}
    AND (f.failed_at, f.id) < (:after_at, CAST(:after_id AS bigint)) -- if after_at is given
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
-- Dead letters back to the queue; one whose id or dedupe key is taken after all is left out.
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
FROM jsonb_to_recordset(CAST(:letters AS jsonb)) AS r (
    row_id bigint, queue_id bigint, status text, attempts int, max_attempts int, available_at timestamptz,
    expires_at timestamptz
)
JOIN mq_task_dlq AS f ON f.id = r.row_id
ORDER BY f.id
ON CONFLICT DO NOTHING
RETURNING id

-- name: delete_dead_letters
DELETE FROM mq_task_dlq WHERE id = ANY(CAST(:row_ids AS bigint[]))

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
    AND (CAST(:topic AS text) IS NULL OR q.topic = :topic)
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
ORDER BY t.priority DESC, t.available_at, t.seq
LIMIT :limit
FOR UPDATE SKIP LOCKED

-- name: lock_scheduled
SELECT t.seq FROM mq_tasks AS t
WHERE t.queue_id = :queue_id AND t.status = 'scheduled' AND t.seq <= :last_seq
ORDER BY t.available_at
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
DELETE FROM mq_task_history WHERE id = ANY(CAST(:row_ids AS bigint[]))

-- name: delete_attempts_of
-- The attempts of tasks that are gone, but not those of a later one that has the same id.
DELETE FROM mq_task_attempts AS a
USING jsonb_to_recordset(CAST(:tasks AS jsonb)) AS f (tenant_id text, task_id text, finished_at timestamptz)
WHERE a.tenant_id = f.tenant_id AND a.task_id = f.task_id AND a.started_at <= f.finished_at

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
    (
        SELECT 1 FROM mq_tasks WHERE queue_id = :queue_id AND status = 'ready' AND priority > :priority
        ORDER BY priority DESC, available_at, seq
        LIMIT :bound
    )
    UNION ALL
    (
        SELECT 1 FROM mq_tasks
        WHERE queue_id = :queue_id AND status = 'ready' AND priority = :priority
            AND (available_at, seq) < (:available_at, :seq)
        ORDER BY available_at, seq
        LIMIT :bound
    )
    LIMIT :bound
) AS counted

-- name: queues_with_overdue
-- Those of the queues in which time has changed something that nobody has moved yet.
SELECT DISTINCT o.tenant_id, o.id AS queue_id FROM mq_queues AS o
JOIN (
    SELECT q.id
    FROM mq_queues AS q CROSS JOIN LATERAL (
        (
            SELECT t.lease_until AS at FROM mq_tasks AS t
            WHERE t.queue_id = q.id AND t.status = 'leased' ORDER BY t.lease_until LIMIT 1
        )
        UNION ALL
        (
            SELECT t.available_at FROM mq_tasks AS t
            WHERE t.queue_id = q.id AND t.status = 'scheduled' ORDER BY t.available_at LIMIT 1
        )
        UNION ALL
        (
            SELECT t.expires_at FROM mq_tasks AS t
            WHERE t.queue_id = q.id AND t.status IN ('scheduled', 'ready') AND t.expires_at IS NOT NULL
            ORDER BY t.expires_at LIMIT 1
        )
    ) AS first
    WHERE q.id = ANY(CAST(:queue_ids AS bigint[])) AND first.at <= :now
) AS overdue ON overdue.id = o.id

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
SELECT queue_id, min(lease_until) AS lease_until FROM mq_tasks
WHERE queue_id = ANY(CAST(:queue_ids AS bigint[])) AND status = 'leased'
GROUP BY queue_id

-- name: look_at_grave_later
UPDATE mq_queue_graves SET look_at = :at, has_leases = :has_leases WHERE queue_id = :queue_id

-- name: clear_grave_later
UPDATE mq_queue_graves SET clear_at = :at WHERE queue_id = :queue_id

-- name: delete_grave
WITH returns AS (DELETE FROM mq_queue_returns WHERE queue_id = :queue_id)
DELETE FROM mq_queue_graves WHERE queue_id = :queue_id

-- name: lock_old_tombstones
-- Dedupe keys that have been held no longer for a while.
SELECT seq FROM mq_tasks WHERE status = 'done' AND dedupe_until <= :before ORDER BY dedupe_until LIMIT :limit
FOR UPDATE SKIP LOCKED

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
-- The indexes of our tables, and how often each was used since the database began to count.
SELECT i.relname AS index_name, x.indisvalid AS is_valid, x.indisunique AS is_unique, s.idx_scan AS scans,
    pg_relation_size(i.oid) AS bytes
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
JOIN pg_class AS t ON t.oid = x.indrelid
LEFT JOIN pg_stat_all_indexes AS s ON s.indexrelid = i.oid
WHERE t.relnamespace = to_regnamespace(current_schema()) AND t.relname LIKE 'mq\_%'

-- name: count_dead_rows
-- Rows that are gone but still in the way.
SELECT relname AS place, n_live_tup AS live, n_dead_tup AS dead
FROM pg_stat_user_tables
WHERE schemaname = current_schema() AND relname LIKE 'mq\_%'

-- name: oldest_transaction
-- How long the oldest transaction of somebody else has been open.
SELECT CAST(extract(EPOCH FROM clock_timestamp() - min(began_at)) AS float8) AS seconds
FROM (
    SELECT xact_start AS began_at FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'
    UNION ALL
    SELECT prepared FROM pg_prepared_xacts
) AS open_transactions
