/*
 * bullmq.mjs - BullMQ on a Redis that syncs every command to disk before it answers (appendfsync always).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import { Queue, Worker } from 'bullmq';
import * as lib from './lib.mjs';

const arrivals = new lib.Arrivals();
const concurrency = 100, many = 2;
const connection = { host: '127.0.0.1', port: lib.redisPort, maxRetriesPerRequest: null };
const queue = new Queue('nothing', { connection });
const workers = [];

function work()
{
    for (let i = 0; i < many; i++) {
        const worker = new Worker('nothing', async (job) => arrivals.arrived(job.data.id), { connection, concurrency });
        worker.on('error', (e) => lib.note(e.message));
        workers.push(worker);
    }
    return Promise.all(workers.map((worker) => worker.waitUntilReady()));
}

async function fill(total)
{
    return lib.batch * await lib.each(2, Math.ceil(total / lib.batch), (b) => queue.addBulk(
        Array.from({ length: lib.batch }, (_, i) => ({ name: 'nothing', data: { id: b * lib.batch + i } })),
    ));
}

async function empty()
{
    const left = await queue.getJobCounts('wait', 'active', 'paused', 'prioritized');
    return Object.values(left).every((count) => count === 0);
}

await lib.measure({
    name: 'bullmq',
    config: `BullMQ ${lib.version('bullmq')} with ioredis ${lib.version('ioredis')}, Node ${process.versions.node}, ` +
        `Redis with appendonly and appendfsync always: addBulk of 1,000, ${many} workers with concurrency ` +
        `${concurrency}; ended jobs kept`,
    work: {
        async enqueue()
        {
            await queue.waitUntilReady();
            lib.row('enqueue_batch', await fill(lib.n), '1/s');
            await lib.oneByOne((id) => queue.add('nothing', { id }));
        },
        async drain()
        {
            await fill(lib.n);
            const all = arrivals.all(lib.n);
            await work();
            await all;
            await lib.until('the end of the last job', empty);
            lib.row('drain', lib.n * 1e6 / (lib.now() - arrivals.first), '1/s');
        },
        async latency()
        {
            await work();
            await lib.latency(async (id) => {
                const ran = arrivals.one(id), begun = lib.now();
                await queue.add('nothing', { id });
                return (await ran) - begun;
            });
        },
    },
    why: {
        http: 'it has no HTTP interface',
        hot: 'keys that run one call at a time (groups) are not in its free edition',
        keys: 'keys that run one call at a time (groups) are not in its free edition',
        workflows: 'its jobs have no steps',
        other: 'measured for Pawl alone',
    },
    async end()
    {
        await Promise.all(workers.map((worker) => worker.close(true)));
        await queue.close();
    },
});
