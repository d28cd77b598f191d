// The example: four processes that share one cache.

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
