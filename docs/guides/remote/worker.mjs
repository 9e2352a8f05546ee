// A remote worker for Node 20 or later, without packages.
//
//   JOBQUEUE_URL=https://shop.example/jobqueue JOBQUEUE_TOKEN=jq_7_… node worker.mjs
const { JOBQUEUE_URL: URL, JOBQUEUE_TOKEN: TOKEN } = process.env;
const SLOTS = Number(process.env.SLOTS ?? 4);
const LEASE = Number(process.env.LEASE ?? 60); // seconds

// The job types of this worker: a function for each, which returns the result.
const handlers = {
  "fleet.resize": async ({ image, ms = 0 }, job) => {
    await sleep(ms, job.signal); // your work; it ends when job.signal is aborted
    if (image < 0) throw Object.assign(new Error(`no image ${image}`), { retryable: false });
    return { image, width: 640 };
  },
};

const running = new Map(); // the jobs that this worker has, by id
let worker = null;
let stopping = false;

const sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(new Error("stopped"))));
  });

// Sends a request until there is an answer. Every request may be sent twice: a claim
// whose answer was lost is noticed by the server, and an outcome counts once.
async function send(method, path, body) {
  for (let wait = 500; ; wait = Math.min(2 * wait, 10_000)) {
    try {
      const response = await fetch(`${URL}/v1${path}`, {
        method,
        headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" },
        body: body && JSON.stringify(body),
      });
      if (response.status < 500 && response.status !== 429) {
        return { status: response.status, ...(await response.json()) };
      }
    } catch (error) {
      console.error(`${method} ${path}: ${error.message}`);
    }
    await sleep(wait);
  }
}

async function register() {
  const said = await send("POST", "/workers", {
    name: `node-${process.pid}`,
    job_types: Object.keys(handlers),
    slots: SLOTS,
    lease_seconds: LEASE,
  });
  if (said.status !== 201) throw new Error(`${said.id}: ${said.detail}`);
  if (said.notice) console.error(said.notice);
  worker = said;
}

const claim = (limit, wait) => send("POST", `/workers/${worker.id}/claim`, { limit, wait });

async function run(job) {
  const abort = new AbortController();
  running.set(job.id, abort);
  const outcome = { worker: worker.id, fence: job.fence };
  try {
    const result = await handlers[job.name](job.data, { ...job, signal: abort.signal });
    Object.assign(outcome, { status: "succeeded", result });
  } catch (error) {
    const { name, message, stack, retryable = true } = error;
    Object.assign(outcome, { status: "failed", retryable });
    outcome.error = { class: name, message, traceback: stack };
  }
  const said = await send("POST", `/jobs/${job.name}/${job.id}`, outcome);
  running.delete(job.id);
  console.log(job.id, said.status === 200 ? outcome.status : said.id); // stale_fence: not ours
}

// Renews the lease while jobs run, and stops jobs that are no longer wanted.
async function renew() {
  while (true) {
    await sleep((LEASE * 1000) / 3);
    const said = await send("PUT", `/workers/${worker.id}`, { running: [...running.keys()] });
    if (said.status === 404) for (const abort of running.values()) abort.abort();
    for (const id of said.cancel ?? []) running.get(id)?.abort();
    if (said.asked === "stop" || said.asked === "restart") stopping = true;
  }
}

async function main() {
  await register();
  void renew();
  while (!stopping) {
    const room = SLOTS - running.size;
    if (room === 0) {
      await sleep(50);
      continue;
    }
    const said = await claim(room, running.size ? 1 : worker.poll_seconds);
    if (said.status === 404) {
      await register(); // its lease has lapsed, say while the machine slept
      continue;
    }
    for (const job of said.jobs) void run(job);
    await sleep(1000 * said.poll_seconds);
  }
  while (running.size) await sleep(50);
  await send("DELETE", `/workers/${worker.id}`);
  process.exit(0);
}

process.on("SIGTERM", () => (stopping = true));
process.on("SIGINT", () => (stopping = true));
await main();
