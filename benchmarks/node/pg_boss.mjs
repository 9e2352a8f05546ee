// pg-boss: send and insert to enqueue, work to work.
import pg from "pg";
import { PgBoss } from "pg-boss";
import { chunks, database, obey, options, work } from "./common.mjs";

const BARE = "INSERT INTO pgboss.job (name, data, policy) VALUES ('work', $1, 'standard')";

async function boss(settings) {
  const made = new PgBoss({ ...database, max: 10, ...settings });
  made.on("error", console.error);
  await made.start();
  return made;
}

const producer = () => boss({ supervise: false, schedule: false });

async function install() {
  const made = await producer();
  await made.createQueue("work", { notify: true });
  await made.stop({ graceful: false });
  process.exit(0);
}

async function enqueue() {
  const made = await producer();
  const bare = new pg.Client(database);
  await bare.connect();
  await obey({
    enqueue: (number, ms) => made.send("work", { number, ms }),
    insert: (number) => bare.query(BARE, [{ number, ms: 0 }]),
    async enqueueMany(first, afterLast, ms) {
      const make = (number) => ({ data: { number, ms } });
      for (const part of chunks(first, afterLast, 10_000, make)) await made.insert("work", part);
    },
  });
}

async function start() {
  const made = await boss({ useListenNotify: true });
  const all = (jobs) => Promise.all(jobs.map((job) => work(job.data)));
  // Notified while it is busy, it would else wait for half a minute.
  const poll = { pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 };
  await made.work("work", { ...poll, ...options }, all);
}

await { install, enqueue, work: start }[process.argv[2]]();
