/** What the Node.js peers' programs share: options, timed calls by many callers, one line of JSON. */

import pg from "pg";

export const PAYLOAD = { to: "ada@example.com", template: "welcome", text: "0123456789".repeat(4) };

/** Gives the planner what autovacuum would have told it of full tables. */
export async function analyze(url) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("VACUUM ANALYZE");
  await client.end();
}

export function readOptions() {
  const [mode, ...rest] = process.argv.slice(2);
  const options = { mode };
  for (let i = 0; i < rest.length; i += 2) {
    const name = rest[i].slice(2);
    options[name] = name === "url" ? rest[i + 1] : Number(rest[i + 1]);
  }
  return options;
}

/** How often a second the callers together get through the call; a call that answers false ends its caller. */
export async function callsPerSecond(call, callers, seconds) {
  const startedAt = performance.now();
  let calls = 0;
  let lastAt = startedAt;
  const repeat = async () => {
    while (performance.now() - startedAt < seconds * 1000) {
      if ((await call()) === false) return;
      calls += 1;
      lastAt = performance.now();
    }
  };
  await Promise.all(Array.from({ length: callers }, repeat));
  return calls / ((lastAt - startedAt) / 1000);
}

export function report(figures) {
  console.log(JSON.stringify(figures));
}
