/*
 * queue.mjs - the rows that job queues on PostgreSQL measure in the same way.
 *
 * A queue has: open() creates its tables, fill(n) stores n jobs in batches, work() starts its workers,
 * empty() returns whether every job has ended, and `arrivals` is told of every job that runs.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import { readdirSync, readFileSync } from 'node:fs';
import pg from 'pg';
import * as lib from './lib.mjs';

/* Jobs in progress during a steady load: enough for full batches, too few for a backlog. */
const flowing = 5 * lib.batch;

async function drain(queue)
{
    await queue.open();
    await queue.fill(lib.n);
    const all = queue.arrivals.all(lib.n);
    await queue.work();
    await all;
    await lib.until('the end of the last job', queue.empty);
    lib.row('drain', lib.n * 1e6 / (lib.now() - queue.arrivals.first), '1/s');
}

/* A steady load; an open transaction that sees old rows keeps vacuum from removing them. */
async function held(queue)
{
    await queue.open();
    await queue.work();
    let submitted = 0, going = true;
    const ran = () => queue.arrivals.total;
    const producer = (async () => {
        while (going)
            if (submitted - ran() < flowing) {
                submitted += lib.batch;
                await queue.fill(lib.batch);
            } else
                await lib.sleep(1);
    })();
    const rate = async () => {
        const begun = lib.now(), before = ran();
        await lib.sleep(lib.seconds * 1000);
        return (ran() - before) * 1e6 / (lib.now() - begun);
    };
    const holder = new pg.Client({ connectionString: lib.url });
    await holder.connect();
    await lib.sleep(lib.warmupMs * 2);
    lib.row('held_before', await rate(), '1/s');
    await holder.query('begin isolation level repeatable read');
    await holder.query('select count(*) from pg_class');
    await lib.sleep(lib.held * 1000);
    lib.row('held_after', await rate(), '1/s');
    await holder.query('rollback');
    await holder.end();
    going = false;
    await producer;
}

/* CPU time of the server in ticks: its main process with all reaped children, and its running children. */
function serverTicks()
{
    let ticks = 0;
    for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
        try {
            const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
            const field = text.slice(text.lastIndexOf(')') + 2).split(' ');
            if (pid === lib.serverPid)
                ticks += Number(field[11]) + Number(field[12]) + Number(field[13]) + Number(field[14]);
            else if (field[1] === lib.serverPid)
                ticks += Number(field[11]) + Number(field[12]);
        } catch {
            /* it has ended meanwhile */
        }
    }
    return ticks;
}

/* The cost of storing, running and ending a job: in the server, and in this process. */
async function cost(queue)
{
    await queue.open();
    const client = new pg.Client({ connectionString: lib.url });
    await client.connect();
    const place = async () => (await client.query("select pg_current_wal_lsn() - '0/0' as at")).rows[0].at;
    const wal = await place(), ticks = serverTicks(), own = process.cpuUsage();
    await queue.fill(lib.n);
    const all = queue.arrivals.all(lib.n);
    await queue.work();
    await all;
    await lib.until('the end of the last job', queue.empty);
    const used = process.cpuUsage(own);
    if (lib.serverPid)
        lib.row('cpu_per_call', ((serverTicks() - ticks) * 10000 + used.user + used.system) / lib.n, 'us');
    else
        lib.skip('cpu_per_call', 'the server is not of this run');
    lib.row('wal_per_call', (await place() - wal) / lib.n, 'bytes');
    lib.skip('statements_per_call', 'not counted for it');
    await client.end();
}

export function rows(queue)
{
    return { drain: () => drain(queue), held: () => held(queue), cost: () => cost(queue) };
}
