// What is read from a server's memory, at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { ASK, Client } from "nuthatch";

import { Server, run } from "./harness.mjs";

test("a hit, a miss, and what only the server can say", async () => {
    const server = await Server.start();
    const client = new Client(server.shm, { codec: "utf8" });
    assert.equal(client.getSync("k"), undefined);
    assert.equal(client.getSync("k", ASK), ASK);
    await client.connect();
    assert.equal(client.getSync("k", ASK), undefined);
    await client.set("k", "v");
    assert.equal(client.getSync("k", ASK), "v");
    assert.equal(client.getSync(Buffer.from("k"), "other"), "v");
    await client.makeStale("k", 60);
    assert.equal(client.getSync("k", ASK), ASK);
    assert.equal(await client.get("k"), "v");
    await client.delete("k");
    assert.equal(client.getSync("k", ASK), undefined);
    await client.close();
});

test("reads are no calls: the server is not asked", async () => {
    const server = await Server.start();
    const client = new Client(server.shm);
    await client.set("k", "v");
    const asked = async () => Number(Object.values(await client.stats())[0].cmd_get);
    const before = await asked();
    for (let turn = 0; turn < 1000; turn++) {
        assert.equal(client.getSync("k").toString(), "v");
        assert.equal((await client.get("k")).toString(), "v");
        assert.equal(await client.get("none"), undefined);
        assert.equal((await client.getOrCompute("k", () => assert.fail())).toString(), "v");
    }
    assert.equal(await asked(), before);
    await client.close();
});

test("another server in its place is read after the next call", async () => {
    const server = await Server.start();
    const client = new Client(`${server.shm}&retry_least_ms=1&retry_most_ms=5`, { codec: "utf8" });
    await client.set("k", "old");
    assert.equal(client.getSync("k", ASK), "old");
    const { port } = server;
    for (const signal of ["SIGTERM", "SIGKILL"]) {
        await server.end(signal);
        // After a kill the kernel tells it a moment later.
        while (client.getSync("k", ASK) !== ASK) {
            await sleep(1);
        }
        await assert.rejects(client.get("k"), { carriedOut: false });
        await server.begin(port);
        const set = async () => {
            await client.set("k", signal);
            return true;
        };
        while (!(await set().catch((error) => assert.match(error.code, /_(DOWN|LOST)$/) ?? false))) {
            await sleep(1);
        }
        while (client.getSync("k", ASK) === ASK) {
            await client.get("k");
        }
        assert.equal(client.getSync("k"), signal);
    }
    await client.close();
});

test("another process' changes are seen by the next read", async () => {
    const server = await Server.start();
    const client = new Client(server.shm, { codec: "json" });
    await client.connect();
    const program = `
        import { Client } from "nuthatch";
        const client = new Client(process.argv[1], { codec: "json" });
        for (let turn = 0; turn <= 2000; turn++) await client.set("turn", { turn, again: turn });
    `;
    const child = run(program, server.tcp);
    for (let seen = 0; seen < 2000; ) {
        const found = client.getSync("turn");
        if (found !== undefined) {
            assert.equal(found.turn, found.again);
            assert.ok(found.turn >= seen);
            seen = found.turn;
        }
        await sleep(0);
    }
    assert.equal((await child).code, 0);
    await client.close();
});
