// Bad input gets a clear error, and so does a call of a server that is dead, silent or lies.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import * as nuthatch from "nuthatch";

import { Server, nobody, strange } from "./harness.mjs";

const { ASK, Client } = nuthatch;
const server = await Server.start();
const type = { name: "TypeError", code: "ERR_INVALID_ARG_TYPE" };
const range = { name: "RangeError", code: "ERR_OUT_OF_RANGE" };
const ofKey = { name: "KeyError", code: "ERR_NUTHATCH_KEY", carriedOut: false };

// A rejection that nobody handles ends the process: then no test of this file passes.

test("errors have classes, names and codes", async () => {
    const client = new Client(server.tcp);
    await assert.rejects(client.get(""), (error) => {
        assert.ok(error instanceof nuthatch.KeyError && error instanceof nuthatch.NuthatchError && error instanceof Error);
        assert.match(String(error), /^KeyError: a key of 0 bytes/);
        return true;
    });
    await client.close();
});

for (const way of ["tcp", "shm"]) {
    test(`wrong keys, over ${way}`, async () => {
        const client = new Client(server[way]);
        await client.connect();
        for (const wrong of ["", "x".repeat(251), "é".repeat(126), "x".repeat(1e6), Buffer.alloc(0), Buffer.alloc(251), " ".repeat(187)]) {
            assert.throws(() => client.getSync(wrong), ofKey);
            await assert.rejects(client.get(wrong), ofKey);
            await assert.rejects(client.set(wrong, "v"), ofKey);
            await assert.rejects(client.getMany(["k", wrong]), ofKey);
            await assert.rejects(client.deleteMany([wrong]), ofKey);
            await assert.rejects(client.getOrCompute(wrong, () => "v"), ofKey);
        }
        for (const wrong of [undefined, null, 5, {}, [], Symbol("s"), new Date(), new Uint16Array(2), () => {}]) {
            assert.throws(() => client.getSync(wrong), type);
            await assert.rejects(client.get(wrong), type);
            await assert.rejects(client.set(wrong, "v"), type);
            await assert.rejects(client.getMany([wrong]), type);
            await assert.rejects(client.setMany([[wrong, "v"]]), type);
            await assert.rejects(client.getOrCompute(wrong, () => "v"), type);
        }
        assert.throws(() => client.getSync("\ud800"), range);
        await assert.rejects(client.get("\udc00x"), range);
        for (const wrong of [undefined, null, 5, "keys", {}]) {
            await assert.rejects(client.getMany(wrong), type);
            await assert.rejects(client.deleteMany(wrong), type);
        }
        await client.close();
    });
}

test("wrong values, lifetimes and numbers", async () => {
    const client = new Client(server.tcp);
    const json = new Client(server.tcp, { codec: "json" });
    await client.set("k", "kept");
    for (const wrong of [undefined, null, 5, {}, Symbol("s")]) {
        await assert.rejects(client.set("k", wrong), type);
        await assert.rejects(client.append("k", wrong), type);
    }
    for (const wrong of [undefined, () => {}, Symbol("s")]) {
        await assert.rejects(json.set("k", wrong), type);
    }
    const circle = {};
    circle.circle = circle;
    await assert.rejects(json.set("k", circle), TypeError);
    for (const wrong of [NaN, -1, 0, -Infinity]) {
        await assert.rejects(client.set("k", "v", { ttl: wrong }), range);
        await assert.rejects(client.touch("k", wrong), range);
    }
    for (const wrong of ["60", null, 60n, {}]) {
        await assert.rejects(client.set("k", "v", { ttl: wrong }), type);
        await assert.rejects(client.touch("k", wrong), type);
    }
    await assert.rejects(client.set("k", "v", 60), type);
    await assert.rejects(client.set("k", "v", { expires: 60 }), { name: "TypeError", message: /"expires"/ });
    await assert.rejects(client.setMany([["k"]]), type);
    await assert.rejects(client.setMany("k"), type);
    for (const wrong of [-1, 1.5, NaN, Infinity, 2 ** 60, -1n, 2n ** 64n]) {
        await assert.rejects(client.incr("k", wrong), range);
    }
    for (const wrong of ["1", null, {}]) {
        await assert.rejects(client.incr("k", wrong), type);
    }
    for (const wrong of [undefined, 5, "5"]) {
        await assert.rejects(client.cas("k", "v", wrong), type);
    }
    await assert.rejects(client.cas("k", "v", -1n), range);
    await assert.rejects(client.getOrCompute("k", "v"), type);
    await assert.rejects(client.getOrCompute("k", () => "v", { lease: -1 }), range);
    await assert.rejects(client.getOrCompute("k", () => "v", { early: NaN }), range);
    await assert.rejects(client.flush(-1), range);
    await assert.rejects(client.stats("items\r\nflush_all"), { code: "ERR_NUTHATCH_REFUSED" });
    assert.equal((await client.get("k")).toString(), "kept");
    const primitive = new Client(server.tcp, {
        codec: {
            encode() {
                throw null;
            },
            decode: String,
        },
    });
    await assert.rejects(primitive.set("k", "v"), (error) => error === null);
    await primitive.close();
    // What JSON cannot read is an error of this call alone.
    await assert.rejects(json.get("k"), SyntaxError);
    await Promise.all([client.close(), json.close()]);
});

