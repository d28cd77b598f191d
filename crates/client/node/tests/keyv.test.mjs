// The store for Keyv and cache-manager.

import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { createCache } from "cache-manager";
import Keyv from "keyv";
import { Client } from "nuthatch";
import { KeyvNuthatch } from "nuthatch/keyv";

import { Server } from "./harness.mjs";

const server = await Server.start();

for (const way of ["tcp", "shm"]) {
    test(`Keyv stores values and their lifetimes (${way})`, async () => {
        const keyv = new Keyv({ store: new KeyvNuthatch(server[way]), namespace: "keyv", throwOnErrors: true });
        assert.equal(await keyv.get("k"), undefined);
        assert.equal(await keyv.set("k", { a: [1, Buffer.from("b")] }, 60_000), true);
        assert.deepEqual(await keyv.get("k"), { a: [1, Buffer.from("b")] });
        assert.equal(await keyv.has("k"), true);
        await keyv.setMany([
            { key: "m1", value: 1 },
            { key: "m2", value: 2, ttl: 60_000 },
        ]);
        assert.deepEqual(await keyv.get(["m1", "none", "m2"]), [1, undefined, 2]);
        assert.equal(await keyv.delete("k"), true);
        assert.equal(await keyv.delete("k"), false);
        assert.equal(await keyv.delete(["m1", "m2"]), true);
        assert.equal(await keyv.has("m1"), false);
        await keyv.set("k", "gone", -1);
        assert.equal(await keyv.get("k"), undefined);

        const client = new Client(server.tcp);
        await keyv.set("short", 1, 7_000);
        await keyv.set("ever", 1);
        const left = async (key) => (await client.getItem(`keyv:${key}`)).ttl;
        assert.ok((await left("short")) <= 7 && (await left("ever")) === Infinity);

        await assert.rejects(keyv.clear(), { code: "ERR_NUTHATCH_MAY_NOT_FLUSH" });
        assert.equal(await keyv.get("ever"), 1);
        await Promise.all([client.close(), keyv.disconnect()]);
    });
}

test("a store may have a client that the program made, and may empty the server", async () => {
    const client = new Client(server.tcp, { codec: "utf8" });
    const keyv = new Keyv({ store: new KeyvNuthatch(client, { mayFlush: true }), throwOnErrors: true });
    await keyv.set("k", 1);
    await keyv.clear();
    assert.equal(await keyv.get("k"), undefined);
    await keyv.disconnect();
    await client.set("k", "still open");
    await client.close();
});

test("a store gives what Keyv has stored, whatever the client's codec", async () => {
    for (const codec of ["buffer", "utf8", "json"]) {
        const client = new Client(server.tcp, { codec });
        const keyv = new Keyv({ store: new KeyvNuthatch(client), namespace: codec, throwOnErrors: true });
        await keyv.set("k", { a: 1 });
        assert.deepEqual(await keyv.get("k"), { a: 1 });
        assert.deepEqual(await keyv.get(["none", "k"]), [undefined, { a: 1 }]);
        // The place of a value that somebody computes is none.
        let finish;
        const computing = client.getOrCompute(`${codec}:computed`, () => new Promise((resolve) => (finish = resolve)));
        while (finish === undefined) {
            await sleep(1);
        }
        assert.equal(await keyv.get("computed"), undefined);
        assert.equal(await keyv.has("computed"), false);
        finish("1");
        await computing;
        await client.close();
    }
});

test("without a lifetime of its own an item has the client's", async () => {
    const client = new Client(server.tcp, { codec: "utf8", ttl: 100 });
    const store = new KeyvNuthatch(client);
    for (const none of [undefined, null, 0]) {
        await store.set("k", "v", none);
        const { ttl } = await client.getItem("k");
        assert.ok(ttl > 90 && ttl <= 100);
    }
    await assert.rejects(store.set("k", "v", NaN), { code: "ERR_OUT_OF_RANGE" });
    await client.close();
});

test("cache-manager wraps a function", async () => {
    const cache = createCache({ stores: [new Keyv({ store: new KeyvNuthatch(server.shm) })] });
    let computed = 0;
    const wrapped = () => cache.wrap("wrapped", async () => ({ computed: ++computed }), 60_000);
    assert.deepEqual([await wrapped(), await wrapped()], [{ computed: 1 }, { computed: 1 }]);
    await cache.mset([{ key: "a", value: 1 }, { key: "b", value: 2 }]);
    assert.deepEqual(await cache.mget(["a", "b", "c"]), [1, 2, undefined]);
    assert.equal(await cache.del("a"), true);
    assert.equal(await cache.get("a"), undefined);
    await cache.disconnect();
});
