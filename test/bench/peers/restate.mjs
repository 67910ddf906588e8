/*
 * restate.mjs - Restate: its server with default settings, which syncs its log, and a service with its Node SDK.
 *
 * Three processes, as in production: the server, the service, and this one, which calls. The server runs a
 * call as soon as it has it, so calls that must wait (a backlog, or submissions alone) are sent with a delay.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
import { fork, spawn } from 'node:child_process';
import { mkdtempSync, openSync, rmSync } from 'node:fs';
import http2 from 'node:http2';
import { createRequire } from 'node:module';
import os from 'node:os';
import { fileURLToPath } from 'node:url';
import * as lib from './lib.mjs';

/* The default of 24 is too much for two cores: with 4, submissions and 64 callers were faster, keys equal. */
const partitions = 4, share = 10;
const total = Math.max(lib.batch, Math.floor(lib.n / share));
let server, service, place;

/* ---- The process that serves ----------------------------------------------------------------- */

/* The SDK needs a language feature that Node has from version 22 on. */
function complete()
{
    Promise.withResolvers ??= function () {
        const all = {};
        all.promise = new this((resolve, reject) => Object.assign(all, { resolve, reject }));
        return all;
    };
}

async function serve()
{
    complete();
    const restate = await import('@restatedev/restate-sdk');
    let count = 0, first = 0, last = 0;
    const plain = restate.service({
        name: 'Plain',
        handlers: {
            nothing: async () => lib.now(),
            counted: async () => {
                last = lib.now();
                first ||= last;
                count++;
            },
            flow: async (ctx, steps) => {
                for (let i = 0; i < steps; i++)
                    await ctx.run(`step-${i}`, () => i);
                return steps;
            },
        },
    });
    const object = restate.object({
        name: 'Wallet',
        handlers: {
            add: async (ctx) => {
                const sum = ((await ctx.get('sum')) ?? 0) + 1;
                ctx.set('sum', sum);
                return sum;
            },
        },
    });
    const endpoint = restate.endpoint().bind(plain).bind(object);
    const listener = http2.createServer(endpoint.http2Handler());
    listener.listen(0, '127.0.0.1', () => process.send({ port: listener.address().port }));
    process.on('message', () => process.send({ count, first, last }));
    process.on('disconnect', () => process.exit(0));
}

/* ---- The process that measures --------------------------------------------------------------- */

/* The next line that the service prints. */
function message()
{
    return new Promise((done, fail) => {
        const ended = (code) => fail(new Error(`its service ended with status ${code}`));
        service.once('exit', ended);
        service.once('message', (said) => {
            service.off('exit', ended);
            done(said);
        });
    });
}

function counted()
{
    const answer = message();
    service.send('how many?');
    return answer;
}

/* The binary itself, next to the package's launcher: the launcher would be a process in between. */
function binary()
{
    const name = `@restatedev/restate-server-${os.platform()}-${os.arch()}/bin/restate-server`;
    return createRequire(import.meta.url).resolve(name);
}

/* Returns the port for calls. */
async function start()
{
    place = mkdtempSync(`${lib.dir}/restate-`);
    const ingress = await lib.freePort(), admin = await lib.freePort(), fabric = await lib.freePort();
    const log = openSync(`${place}/log`, 'a');
    server = spawn(binary(), ['--no-logo'], {
        cwd: place,
        stdio: ['ignore', log, log],
        env: {
            ...process.env,
            RESTATE_BASE_DIR: `${place}/data`,
            RESTATE_NODE_NAME: 'bench',
            RESTATE_LISTEN_MODE: 'tcp',
            RESTATE_BIND_IP: '127.0.0.1',
            RESTATE_BIND_PORT: `${fabric}`,
            RESTATE_ADVERTISED_HOST: '127.0.0.1',
            RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
            RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
            RESTATE_DEFAULT_NUM_PARTITIONS: `${partitions}`,
            RESTATE_DISABLE_TELEMETRY: 'true',
        },
    });
    server.once('exit', (code) => (server.ended = code ?? 'a signal'));
    service = fork(fileURLToPath(import.meta.url), ['--serve'], {
        stdio: ['ignore', 2, 2, 'ipc'],
        env: { ...process.env, NODE_ENV: 'production', RESTATE_LOGGING: 'ERROR' },
    });
    const { port } = await message();
    const control = new lib.Http(admin, 1), calls = new lib.Http(ingress, 1);
    await lib.until('its server to be ready', async () => {
        if (server.ended !== undefined)
            throw new Error(`its server ended with status ${server.ended}; ${place}/log says why`);
        return control.post('/deployments', JSON.stringify({ uri: `http://127.0.0.1:${port}` }))
            .then(() => true, () => false);
    }, 200, 60);
    await lib.until('its first call', () => calls.post('/Plain/nothing').then(() => true, () => false), 200, 60);
    control.close();
    calls.close();
    return ingress;
}