test("a value above the limit", async () => {
    const client = new Client(`${server.tcp}?value_max=1000`);
    await assert.rejects(client.set("k", "x".repeat(1001)), { name: "ValueError", code: "ERR_NUTHATCH_VALUE" });
    await client.close();
    // The server's own limit is a megabyte.
    const more = new Client(server.tcp);
    await assert.rejects(more.set("k", Buffer.alloc(2 << 20)), { name: "RefusedError", code: "ERR_NUTHATCH_REFUSED" });
    await more.set("k", "small");
    await more.close();
});

test("wrong addresses and options", () => {
    const address = { name: "AddressError", code: "ERR_NUTHATCH_ADDRESS" };
    for (const wrong of ["", "127.0.0.1", "http://a", "tcp://", "tcp://a?timeout=1", "shm://a", "tls://a"]) {
        assert.throws(() => new Client(wrong), address);
    }
    for (const wrong of [undefined, null, 5, {}, []]) {
        assert.throws(() => new Client(wrong), TypeError);
    }
    const made = (options) => () => new Client("tcp://127.0.0.1", options);
    assert.throws(made({ codec: "xml" }), type);
    assert.throws(made({ codec: "toString" }), type);
    assert.throws(made({ codec: { encode: 1, decode: 2 } }), type);
    assert.throws(made({ timeout: "1" }), type);
    assert.throws(made({ timeout: NaN }), range);
    assert.throws(made({ ttl: 0 }), range);
    assert.throws(made({ near: { ttl: -1 } }), range);
    assert.throws(made({ near: { ttl: 1, bytes: 1.5 } }), range);
    assert.throws(made({ user: "me" }), type);
    assert.throws(made({ time: 1 }), { name: "TypeError", message: /"time"/ });
});

test("a server that is dead", async () => {
    const client = new Client(await nobody());
    await assert.rejects(client.get("k"), { name: "DownError", code: "ERR_NUTHATCH_DOWN", carriedOut: false });
    await assert.rejects(client.connect(), { code: "ERR_NUTHATCH_DOWN" });
    assert.equal(client.getSync("k", ASK), ASK);
    await client.close();
});

test("a server that says no more", async () => {
    let isFirst = true;
    const address = await strange((sent, socket) => {
        if (isFirst) {
            isFirst = false;
            socket.write("MN\r\n");
        }
    });
    const client = new Client(address, { timeout: 0.2 });
    const timeout = { name: "TimeoutError", code: "ERR_NUTHATCH_TIMEOUT", carriedOut: true };
    const calls = [client.get("k"), client.set("k", "v"), client.incr("k")];
    for (const settled of await Promise.allSettled(calls)) {
        assert.throws(() => {
            throw settled.reason;
        }, timeout);
    }
    await client.close();
});

test("a server that hangs up", async () => {
    const address = await strange((sent, socket) => {
        if (sent.startsWith("mn")) {
            socket.write("MN\r\n");
        } else {
            socket.destroy();
        }
    });
    const client = new Client(address);
    await assert.rejects(client.set("k", "v"), { name: "LostError", code: "ERR_NUTHATCH_LOST", carriedOut: true });
    await client.close();
});

