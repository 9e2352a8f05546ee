// graphile-worker: addJob and addJobs to enqueue, its runner to work.
import pg from "pg";
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import { chunks, database, obey, options, work } from "./common.mjs";

const BARE = `
INSERT INTO graphile_worker._private_jobs (task_id, payload)
SELECT id, $1::json FROM graphile_worker._private_tasks WHERE identifier = 'work'`;

const logger = new Logger(() => (level, message) => {
  if (level === "error" || level === "warning") console.error(message);
});

function pool(max) {
  const made = new pg.Pool({ ...database, max });
  made.on("error", console.error);
  made.on("connect", (client) => client.on("error", console.error));
  return made;
}

async function install() {
  const pgPool = pool(1);
  await runMigrations({ pgPool, logger });
  await pgPool.end();
}

async function enqueue() {
  const pgPool = pool(1);
  const utils = await makeWorkerUtils({ pgPool, logger });
  await obey({
    enqueue: (number, ms) => utils.addJob("work", { number, ms }),
    insert: (number) => pgPool.query(BARE, [{ number, ms: 0 }]),
    async enqueueMany(first, afterLast, ms) {
      const make = (number) => ({ identifier: "work", payload: { number, ms } });
      for (const part of chunks(first, afterLast, 10_000, make)) await utils.addJobs(part);
    },
  });
}

async function start() {
  const pgPool = pool(options.poolSize ?? 10);
  const taskList = { work };
  const preset = { worker: options.worker ?? {} };
  const runner = await run({ pgPool, logger, preset, taskList });
  await runner.promise;
}

await { install, enqueue, work: start }[process.argv[2]]();
