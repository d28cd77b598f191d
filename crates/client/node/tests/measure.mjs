// How long gets take from Node.js, beside memjs and ioredis on the same server: `scripts/test-node.sh measure [ROUNDS] [SECONDS]`.
//
// Values have 32 bytes, there are 1,000 keys, and medians of the rounds (least to greatest) are shown.

import { setImmediate as turn } from "node:timers/promises";

import Redis from "ioredis";
import memjs from "memjs";
import { Client } from "nuthatch";

import { Server } from "./harness.mjs";

const [rounds, seconds] = [Number(process.argv[2] ?? 5), Number(process.argv[3] ?? 1)];
const KEYS = Array.from({ length: 1000 }, (_, number) => `key:${number}`);
const VALUE = "v".repeat(32);

const server = new Server("--redis-port", "-1");
await server.begin();
// A unix socket is in place of TCP.
const other = new Server();
await other.begin("unix");

const tcp = new Client(server.tcp);
const unix = new Client(other.unix);
const shm = new Client(server.shm);
const text = new Client(server.shm, { codec: "utf8" });
const others = {
    memjs: memjs.Client.create(`127.0.0.1:${server.port}`),
    ioredis: new Redis(server.redis, "127.0.0.1"),
};
const map = new Map(KEYS.map((key) => [key, VALUE]));

/** Nanoseconds a call: `calls` calls of `call` at a time, again and again. */
function sync(call) {
    return async () => {
        const until = performance.now() + seconds * 1000;
        const start = process.hrtime.bigint();
        let done = 0;
        while (performance.now() < until) {
            for (let number = 0; number < 1000; number++) {
                call(KEYS[number]);
            }
            done += 1000;
        }
        return Number(process.hrtime.bigint() - start) / done;
    };
}

/** The same of promises, of which so many are under way at a time. */
function promised(tasks, call) {
    return async () => {
        const until = performance.now() + seconds * 1000;
        const start = process.hrtime.bigint();
        let done = 0;
        await Promise.all(
            Array.from({ length: tasks }, async (_, task) => {
                for (let number = task; performance.now() < until; number++) {
                    for (let more = 0; more < 10; more++) {
                        await call(KEYS[(number * 10 + more) % 1000]);
                        done++;
                    }
                }
            }),
        );
        return Number(process.hrtime.bigint() - start) / done;
    };
}

const ways = {
    "Map": sync((key) => map.get(key)),
    "getSync, shm, utf8": sync((key) => text.getSync(key)),
    "getSync, shm, Buffer": sync((key) => shm.getSync(key)),
};
for (const tasks of [1, 64]) {
    ways[`get, shm, ${tasks}`] = promised(tasks, (key) => shm.get(key));
    ways[`get, unix, ${tasks}`] = promised(tasks, (key) => unix.get(key));
    ways[`get, tcp, ${tasks}`] = promised(tasks, (key) => tcp.get(key));
    ways[`memjs, tcp, ${tasks}`] = promised(tasks, (key) => others.memjs.get(key));
    ways[`ioredis, tcp, ${tasks}`] = promised(tasks, (key) => others.ioredis.get(key));
}

await Promise.all([tcp, unix].map((client) => client.setMany(KEYS.map((key) => [key, VALUE]))));
await Promise.all([shm.connect(), text.connect()]);
if (text.getSync(KEYS[7]) !== VALUE || (await others.ioredis.get(KEYS[7])) !== VALUE) {
    throw new Error("the value is not what was stored");
}
const found = Object.fromEntries(Object.keys(ways).map((way) => [way, []]));
// The first round warms up.
for (let round = 0; round <= rounds; round++) {
    for (const [way, measure] of Object.entries(ways)) {
        const nanoseconds = await measure();
        if (round > 0) {
            found[way].push(nanoseconds);
        }
        await turn();
    }
}
const shown = (nanoseconds) => (nanoseconds / 1000).toFixed(3);
for (const [way, all] of Object.entries(found)) {
    all.sort((a, b) => a - b);
    console.log(`${way.padEnd(24)} ${shown(all[all.length >> 1])} us (${shown(all[0])} to ${shown(all.at(-1))})`);
}
await Promise.all([tcp.close(), unix.close(), shm.close(), text.close()]);
others.memjs.close();
others.ioredis.disconnect();
await Promise.all([server.remove(), other.remove()]);
