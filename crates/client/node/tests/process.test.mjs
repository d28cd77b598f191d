// Processes that end, and threads.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { Client } from "nuthatch";

import { Server, nobody, run } from "./harness.mjs";

const server = await Server.start();

test("a process ends when nothing waits, though its clients are open", async () => {
    const program = `
        import { Client } from "nuthatch";
        const idle = new Client(process.argv[1]);
        const used = new Client(process.argv[1], { codec: "utf8" });
        await used.set("ending", "v", { ttl: 60 });
        console.log(await used.get("ending"));
        // Nobody waits for it here: the process does.
        used.set("ending", "last").then(() => console.log("stored"));
    `;
    assert.deepEqual(await run(program, server.tcp), { said: "v\nstored\n", code: 0, signal: null });
});

test("a computation that never ends does not keep the process", async () => {
    const program = `
        import { Client } from "nuthatch";
        const client = new Client(process.argv[1]);
        client.getOrCompute("never", () => new Promise(() => console.log("asked")));
    `;
    assert.deepEqual(await run(program, server.tcp), { said: "asked\n", code: 0, signal: null });
});

test("a process may exit in the middle of calls", async () => {
    const program = `
        import { Client } from "nuthatch";
        const client = new Client(process.argv[1]);
        for (let call = 0; call < 1000; call++) client.set("k", "x".repeat(call));
        await client.get("k");
        for (let call = 0; call < 1000; call++) client.get("k");
        setImmediate(() => process.exit(7));
    `;
    assert.equal((await run(program, server.tcp)).code, 7);
});

test("a client that nobody has goes, and its connection with it", async () => {
    const program = `
        import { setTimeout as sleep } from "node:timers/promises";
        import { Client } from "nuthatch";
        const watch = new Client(process.argv[1]);
        const connections = async () => Number(Object.values(await watch.stats())[0].curr_connections);
        const before = await connections();
        for (let turn = 0; turn < 20; turn++) await new Client(process.argv[1]).get("k");
        console.log((await connections()) > before);
        // Until they are collected.
        while ((await connections()) > before) { gc(); await sleep(10); }
    `;
    const child = spawn(process.execPath, ["--expose-gc", "--input-type=module", "--eval", program, server.tcp]);
    let said = "";
    child.stdout.on("data", (data) => (said += data));
    assert.deepEqual(await once(child, "close"), [0, null]);
    assert.equal(said, "true\n");
});

test("workers have clients of their own, and may end at any moment", async () => {
    const program = `
        import { parentPort, workerData } from "node:worker_threads";
        import { ASK, Client } from "nuthatch";
        const client = new Client(workerData.address, { codec: "utf8" });
        await client.connect();
        parentPort.on("message", async (number) => {
            await client.set("worker" + number, "of " + number);
            parentPort.postMessage(client.getSync("worker" + number, ASK));
        });
        if (workerData.isBusy) for (;;) await Promise.all([client.get("k"), client.set("k", "v")]);
    `;
    const started = (isBusy) =>
        new Worker(new URL(`data:text/javascript,${encodeURIComponent(program.replaceAll('"nuthatch"', JSON.stringify(import.meta.resolve("nuthatch"))))}`), {
            workerData: { address: server.shm, isBusy },
        });
    const idle = [0, 1, 2, 3].map(() => started(false));
    const answers = idle.map(async (worker, number) => {
        worker.postMessage(number);
        const [answer] = await once(worker, "message");
        return answer;
    });
    assert.deepEqual(await Promise.all(answers), ["of 0", "of 1", "of 2", "of 3"]);
    for (let turn = 0; turn < 10; turn++) {
        const busy = started(true);
        busy.postMessage(turn);
        await once(busy, "message");
        await busy.terminate();
    }
    await Promise.all(idle.map((worker) => worker.terminate()));
    // Nothing of this process is the worse for it.
    const client = new Client(server.shm, { codec: "utf8" });
    await client.set("after", "all");
    assert.equal(client.getSync("after"), "all");
    await client.close();
});

test("calls that fail leave no rejection that nobody handles", async () => {
    const program = `
        import { Client } from "nuthatch";
        process.on("unhandledRejection", (reason) => console.log("unhandled", reason));
        const client = new Client(process.argv[1], { codec: "json" });
        const calls = [client.get("k"), client.set("k", 1), client.get(""), client.getMany(5), client.connect()];
        calls.push(client.getOrCompute("k", () => Promise.reject(new Error("mine"))));
        const settled = await Promise.allSettled(calls);
        console.log(settled.filter(({ status }) => status === "rejected").length);
        await client.close();
    `;
    assert.deepEqual(await run(program, await nobody()), { said: "6\n", code: 0, signal: null });
});

