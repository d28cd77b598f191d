// Each call does what it says.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { describe, test } from "node:test";
import vm from "node:vm";

import { Client, ASK } from "nuthatch";
import * as all from "nuthatch";

import { Server } from "./harness.mjs";

const server = await Server.start();

for (const way of ["tcp", "shm"]) {
    describe(`calls over ${way}`, () => {
        test("each does what it says", async () => {
            const client = new Client(server[way]);
            await client.flush();
            assert.equal(await client.get("k"), undefined);
            assert.equal(await client.set("k", "value", { ttl: 60 }), undefined);
            assert.deepEqual(await client.get(Buffer.from("k")), Buffer.from("value"));
            assert.equal(await client.add("k", "1"), false);
            assert.equal(await client.add("new", "1"), true);
            assert.equal(await client.replace("none", "1"), false);
            assert.equal(await client.append("k", ">"), true);
            assert.equal(await client.prepend("k", new Uint8Array([60])), true);
            assert.equal(await client.append("none", "1"), false);
            const item = await client.getItem("k");
            assert.equal(item.value.toString(), "<value>");
            assert.equal(typeof item.cas, "bigint");
            assert.ok(item.ttl > 0 && item.ttl <= 60 && item.flags === 0);
            assert.equal((await client.getItem("new")).ttl, Infinity);
            assert.equal(await client.getItem("none"), undefined);
            assert.equal(await client.cas("k", "mine", item.cas), true);
            assert.equal(await client.cas("k", "late", item.cas), false);
            assert.equal(await client.cas("none", "late", item.cas), false);
            assert.equal(await client.touch("k", 60), true);
            assert.equal(await client.touch("none", 60), false);
            assert.equal((await client.getAndTouch("k", Infinity)).toString(), "mine");
            assert.equal((await client.getItem("k")).ttl, Infinity);
            assert.equal(await client.delete("k"), true);
            assert.equal(await client.delete("k"), false);
            assert.match(Object.values(await client.version())[0], /^1\.6\./);
            const [stats] = Object.values(await client.stats());
            assert.ok(Number(stats.curr_items) > 0);
            await client.flush();
            assert.equal(await client.get("new"), undefined);
            await client.close();
        });

        test("numbers are counted", async () => {
            const client = new Client(server[way]);
            await client.set("n", "9");
            assert.deepEqual([await client.incr("n", 3), await client.decr("n", 5), await client.incr("none")], [12, 7, undefined]);
            assert.deepEqual([await client.incr("n"), await client.decr("n")], [8, 7]);
            assert.equal(await client.decr("n", 100n), 0n);
            assert.equal(await client.incr("n", 2n ** 64n - 1n), 2n ** 64n - 1n);
            await assert.rejects(client.decr("n", 1), { name: "RangeError", code: "ERR_OUT_OF_RANGE" });
            assert.equal(await client.incr("n", 2n), 0n);
            await client.set("n", "many");
            await assert.rejects(client.incr("n"), { name: "NotANumberError", code: "ERR_NUTHATCH_NOT_A_NUMBER" });
            await client.close();
        });

        test("many keys go together", async () => {
            const client = new Client(server[way], { codec: "utf8" });
            const items = new Map(Array.from({ length: 3000 }, (_, number) => [`many${number}`, `value ${number}`]));
            await client.setMany(items, { ttl: 60 });
            assert.deepEqual(await client.getMany([...items.keys(), "none"]), [...items.values(), undefined]);
            await client.setMany({ many0: "other" });
            assert.deepEqual(await client.getMany(["many0"]), ["other"]);
            assert.ok((await client.deleteMany(items.keys())).every(Boolean));
            assert.deepEqual(await client.deleteMany(["many0"]), [false]);
            assert.deepEqual(await client.getMany([]), []);
            await client.close();
        });

        test("values are what the codec says", async () => {
            const large = "é".repeat(300_000);
            for (const [codec, values] of [
                ["buffer", [Buffer.alloc(0), Buffer.from([0, 255]), Buffer.alloc(900_000, 7)]],
                ["utf8", ["", "größe", large]],
                ["json", [null, 5, { a: [1, "x"] }, "text", large]],
                [{ encode: (value) => String(value), decode: (stored) => Number(stored) }, [1.5]],
            ]) {
                const client = new Client(server[way], { codec });
                for (const value of values) {
                    await client.set("value", value);
                    assert.deepEqual(await client.get("value"), value);
                    assert.deepEqual(await client.getMany(["value"]), [value]);
                    assert.deepEqual((await client.getItem("value")).value, value);
                    const found = client.getSync("value", ASK);
                    assert.deepEqual(found, way === "shm" ? value : ASK);
                }
                await client.close();
            }
        });

        test("a key is text or bytes, and may have white space", async () => {
            const client = new Client(server[way], { codec: "utf8" });
            const keys = ["a b\r\n", "schlüssel", "x".repeat(250), "é".repeat(125), "\u{1f600}".repeat(62), Buffer.from([0, 255])];
            await client.setMany(keys.map((key, number) => [key, String(number)]));
            for (const [number, key] of keys.entries()) {
                assert.equal(await client.get(key), String(number));
            }
            await client.set("same", vm.runInNewContext("Uint8Array.from([111, 110, 101])"));
            assert.equal(await client.get(new Uint8Array(Buffer.from("-same-")).subarray(1, 5)), "one");
            await client.close();
        });
    });
}

