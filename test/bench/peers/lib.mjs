/*
 * lib.mjs - what the peers' scripts share: their arguments, the clock, concurrent clients, output lines.
 *
 * A script is started for one round with the row groups to measure, and prints one line a figure: row,
 * system, value, unit, separated by tabs. What a system cannot do is a line with the reason. Everything
 * else goes to stderr. A script that hangs ends itself after BENCH_LIMIT seconds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import { readFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';

const env = process.env;

export const url = env.BENCH_URL;
export const redisPort = Number(env.BENCH_REDIS_PORT || 6379);
export const n = Number(env.BENCH_N || 100000);
export const seconds = Number(env.BENCH_SECONDS || 10);
export const held = Number(env.BENCH_HELD || 60);
export const dir = env.BENCH_DIR || '.';
/* The main process of the server behind `url`, when the bench has started it. */
export const serverPid = env.BENCH_PG_PID;
/* The first milliseconds of a timed part do not count: connections are opened, code is compiled. */
export const warmupMs = 500;
export const clients = 64;
export const batch = 1000;

/* The rows of each group: a group that a script lacks is that many skips. */
const groups = {
    enqueue: ['enqueue_batch', 'enqueue_64'],
    drain: ['drain'],
    latency: ['latency_p50', 'latency_p99'],
    http: ['http_1', 'http_1_p50', 'http_64', 'http_64_p50'],
    hot: ['hot_key'],
    keys: ['keys_10k'],
    backlog: ['backlog_1k', 'backlog_100k', 'backlog_1m'],
    held: ['held_before', 'held_after'],
    light: ['light_idle_p99', 'light_backlog_p99', 'light_unserved_p99'],
    cost: ['cpu_per_call', 'wal_per_call', 'statements_per_call'],
    workflows: ['flow10', 'flow1'],
};

let system = 'unnamed';

function line(...fields)
{
    process.stdout.write(`${fields.join('\t')}\n`);
}

export function row(name, value, unit)
{
    line(name, system, value >= 1000 ? Math.round(value) : Number(value.toPrecision(4)), unit);
}

export function skip(name, why)
{
    line('skip', system, name, why);
}

export function note(text)
{
    process.stderr.write(`${system}: ${text}\n`);
}

/* Microseconds of a clock that all processes of the machine share. */
export function now()
{
    return Number(process.hrtime.bigint() / 1000n);
}

export function sleep(ms)
{
    return new Promise((done) => setTimeout(done, ms));
}

/* The percentile: the smallest sample that at least that share of all samples does not exceed. */
export function percentile(samples, share)
{
    const sorted = Float64Array.from(samples).sort();
    return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}

/*
 * `total` times work(i), from `many` clients that each wait for their own; returns calls a second. A system
 * that needs more than `limit` seconds has done fewer by then, and that is its rate.
 */
export async function each(many, total, work, limit = Infinity)
{
    let next = 0, done = 0;
    const begun = now();
    const end = begun + limit * 1e6;
    const client = async () => {
        while (next < total && now() < end) {
            await work(next++);
            done++;
        }
    };
    await Promise.all(Array.from({ length: Math.min(many, total) }, client));
    return done * 1e6 / (now() - begun);
}

/* The row of single submissions from all clients, each on a connection that was used before. */
export async function oneByOne(submit)
{
    await each(clients, 4 * clients, submit);
    row('enqueue_64', await each(clients, n, submit, 3 * seconds), '1/s');
}

/*
 * work(i) from `many` clients: the calls that ended within the timed part, as calls a second, and how long
 * they took. A call that began before the part and ends within it counts; else a slow system would look slower.
 */
export async function steady(many, work)
{
    let next = 0;
    const samples = [];
    const begun = now() + warmupMs * 1000;
    const end = begun + seconds * 1e6;
    const client = async () => {
        for (let at = now(); at < end; at = now()) {
            await work(next++);
            const done = now();
            if (done >= begun && done <= end)
                samples.push(done - at);
        }
    };
    await Promise.all(Array.from({ length: many }, client));
    if (samples.length === 0)
        throw new Error(`no call ended within ${seconds} s`);
    return { rate: samples.length / seconds, p50: percentile(samples, 0.5) };
}

/*
 * One after another on an idle system: once() returns the time from a submission until its handler ran. At
 * least 200 samples, the first few of which do not count; between two a pause lets everything go idle.
 */
export async function latency(once, samplesWanted = 300)
{
    const samples = [];
    for (let i = 0; i < samplesWanted + 20; i++) {
        const took = await once(i);
        if (i >= 20)
            samples.push(took);
        await sleep(2);
    }
    row('latency_p50', percentile(samples, 0.5), 'us');
    row('latency_p99', percentile(samples, 0.99), 'us');
}

