/*
 * pg-boss.mjs - pg-boss with batches, workers that fetch again while batches are full, and notifications.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import { PgBoss } from 'pg-boss';
import * as lib from './lib.mjs';
import { rows } from './queue.mjs';

const arrivals = new lib.Arrivals();
const workers = 2, batchSize = 2500;
let boss;

/* NOTIFY in every commit makes commits wait for each other, so only the latency row uses it. */
async function start(notify)
{
    boss = new PgBoss({
        connectionString: lib.url,
        max: lib.clients,
        useListenNotify: notify,
        supervise: false,
        schedule: false,
    });
    boss.on('error', (e) => lib.note(e.message));
    await boss.start();
    await boss.createQueue('nothing', { partition: true, notify });
}

function work()
{
    return boss.work('nothing', { batchSize, localConcurrency: workers, burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5 }, async (jobs) => {
        for (const job of jobs)
            arrivals.arrived(job.data.id);
    });
}

async function fill(total)
{
    const many = Math.ceil(total / lib.batch);
    return lib.batch * await lib.each(2, many, (b) => boss.insert('nothing',
        Array.from({ length: lib.batch }, (_, i) => ({ data: { id: b * lib.batch + i } }))));
}

async function empty()
{
    const found = await boss.getDb().executeSql(
        "select 1 from pgboss.job where name = 'nothing' and state < 'completed' limit 1");
    return found.rows.length === 0;
}

await lib.measure({
    name: 'pg-boss',
    config: `pg-boss ${lib.version('pg-boss')}, Node ${process.versions.node}: queue with a table of its own ` +
        `(partition), insert of 1,000, ${workers} workers with batchSize 2,500 and burstWhenBatchFull, ` +
        'useListenNotify for latency alone; ended jobs kept',
    work: {
        ...rows({ arrivals, fill, work, empty, open: () => start(false) }),
        async enqueue()
        {
            await start(false);
            lib.row('enqueue_batch', await fill(lib.n), '1/s');
            await lib.oneByOne((id) => boss.send('nothing', { id }));
        },
        async latency()
        {
            await start(true);
            await work();
            await lib.latency(async (id) => {
                const ran = arrivals.one(id), begun = lib.now();
                await boss.send('nothing', { id });
                return (await ran) - begun;
            });
        },
    },
    why: {
        http: 'it has no HTTP interface',
        hot: 'a caller cannot wait for a job\'s result',
        keys: 'a caller cannot wait for a job\'s result',
        workflows: 'its jobs have no steps',
        other: 'measured for Pawl alone',
    },
    async end()
    {
        await boss?.stop({ graceful: false });
    },
});
