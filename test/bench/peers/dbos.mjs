/*
 * dbos.mjs - DBOS Transact: workflows without steps but in the rows of workflows, started directly where no queue is
 * needed.
 *
 * A program that embeds DBOS has its own HTTP server; here it is Node's, in a separate process, as in
 * production. This process is the callers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import { fork } from 'node:child_process';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { DBOS } from '@dbos-inc/dbos-sdk';
import { enqueueWorkflows, prepareEnqueuedWorkflow } from '@dbos-inc/dbos-sdk/eventreceiver';
import * as lib from './lib.mjs';

const poolSize = 64, pollMs = 10, share = 10;
const total = Math.max(lib.batch, Math.floor(lib.n / share));
const arrivals = new lib.Arrivals();
const quiet = () => {};
const logger = { info: quiet, debug: quiet, warn: quiet, error: (e) => lib.note(`${e?.message || e}`) };
const nothing = DBOS.registerWorkflow(async (id) => {
    arrivals.arrived(id);
    return lib.now();
}, { name: 'nothing' });
const flow = DBOS.registerWorkflow(async (steps) => {
    for (let i = 0; i < steps; i++)
        await DBOS.runStep(async () => i, { name: `step-${i}` });
    return steps;
}, { name: 'flow' });
let launched = false, server;

async function launch(listen)
{
    DBOS.setConfig({
        name: 'bench',
        systemDatabaseUrl: lib.url,
        systemDatabasePoolSize: poolSize,
        logger,
        applicationVersion: '1',
        useListenNotify: true,
        listenQueues: listen,
    });
    await DBOS.launch();
    launched = true;
    await DBOS.registerQueue('plain', { minPollingIntervalMs: pollMs });
    await DBOS.registerQueue('keyed', { minPollingIntervalMs: pollMs, partitionConcurrency: 1 });
}

/* ---- The process that serves ----------------------------------------------------------------- */

async function answer(path)
{
    if (path === '/call')
        return nothing(0);
    const handle = await DBOS.startWorkflow(nothing, {
        queueName: 'keyed',
        enqueueOptions: { queuePartitionKey: path.slice(1) },
    })(0);
    /* Its end is polled for. Callers who stand in line for one key do best when they rarely ask. */
    return handle.getResult({ pollingIntervalMs: path === '/one' ? 200 : 50 });
}

async function serve(queue)
{
    await launch([queue]);
    const listener = http.createServer((request, response) => {
        request.resume();
        request.on('end', () => answer(request.url).then(
            (result) => response.end(JSON.stringify(result)),
            (e) => response.writeHead(500).end(e.message)));
    });
    listener.listen(0, '127.0.0.1', () => process.send(listener.address().port));
    process.on('disconnect', () => process.exit(0));
}

/* ---- The process that measures --------------------------------------------------------------- */

async function served(queue)
{
    server = fork(fileURLToPath(import.meta.url), ['--serve', queue], { stdio: ['ignore', 2, 2, 'ipc'] });
    return new Promise((done, fail) => {
        server.once('message', done);
        server.once('exit', (code) => fail(new Error(`its server ended with status ${code}`)));
    });
}

async function fill()
{
    return lib.batch * await lib.each(2, Math.ceil(total / lib.batch), async (b) => {
        const rows = Array.from({ length: lib.batch }, (_, i) => prepareEnqueuedWorkflow(nothing,
            [b * lib.batch + i], { queueName: 'plain', workflowID: `b-${b}-${i}` }));
        await enqueueWorkflows(await Promise.all(rows));
    });
}

async function keyRow(name, key)
{
    const port = await served('keyed');
    const client = new lib.Http(port, lib.clients);
    /* A queue that has just been made is polled only after a while. */
    await client.post('/first');
    const { rate } = await lib.steady(lib.clients, (i) => client.post(`/${key(i)}`));
    lib.row(name, rate, '1/s');
    client.close();
}

const peer = {
    name: 'dbos',
    config: `DBOS ${lib.version('@dbos-inc/dbos-sdk')}, Node ${process.versions.node}: pool of ${poolSize}, ` +
        `useListenNotify, queues polled every ${pollMs} ms, workflows without steps (rows of workflows: runStep, in ` +
        "the process that calls); HTTP by Node's own server, without a queue; keys are partitions with " +
        'partitionConcurrency 1, results polled every 50 ms (one key: 200); batches and drain with a tenth of the calls',
    work: {
        async enqueue()
        {
            await launch(['none']);
            lib.row('enqueue_batch', await fill(), '1/s');
            await lib.oneByOne((id) => DBOS.startWorkflow(nothing, { queueName: 'plain' })(id));
        },
        async drain()
        {
            await launch(['none']);
            await fill();
            await DBOS.shutdown();
            const all = arrivals.all(total);
            await launch(['plain']);
            await all;
            await lib.until('the end of the last workflow', async () => (await DBOS.listWorkflows({
                status: ['ENQUEUED', 'PENDING'], limit: 1 })).length === 0);
            lib.row('drain', total * 1e6 / (lib.now() - arrivals.first), '1/s');
        },
        async latency()
        {
            await launch(['none']);
            await lib.latency(async (id) => {
                const ran = arrivals.one(id), begun = lib.now();
                const handle = await DBOS.startWorkflow(nothing)(id);
                const took = (await ran) - begun;
                await handle.getResult();
                return took;
            });
        },
        async http()
        {
            await lib.httpRows(await served('none'), (client) => client.post('/call'));
        },
        async hot()
        {
            await keyRow('hot_key', () => 'one');
        },
        async keys()
        {
            await keyRow('keys_10k', (i) => `key-${i % 10000}`);
        },
        async workflows()
        {
            await launch(['none']);
            await lib.flowRows((steps) => flow(steps));
        },
    },
    why: { other: 'measured for Pawl alone' },
    async end()
    {
        server?.disconnect();
        if (launched)
            await DBOS.shutdown();
    },
};

if (process.argv[2] === '--serve')
    await serve(process.argv[3]);
else
    await lib.measure(peer);
