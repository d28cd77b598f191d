// The examples: processes that share one cache.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import readline from "node:readline";
import { test } from "node:test";

import { Server } from "./harness.mjs";

test("four processes share a cache", async () => {
    const server = await Server.start();
    const env = { ...process.env, NUTHATCH_URL: server.shm, PORT: "0" };
    const program = spawn(process.execPath, ["shared_cache.mjs"], { env, stdio: ["ignore", "pipe", "inherit"] });
    const urls = [];
    for await (const line of readline.createInterface({ input: program.stdout })) {
        if (urls.push(line.split(" ")[0]) === 4) {
            break;
        }
    }
    const makers = new Set();
    const readers = new Set();
    // Until all four have read it: which one takes a connection is the cluster's choice.
    while (readers.size < 4) {
        const asked = Array.from({ length: 16 }, async () => (await fetch(`${urls[0]}/ann`, { headers: { connection: "close" } })).text());
        for (const answer of await Promise.all(asked)) {
            const [made, read] = answer.split("\n");
            makers.add(made);
            if (read.startsWith("read by")) {
                readers.add(read);
            }
        }
    }
    assert.equal(makers.size, 1);
    assert.match([...makers][0], /^\/ann made by \d+$/);
    program.kill();
    assert.deepEqual(await once(program, "exit"), [0, null]);
});

test("programs of Fastify share a cache", async () => {
    const server = await Server.start();
    const env = { ...process.env, NUTHATCH_URL: server.shm, PORT: "0" };
    const programs = [1, 2].map(() =>
        spawn(process.execPath, ["fastify_cache.mjs"], { env, stdio: ["ignore", "pipe", "inherit"] }),
    );
    const urls = await Promise.all(
        programs.map(async ({ stdout }) => (await readline.createInterface({ input: stdout })[Symbol.asyncIterator]().next()).value),
    );
    const ask = async (url) => {
        const response = await fetch(`${url}/price/ann`, { headers: { connection: "close" } });
        assert.match(response.headers.get("content-type"), /^application\/json/);
        return [response.headers.get("x-cache"), await response.json()];
    };
    const first = await Promise.all([...urls, ...urls].map(ask));
    const { name, madeBy } = first[0][1];
    assert.equal(name, "ann");
    assert.ok(programs.some(({ pid }) => pid === madeBy));
    for (const [, price] of first) {
        assert.deepEqual(price, { name, madeBy });
    }
    assert.deepEqual(first.map(([how]) => how).sort(), ["made", "read", "read", "read"]);
    for (const url of urls) {
        assert.deepEqual(await ask(url), ["read", { name, madeBy }]);
    }
    // The route for HEAD, which Fastify adds, has the same price.
    const head = await fetch(`${urls[0]}/price/ann`, { method: "HEAD", headers: { connection: "close" } });
    assert.deepEqual([head.status, head.headers.get("x-cache")], [200, "read"]);
    const missing = await fetch(`${urls[0]}/none`, { headers: { connection: "close" } });
    assert.equal(missing.status, 404);
    for (const program of programs) {
        program.kill();
        assert.deepEqual(await once(program, "exit"), [0, null]);
    }
});