test("a server that lies", async () => {
    for (const lie of ["VA 3 O999\r\nabc\r\n", "nonsense\r\n", "VA 99999999999\r\n", "HD\r\n".repeat(50), "\0".repeat(5000)]) {
        const address = await strange((sent, socket) => {
            socket.write(sent.startsWith("mn") ? "MN\r\n" : lie);
        });
        const client = new Client(address, { timeout: 0.3 });
        for (const call of [client.get("k"), client.getMany(["a", "b"])]) {
            await assert.rejects(call, (error) => error instanceof nuthatch.NuthatchError);
        }
        await client.close();
    }
});

test("an error tells who waits for it", async () => {
    const client = new Client(await nobody());
    const compute = () => assert.fail("computed");
    const calls = [() => client.get("k"), () => client.set("k", "v"), () => client.getMany(["k"]), () => client.getOrCompute("", compute)];
    for (const call of calls) {
        const handlesRequest = async () => {
            await call();
        };
        await assert.rejects(handlesRequest(), { stack: /^\w+Error: .*\n[^]*at async handlesRequest/ });
    }
    await client.close();
});

test("changes of many keys that fail in part may have been made", async () => {
    const dead = await nobody();
    const two = new Client(`${server.tcp},${dead.slice("tcp://".length)}`);
    const items = Array.from({ length: 50 }, (_, number) => [`part${number}`, "v"]);
    const inPart = { name: "DownError", code: "ERR_NUTHATCH_DOWN", carriedOut: true };
    await assert.rejects(two.setMany(items), inPart);
    await assert.rejects(two.deleteMany(items.map(([key]) => key)), inPart);
    const none = new Client(dead);
    await assert.rejects(none.setMany(items), { name: "DownError", carriedOut: false });
    const one = new Client(server.tcp, { codec: "utf8" });
    await assert.rejects(one.setMany([["", "v"]]), { name: "KeyError", carriedOut: false });
    await assert.rejects(one.setMany({ "": "v", part: "made" }), { name: "KeyError", carriedOut: true });
    assert.equal(await one.get("part"), "made");
    await Promise.all([two.close(), none.close(), one.close()]);
});

test("a server that asks for a login", async () => {
    const folder = mkdtempSync(path.join(tmpdir(), "nuthatch-node-"));
    after(() => rmSync(folder, { recursive: true }));
    writeFileSync(path.join(folder, "users"), "ann:secret\n", { mode: 0o600 });
    const guarded = await Server.start("-Y", path.join(folder, "users"));
    const wrong = new Client(guarded.tcp, { user: "ann", password: "wrong" });
    await assert.rejects(wrong.get("k"), { name: "DownError", message: /login refused/ });
    const right = new Client(guarded.tcp, { user: "ann", password: "secret" });
    await right.set("k", "v");
    await Promise.all([wrong.close(), right.close()]);
});

test("a closed client", async () => {
    const client = new Client(server.tcp);
    const closed = { name: "ClosedError", code: "ERR_NUTHATCH_CLOSED", carriedOut: false };
    // What is under way comes to its end.
    const last = client.set("last", "call");
    const closing = client.close();
    assert.equal(client.close(), closing);
    await assert.rejects(client.get("k"), closed);
    assert.equal(await last, undefined);
    await closing;
    assert.throws(() => client.getSync("k"), closed);
    await assert.rejects(client.get("k"), closed);
    await assert.rejects(client.getOrCompute("k", () => "v"), closed);
    await client.close();
    const never = new Client(server.tcp);
    await never[Symbol.asyncDispose]();
    await assert.rejects(never.set("k", "v"), closed);
});

test("a client that is closed while it computes", async () => {
    const client = new Client(server.tcp, { codec: "json" });
    let finish;
    const computing = client.getOrCompute("closing", () => new Promise((resolve) => (finish = resolve)));
    while (finish === undefined) {
        await sleep(1);
    }
    const closing = client.close();
    finish("value");
    assert.equal(await computing, "value");
    await closing;
});