/* Waits until the handler of call i ran. Returns the time at which arrived(i) was called. */
export class Arrivals {
    #waiting = new Map();
    #count = 0;
    #goal = Infinity;
    #reached = () => {};
    first = 0;
    total = 0;

    /* Resolves when `goal` calls have arrived from now on. */
    all(goal)
    {
        this.#count = 0;
        this.first = 0;
        this.#goal = goal;
        return new Promise((done) => (this.#reached = done));
    }

    one(id)
    {
        return new Promise((done) => this.#waiting.set(id, done));
    }

    arrived(id)
    {
        const at = now();
        this.first ||= at;
        this.total++;
        this.#count++;
        const waiter = this.#waiting.get(id);
        if (waiter) {
            this.#waiting.delete(id);
            waiter(at);
        }
        if (this.#count >= this.#goal) {
            this.#goal = Infinity;
            this.#reached(at);
        }
    }
}

/* One keep-alive connection per client; every answer is read to its end, and must be a success. */
export class Http {
    #agent;
    #port;

    constructor(port, connections)
    {
        this.#port = port;
        this.#agent = new http.Agent({ keepAlive: true, maxSockets: connections, scheduling: 'fifo' });
    }

    post(path, body = '{}')
    {
        return new Promise((done, fail) => {
            const request = http.request({
                host: '127.0.0.1',
                port: this.#port,
                path,
                method: 'POST',
                agent: this.#agent,
                headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
            }, (answer) => {
                let text = '';
                answer.setEncoding('utf8');
                answer.on('data', (part) => (text += part));
                answer.on('error', fail);
                answer.on('end', () => {
                    if (answer.statusCode >= 200 && answer.statusCode < 300)
                        done(text);
                    else
                        fail(new Error(`POST ${path} was answered ${answer.statusCode}: ${text}`));
                });
            });
            request.setTimeout(60000, () => request.destroy(new Error(`POST ${path} had no answer within 60 s`)));
            request.on('error', fail);
            request.end(body);
        });
    }

    close()
    {
        this.#agent.destroy();
    }
}

/* The two HTTP rows, of call(http, i). */
export async function httpRows(port, call)
{
    for (const many of [1, clients]) {
        const client = new Http(port, many);
        const { rate, p50 } = await steady(many, (i) => call(client, i));
        row(`http_${many}`, rate, '1/s');
        row(`http_${many}_p50`, p50, 'us');
        client.close();
    }
}

/* The rows of workflows: run(n) starts one of n steps that do nothing, and resolves when it has ended. */
export async function flowRows(run)
{
    for (const steps of [10, 1]) {
        const { rate } = await steady(clients, () => run(steps));
        row(`flow${steps}`, rate * steps, '1/s');
    }
}

export async function freePort()
{
    const server = net.createServer();
    await new Promise((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address();
    await new Promise((done) => server.close(done));
    return port;
}

/* Wait until check() is true, with a pause between two checks; at most `limit` seconds. */
export async function until(what, check, pauseMs = 2, limit = 120)
{
    const end = now() + limit * 1e6;
    while (!(await check())) {
        if (now() > end)
            throw new Error(`${what} did not happen within ${limit} s`);
        await sleep(pauseMs);
    }
}

/* The scripts are copied next to the packages, where Node looks for these. */
export function version(name)
{
    const place = new URL(`./node_modules/${name}/package.json`, import.meta.url);
    return JSON.parse(readFileSync(place, 'utf8')).version;
}

/*
 * Measures the requested groups. peer: name, config (one line), work (group -> function), why (group, or
 * "other" -> the reason why it is missing), end (stops what was started; always called).
 */
export async function measure(peer)
{
    system = peer.name;
    const leave = async (status) => {
        await Promise.race([Promise.resolve().then(() => peer.end?.()).catch((e) => note(e.message)), sleep(10000)]);
        process.exit(status);
    };
    const limit = Number(env.BENCH_LIMIT || 1800);
    setTimeout(() => {
        note(`did not end within ${limit} s`);
        leave(1);
    }, limit * 1000).unref();
    for (const signal of ['SIGINT', 'SIGTERM'])
        process.once(signal, () => leave(130));
    line('config', system, peer.config);
    let status = 0;
    try {
        for (const group of (env.BENCH_ROWS || 'enqueue drain latency').split(/\s+/).filter(Boolean)) {
            if (peer.work[group])
                await peer.work[group]();
            else
                for (const name of groups[group] || [group])
                    skip(name, peer.why[group] || peer.why.other);
        }
    } catch (e) {
        note(`${e.message || e}`.split('\n')[0]);
        status = 1;
    }
    await leave(status);
}
