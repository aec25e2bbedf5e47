/** graphile-worker: single addJob calls and a worker by default; for a drain its local queue and batched completion. */

import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import pg from "pg";
import { PAYLOAD, analyze, callsPerSecond, readOptions, report } from "./turns.mjs";

const ADDED_AT_ONCE = 1000;
const BEST = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
const options = readOptions();
const logger = new Logger(() => () => {});
const pool = new pg.Pool({ connectionString: options.url, max: options.connections });

async function left() {
  const { rows } = await pool.query("SELECT count(*)::int AS jobs FROM graphile_worker.jobs");
  return rows[0].jobs;
}

/** Jobs a second by one worker process, until the queue is empty or the time is over. */
async function work(settings, seconds) {
  const before = await left();
  let done = 0;
  const startedAt = performance.now();
  const preset = { worker: { concurrentJobs: options.callers, pollInterval: 100, ...settings } };
  const taskList = { bench: async () => { done += 1; } };
  const runner = await run({ pgPool: pool, logger, taskList, preset, noHandleSignals: true });
  while (done < before && performance.now() - startedAt < seconds * 1000) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  while (done >= before && (await left()) > 0) {
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  const rate = done / ((performance.now() - startedAt) / 1000);
  await Promise.race([runner.stop(), new Promise((resolve) => setTimeout(resolve, 3000))]);
  return rate;
}

await runMigrations({ pgPool: pool, logger });
const utils = await makeWorkerUtils({ pgPool: pool, logger });
for (let i = 0; i < options.backlog; i += ADDED_AT_ONCE) {
  await utils.addJobs(Array.from({ length: ADDED_AT_ONCE }, () => ({ identifier: "bench", payload: PAYLOAD })));
}
await analyze(options.url);
if (options.mode === "drain") {
  report({ process: await work(BEST, 120) });
} else {
  const enqueue = await callsPerSecond(() => utils.addJob("bench", PAYLOAD), options.callers, options.seconds);
  report({ enqueue, process: await work({}, options.seconds) });
}
process.exit(0);
