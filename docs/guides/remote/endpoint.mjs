// An endpoint for Node 20 or later, without packages: it is sent jobs, and calls back.
//
//   ENDPOINT_SECRETS=whsec_… JOBQUEUE_TOKEN=jq_7_… node endpoint.mjs
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const { JOBQUEUE_TOKEN: TOKEN, CALLBACK_ORIGIN } = process.env;
const SECRETS = (process.env.ENDPOINT_SECRETS ?? "").split(",").filter(Boolean);
const PORT = Number(process.env.PORT ?? 8080);
const TOLERANCE = 300; // seconds
const MAX_BODY = 2_000_000; // bytes

// What this endpoint can do: a function for each job type. What it returns is the result.
const handlers = {
  "invoices.ship": async ({ order, ms = 0 }, signal) => {
    await sleep(ms, signal); // your work; it ends when the signal is aborted
    if (order < 0) throw Object.assign(new Error(`no order ${order}`), { retryable: false });
    return { order, parcel: `P-${order}` };
  },
};

const running = new Map(); // jobs that run, by id
const done = new Map(); // outcomes by id: a job may be sent again. Yours belong into a database

const sleep = (ms, signal) =>
  new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => (clearTimeout(timer), reject(new Error("cancelled"))));
  });

// Whether a request comes from the queue, as https://www.standardwebhooks.com/ says.
// While secrets are changed there are several signatures, and several secrets here.
function isGenuine(headers, body) {
  const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signatures } = headers;
  if (!id || !signatures || !(Math.abs(Date.now() / 1000 - Number(at)) < TOLERANCE)) return false;
  return SECRETS.some((secret) => {
    const hmac = createHmac("sha256", Buffer.from(secret.replace(/^whsec_/, ""), "base64"));
    const expected = Buffer.from(`v1,${hmac.update(`${id}.${at}.`).update(body).digest("base64")}`);
    return signatures.split(" ").some((one) => {
      const given = Buffer.from(one);
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
  });
}

// Says what came of a job, until there is an answer. 409 stale_fence: it is known already,
// or the job was taken away, say because it took too long.
async function callBack(job, outcome) {
  const url = CALLBACK_ORIGIN
    ? CALLBACK_ORIGIN + new URL(job.callback_url).pathname
    : job.callback_url;
  for (let wait = 500; ; wait = Math.min(2 * wait, 10_000)) {
    try {
      const response = await fetch(url, {
        method: "POST",
        headers: { Authorization: `Bearer ${TOKEN}`, "Content-Type": "application/json" },
        body: JSON.stringify({ fence: job.fence, ...outcome }),
      });
      if (response.status < 500 && response.status !== 429) return response.status;
    } catch (error) {
      console.error(`${job.id}: ${error.message}`);
    }
    await sleep(wait);
  }
}

async function run(job) {
  const abort = new AbortController();
  running.set(job.id, abort);
  let outcome = done.get(job.id);
  if (!outcome) {
    try {
      const result = await handlers[job.job_type](job.data, abort.signal);
      outcome = { status: "succeeded", result };
      done.set(job.id, outcome);
    } catch (error) {
      const { name, message, stack, retryable = true } = error;
      outcome = { status: "failed", retryable };
      outcome.error = { class: name, message, traceback: stack };
    }
  }
  running.delete(job.id);
  console.log(job.id, outcome.status, await callBack(job, outcome));
}

async function bodyOf(request) {
  const parts = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BODY) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const server = createServer(async (request, response) => {
  const answer = (status, detail) => {
    response.writeHead(status, { "Content-Type": "application/problem+json" });
    response.end(detail && JSON.stringify({ detail }));
  };
  const body = await bodyOf(request);
  if (body === null) return answer(413, "the body is too large");
  if (!isGenuine(request.headers, body)) return answer(401, "the signature is wrong");
  const job = JSON.parse(body);
  if (request.method === "DELETE") {
    running.get(job.id)?.abort();
    return answer(204);
  }
  if (!handlers[job.job_type]) return answer(404, `nothing here does ${job.job_type}`);
  if (!running.has(job.id)) void run(job);
  answer(202);
});

server.listen(PORT, "127.0.0.1", () => console.log(`listening on ${server.address().port}`));
process.on("SIGTERM", () => process.exit(0));