test("lifetimes are in seconds, and a client has one of its own", async () => {
    const client = new Client({ address: server.tcp, ttl: 100, codec: "json" });
    await client.set("a", 1);
    await client.set("b", 1, { ttl: 7.5 });
    await client.set("c", 1, { ttl: Infinity });
    const left = async (key) => (await client.getItem(key)).ttl;
    assert.ok(Math.abs((await left("a")) - 100) <= 1);
    assert.ok(Math.abs((await left("b")) - 8) <= 1);
    assert.equal(await left("c"), Infinity);
    await client.close();
});

test("calls of one tick travel together, and on one connection", async () => {
    const client = new Client(server.tcp, { codec: "utf8" });
    await client.connect();
    const before = Object.values(await client.stats())[0].total_connections;
    await Promise.all(
        Array.from({ length: 256 }, async (_, number) => {
            for (let turn = 0; turn < 20; turn++) {
                await client.set(`task${number}`, `${number}-${turn}`);
                assert.equal(await client.get(`task${number}`), `${number}-${turn}`);
            }
        }),
    );
    assert.equal(Object.values(await client.stats())[0].total_connections, before);
    await client.close();
});

test("calls beyond what may wait at a time stand in line", async () => {
    const client = new Client(`${server.tcp}?requests_max=16`, { codec: "utf8", timeout: 60 });
    const keys = Array.from({ length: 30_000 }, (_, number) => `line${number % 100}`);
    await Promise.all(keys.map((key) => client.set(key, key)));
    assert.deepEqual(await Promise.all(keys.map((key) => client.get(key))), keys);
    await client.close();
});

test("a Buffer is stored as the bytes that it is", async (context) => {
    const client = new Client(server.tcp);
    const toJSON = context.mock.method(Buffer.prototype, "toJSON");
    const value = Buffer.from([0, 255, 7]);
    await Promise.all([client.set("bytes", value), client.setMany([["many bytes", value]]), client.getOrCompute("computed", () => value)]);
    await client.append("bytes", value);
    // Nobody makes JSON of them on the way, which takes a hundred times as long.
    assert.equal(toJSON.mock.callCount(), 0);
    assert.deepEqual(await client.getMany(["bytes", "many bytes", "computed"]), [Buffer.concat([value, value]), value, value]);
    await client.close();
});

test("calls leave though a test has put a clock of its own in place of Node.js'", async (context) => {
    const client = new Client(server.tcp, { codec: "utf8" });
    const clock = context.mock.method(process, "nextTick", () => {});
    const stored = client.set("clock", "v");
    clock.mock.restore();
    await stored;
    assert.equal(await client.get("clock"), "v");
    await client.close();
});

test("an address may be a URL", async () => {
    const client = new Client(new URL(server.tcp), { codec: "utf8" });
    await client.set("url", "v");
    assert.equal(await client.get("url"), "v");
    await client.close();
});

test("values of all sizes come together", async () => {
    const client = new Client(server.tcp);
    const values = Array.from({ length: 300 }, (_, number) => Buffer.alloc((number * number) % 40_000, number));
    await Promise.all(values.map((value, number) => client.set(`size${number}`, value)));
    const found = await Promise.all(values.flatMap((_, number) => [client.get(`size${number}`), client.get("none")]));
    assert.deepEqual(found, values.flatMap((value) => [value, undefined]));
    // They are the program's own: what comes later leaves them as they are.
    await Promise.all(values.map(() => client.get("size7")));
    assert.deepEqual(found[10], values[5]);
    await client.close();
});

test("a near cache answers at once", async () => {
    const client = new Client(server.tcp, { codec: "utf8", near: { ttl: 60, bytes: 1 << 20 } });
    const other = new Client(server.tcp, { codec: "utf8" });
    await client.set("near", "one");
    assert.equal(client.getSync("near", ASK), ASK);
    assert.equal(await client.get("near"), "one");
    assert.equal(client.getSync("near", ASK), "one");
    await other.set("near", "others'");
    assert.equal(await client.get("near"), "one");
    await client.set("near", "two");
    assert.equal(client.getSync("near", ASK), ASK);
    assert.equal(await client.get("near"), "two");
    await Promise.all([client.close(), other.close()]);
});

test("the package can be required, and has the same", () => {
    const required = createRequire(import.meta.url)("nuthatch");
    assert.deepEqual(Object.keys(required).sort(), Object.keys(all).sort());
    assert.equal(required.Client, Client);
});
