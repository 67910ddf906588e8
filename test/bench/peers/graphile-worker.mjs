/*
 * graphile-worker.mjs - graphile-worker, configured as on its own page about performance.
 *
 * It deletes jobs that have ended, so its drain keeps no history.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import { Logger, makeWorkerUtils, run } from 'graphile-worker';
import pg from 'pg';
import * as lib from './lib.mjs';
import { rows } from './queue.mjs';

const logger = new Logger(() => (level, message) => level === 'error' && lib.note(message));
const arrivals = new lib.Arrivals();
const pool = new pg.Pool({ connectionString: lib.url, max: lib.clients });
pool.on('error', (e) => lib.note(e.message));
pool.on('connect', (client) => client.on('error', (e) => lib.note(e.message)));
let utils, runner;

/* The first use creates the tables. */
async function producer()
{
    utils ||= await makeWorkerUtils({ pgPool: pool, logger });
    await utils.migrate();
    return utils;
}

async function work()
{
    runner = await run({
        taskList: { nothing: async ({ id }) => arrivals.arrived(id) },
        logger,
        noHandleSignals: true,
        preset: {
            worker: {
                connectionString: lib.url,
                concurrentJobs: 24,
                maxPoolSize: 25,
                localQueue: { size: 500 },
                completeJobBatchDelay: 0,
                failJobBatchDelay: 0,
            },
        },
    });
}

async function fill(total)
{
    const many = Math.ceil(total / lib.batch);
    return lib.batch * await lib.each(4, many, (b) => utils.addJobs(
        Array.from({ length: lib.batch }, (_, i) => ({ identifier: 'nothing', payload: { id: b * lib.batch + i } })),
    ));
}

async function empty()
{
    const found = await pool.query('select 1 from graphile_worker._private_jobs limit 1');
    return found.rows.length === 0;
}

await lib.measure({
    name: 'graphile-worker',
    config: `graphile-worker ${lib.version('graphile-worker')}, Node ${process.versions.node}: localQueue 500, ` +
        'completeJobBatchDelay 0, failJobBatchDelay 0, 24 jobs at once, pool of 25 (its page on performance); ' +
        'add_jobs of 1,000 from 4 clients; no history',
    work: {
        ...rows({ arrivals, fill, work, empty, open: producer }),
        async enqueue()
        {
            await producer();
            lib.row('enqueue_batch', await fill(lib.n), '1/s');
            await lib.oneByOne((id) => utils.addJob('nothing', { id }));
        },
        async latency()
        {
            await producer();
            await work();
            await lib.latency(async (id) => {
                const ran = arrivals.one(id), begun = lib.now();
                await utils.addJob('nothing', { id });
                return (await ran) - begun;
            });
        },
    },
    why: {
        http: 'it has no HTTP interface and keeps no results',
        hot: 'a job has no result that a caller could wait for',
        keys: 'a job has no result that a caller could wait for',
        workflows: 'its jobs have no steps',
        other: 'measured for Pawl alone',
    },
    async end()
    {
        await runner?.stop();
        await utils?.release();
        await pool.end();
    },
});
