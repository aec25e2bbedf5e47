/** pg-boss: single sends, then fetch and complete one by one, or by batches in a drain. */

import PgBoss from "pg-boss";
import { PAYLOAD, analyze, callsPerSecond, readOptions, report } from "./turns.mjs";

const INSERTED_AT_ONCE = 1000;
const options = readOptions();
const boss = new PgBoss({
  connectionString: options.url,
  max: options.connections,
  supervise: false,
  schedule: false,
});
boss.on("error", (error) => console.error(error.message));

async function fetchAndComplete(batchSize) {
  const jobs = await boss.fetch("bench", { batchSize });
  if (jobs.length === 0) return false;
  await boss.complete("bench", jobs.map((job) => job.id));
  return jobs.length;
}

async function drain() {
  const startedAt = performance.now();
  let done = 0;
  const work = async () => {
    for (let taken = await fetchAndComplete(options.batch); taken; taken = await fetchAndComplete(options.batch)) {
      done += taken;
    }
  };
  await Promise.all(Array.from({ length: options.connections }, work));
  return done / ((performance.now() - startedAt) / 1000);
}

await boss.start();
await boss.createQueue("bench");
for (let i = 0; i < options.backlog; i += INSERTED_AT_ONCE) {
  await boss.insert(Array.from({ length: INSERTED_AT_ONCE }, () => ({ name: "bench", data: PAYLOAD })));
}
await analyze(options.url);
if (options.mode === "drain") {
  report({ process: await drain() });
} else {
  const enqueue = await callsPerSecond(() => boss.send("bench", PAYLOAD), options.callers, options.seconds);
  const processed = await callsPerSecond(() => fetchAndComplete(1), options.callers, options.seconds);
  report({ enqueue, process: processed });
}
await boss.stop({ graceful: false });
process.exit(0);
