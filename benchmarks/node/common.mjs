// The job of the systems that run on Node, and the loop of their enqueuing process: what
// journal.py and client.py are to the others.
import fs from "node:fs";
import readline from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const journal = process.env.BENCH_JOURNAL;
const file = journal ? fs.openSync(journal, "a") : undefined;
const record = Buffer.alloc(24);
const now = () => process.hrtime.bigint(); // CLOCK_MONOTONIC, in ns

export const options = JSON.parse(process.env.BENCH_OPTIONS ?? "{}");
export const database = {
  host: process.env.PGHOST,
  user: process.env.PGUSER,
  database: process.env.PGDATABASE,
};

function mark(number, kind) {
  record.writeBigInt64LE(BigInt(number), 0);
  record.writeBigInt64LE(now(), 8);
  record.writeInt32LE(process.pid, 16);
  record.writeInt32LE(kind, 20);
  fs.writeSync(file, record);
}

export async function work({ number, ms }) {
  mark(number, 0);
  if (ms) {
    await sleep(ms);
    mark(number, 1);
  }
}

async function timed(call, number) {
  const began = now();
  await call(number);
  return Number(now() - began);
}

async function at(moment) {
  const left = Number(moment - now()) / 1e6;
  if (left > 0) await sleep(left);
}

// The verbs of client.py.
const verbs = {
  async many(app, { numbers, ms }) {
    const began = now();
    await app.enqueueMany(numbers[0], numbers[1], ms);
    return { ns: Number(now() - began) };
  },
  async singles(app, { blocks, of }) {
    const enqueues = [];
    const inserts = [];
    for (let block = 0; block <= blocks; block++) {
      if (block === 1) enqueues.length = inserts.length = 0;
      const numbers = Array.from({ length: of }, (_, i) => block * of + i);
      for (const n of numbers) enqueues.push(await timed((n) => app.enqueue(n, 0), n));
      for (const n of numbers) inserts.push(await timed(app.insert, n));
    }
    return { enqueues, inserts };
  },
  async paced(app, { first, pauses }) {
    const returned = [];
    for (const [i, pause] of pauses.entries()) {
      await sleep(pause * 1_000);
      await app.enqueue(first + i, 0);
      returned.push(Number(now()));
    }
    return { returned };
  },
  async steady(app, { first, jobs, rate, ms }) {
    const began = now();
    const called = [];
    for (let i = 0; i < jobs; i++) {
      await at(began + BigInt(Math.round((i / rate) * 1e9)));
      called.push(Number(now()));
      await app.enqueue(first + i, ms);
    }
    return { called };
  },
  async during(app, { first, seconds, bare }) {
    const until = now() + BigInt(Math.round(seconds * 1e9));
    let done = 0;
    while (now() < until) {
      await (bare ? app.insert(first + done) : app.enqueue(first + done, 0));
      done++;
    }
    return { done };
  },
};

export async function obey(app) {
  console.log("{}");
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const { do: verb, ...rest } = JSON.parse(line);
    console.log(JSON.stringify(await verbs[verb](app, rest)));
  }
  process.exit(0);
}

export function chunks(first, afterLast, size, make) {
  const found = [];
  for (let start = first; start < afterLast; start += size) {
    const end = Math.min(start + size, afterLast);
    found.push(Array.from({ length: end - start }, (_, i) => make(start + i)));
  }
  return found;
}