async function objectRow(name, key)
{
    const client = new lib.Http(await start(), lib.clients);
    const { rate } = await lib.steady(lib.clients, (i) => client.post(`/Wallet/${key(i)}/add`));
    lib.row(name, rate, '1/s');
    client.close();
}

const peer = {
    name: 'restate',
    config: `Restate server ${lib.version('@restatedev/restate-server')} as shipped (its log is synced) but with ` +
        `${partitions} partitions, restate-sdk ${lib.version('@restatedev/restate-sdk')} over HTTP/2 without its ` +
        `log, Node ${process.versions.node}: submissions are sent with a delay, so that they wait; drain with a tenth of ` +
        'the calls; steps are ctx.run()',
    work: {
        async enqueue()
        {
            const client = new lib.Http(await start(), lib.clients);
            lib.skip('enqueue_batch', 'its API takes one call a request');
            await lib.oneByOne(() => client.post('/Plain/counted/send?delay=1h'));
            client.close();
        },
        /* All of it falls due at one moment, which comes when all of it is stored. */
        async drain()
        {
            const client = new lib.Http(await start(), lib.clients);
            const probe = await lib.each(lib.clients, 256, () => client.post('/Plain/nothing/send?delay=1h'));
            const due = lib.now() + (total / probe * 2 + 5) * 1e6;
            await lib.each(lib.clients, total, () => {
                const delay = Math.max(1, Math.round((due - lib.now()) / 1000));
                return client.post(`/Plain/counted/send?delay=${delay}ms`);
            });
            if (lib.now() > due)
                throw new Error('the backlog fell due before all of it was stored');
            client.close();
            await lib.until('the end of the last call', async () => (await counted()).count >= total, 20, 900);
            const { first, last } = await counted();
            lib.row('drain', total * 1e6 / (last - first), '1/s');
        },
        async latency()
        {
            const client = new lib.Http(await start(), 1);
            await lib.latency(async () => {
                const begun = lib.now();
                return Number(await client.post('/Plain/nothing')) - begun;
            });
            client.close();
        },
        async http()
        {
            await lib.httpRows(await start(), (client) => client.post('/Plain/nothing'));
        },
        async hot()
        {
            await objectRow('hot_key', () => 'one');
        },
        async keys()
        {
            await objectRow('keys_10k', (i) => `key-${i % 10000}`);
        },
        async workflows()
        {
            const client = new lib.Http(await start(), lib.clients);
            await lib.flowRows((steps) => client.post('/Plain/flow', `${steps}`));
            client.close();
        },
    },
    why: { other: 'measured for Pawl alone' },
    async end()
    {
        service?.removeAllListeners('exit');
        if (service?.connected)
            service.disconnect();
        if (server && server.ended === undefined) {
            server.kill('SIGKILL');
            await new Promise((done) => server.once('exit', done));
        }
        if (place)
            rmSync(place, { recursive: true, force: true });
    },
};

if (process.argv[2] === '--serve')
    await serve();
else
    await lib.measure(peer);
