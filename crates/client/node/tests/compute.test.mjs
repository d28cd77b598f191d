// One computes for all.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import { Client } from "nuthatch";

import { Server, nobody, run } from "./harness.mjs";

const server = await Server.start();

for (const way of ["tcp", "shm"]) {
    test(`of many that ask, one computes (${way})`, async () => {
        const client = new Client(server[way], { codec: "json" });
        await client.flush();
        let computed = 0;
        const compute = async (key) => {
            computed++;
            await sleep(30);
            return { of: key };
        };
        const found = await Promise.all(Array.from({ length: 50 }, () => client.getOrCompute("one", compute, { ttl: 60 })));
        assert.ok(found.every((value) => value.of === "one"));
        assert.equal(computed, 1);
        assert.deepEqual(await client.getOrCompute("one", compute), { of: "one" });
        // Nobody waits for long where the one that computes fails: another one does.
        let failures = 0;
        const failing = Array.from({ length: 5 }, () =>
            client.getOrCompute("two", () => (++failures < 3 ? Promise.reject(new Error(`failure ${failures}`)) : failures)),
        );
        const settled = await Promise.allSettled(failing);
        assert.deepEqual(settled.map(({ status }) => status).sort(), [...Array(3).fill("fulfilled"), ...Array(2).fill("rejected")]);
        assert.ok(settled.every(({ value, reason }) => value === 3 || /^failure [12]$/.test(reason.message)));
        await client.close();
    });
}

test("of several processes, one computes", async () => {
    const program = `
        import { Client } from "nuthatch";
        const client = new Client(process.argv[1], { codec: "utf8" });
        const compute = () => new Promise((resolve) => setTimeout(resolve, 500, String(process.pid)));
        console.log(process.pid, await client.getOrCompute("processes", compute, { ttl: 60 }));
    `;
    const found = await Promise.all(Array.from({ length: 4 }, () => run(program, server.shm)));
    const pairs = found.map(({ said }) => said.trim().split(" "));
    assert.equal(new Set(pairs.map(([own]) => own)).size, 4);
    assert.equal(new Set(pairs.map(([, made]) => made)).size, 1);
});

test("what is out of date is given while one computes anew", async () => {
    const client = new Client(server.shm, { codec: "json" });
    await client.set("page", "old", { ttl: 60 });
    await client.makeStale("page", 60);
    let finish;
    const computing = client.getOrCompute("page", () => new Promise((resolve) => (finish = resolve)), { ttl: 60 });
    while (finish === undefined) {
        await sleep(1);
    }
    assert.equal(await client.getOrCompute("page", () => assert.fail()), "old");
    finish("new");
    assert.equal(await computing, "new");
    assert.equal(client.getSync("page"), "new");
    // Less than 100 seconds are left: one computes before it expires.
    assert.equal(await client.getOrCompute("page", () => "newer", { ttl: 60, early: 100 }), "newer");
    await client.close();
});

test("a lease ends, and then another one computes", async () => {
    const client = new Client(server.tcp, { codec: "json" });
    let finish;
    const slow = client.getOrCompute("leased", () => new Promise((resolve) => (finish = resolve)), { lease: 1 });
    while (finish === undefined) {
        await sleep(1);
    }
    assert.equal(await client.getOrCompute("leased", () => "quick", { lease: 30 }), "quick");
    finish("slow");
    assert.equal(await slow, "slow");
    assert.equal(await client.get("leased"), "quick");
    await client.close();
});

test("undefined is not stored, and what cannot be stored is told", async () => {
    const client = new Client(server.tcp, { codec: "json" });
    assert.equal(await client.getOrCompute("none", () => undefined), undefined);
    assert.equal(await client.get("none"), undefined);
    await assert.rejects(client.getOrCompute("none", () => 5n), TypeError);
    await assert.rejects(
        client.getOrCompute("none", () => {
            throw new SyntaxError("mine");
        }),
        { name: "SyntaxError", message: "mine" },
    );
    assert.equal(await client.add("none", 1), true);
    await client.close();
});

test("without a server the value is computed", async () => {
    const client = new Client(await nobody(), { codec: "json" });
    assert.equal(await client.getOrCompute("k", async () => "computed"), "computed");
    await client.close();
});

test("it computes in the context of who asks", async () => {
    const client = new Client(server.tcp, { codec: "json" });
    const storage = new AsyncLocalStorage();
    const asks = (name) => storage.run(name, () => client.getOrCompute(name, () => storage.getStore()));
    assert.deepEqual(await Promise.all(["ann", "bob"].map(asks)), ["ann", "bob"]);
    await client.close();
});

for (const way of ["tcp", "shm"]) {
    test(`a signal ends a call, and nobody waits for what it was to compute (${way})`, async () => {
        const client = new Client(server[way], { codec: "json" });
        await client.flush();
        const ask = (key, compute, signal) => client.getOrCompute(key, compute, { lease: 3600, signal });
        await assert.rejects(ask("k", () => assert.fail(), AbortSignal.abort(new Error("mine"))), { message: "mine" });
        await assert.rejects(ask("k", () => assert.fail(), "soon"), { code: "ERR_INVALID_ARG_TYPE" });

        // While it computes: the value that comes too late is dropped.
        const computes = new AbortController();
        let finish;
        const left = ask("k", () => new Promise((resolve) => (finish = resolve)), computes.signal);
        while (finish === undefined) {
            await sleep(1);
        }
        // While it waits for another one.
        const waits = new AbortController();
        const waiting = ask("k", () => assert.fail(), waits.signal);
        waits.abort();
        await assert.rejects(waiting, { name: "AbortError" });
        computes.abort();
        await assert.rejects(left, { name: "AbortError" });
        assert.equal(await ask("k", () => "v", new AbortController().signal), "v");
        finish("late");
        assert.equal(await client.get("k"), "v");

        // Before it knows who computes.
        for (let turn = 0; turn < 200; turn++) {
            const asks = new AbortController();
            const call = ask(`k${turn}`, () => new Promise(() => {}), asks.signal);
            for (let tick = 0; tick < turn % 5; tick++) {
                await new Promise(setImmediate);
            }
            asks.abort();
            await assert.rejects(call, { name: "AbortError" });
            // Its answer comes after that of the call.
            await client.touch("other", 60);
            assert.equal(await client.add(`k${turn}`, 1), true, `${turn}`);
        }
        await client.close();
    });
}

test("a call that was left holds no process", async () => {
    const program = `
        import { Client } from "nuthatch";
        const client = new Client(process.argv[1], { codec: "utf8" });
        const leaves = new AbortController();
        const never = () => new Promise(() => setTimeout(() => leaves.abort(), 20));
        const call = client.getOrCompute("held", never, { lease: 3600, signal: leaves.signal });
        await call.catch((error) => console.log(error.name));
    `;
    assert.deepEqual(await run(program, server.tcp), { said: "AbortError\n", code: 0, signal: null });
});
