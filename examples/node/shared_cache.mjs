// A web program whose processes share one cache.
//
//     nuthatch -p 11211 --shared /run/user/1000/nuthatch-shared
//     npm install express nuthatch-node-VERSION-PROCESSOR.tgz
//     NUTHATCH_URL='shm:///run/user/1000/nuthatch-shared?or=tcp://127.0.0.1:11211' node shared_cache.mjs
//
// Each page takes half a second to make, and is made once for all processes. From then on each process reads it out of the server's
// memory. The program ends by SIGTERM.

import cluster from "node:cluster";
import { setTimeout as sleep } from "node:timers/promises";

import express from "express";
import { ASK, Client } from "nuthatch";

/** The page, and who made it. */
async function make(path) {
    await sleep(500);
    return `${path} made by ${process.pid}`;
}

function work() {
    const cache = new Client(process.env.NUTHATCH_URL ?? "tcp://127.0.0.1:11211", { codec: "utf8" });
    const app = express();
    app.get("/:name", async (request, response) => {
        const key = `page:${request.path}`;
        let page = cache.getSync(key, ASK);
        const how = page === ASK ? "asked" : "read";
        // Empty, too: while one process makes it, there is an empty item in its place.
        if (!page || page === ASK) {
            page = await cache.getOrCompute(key, () => make(request.path), { ttl: 60 });
        }
        response.type("text/plain").send(`${page}\n${how} by ${process.pid}\n`);
    });
    const server = app.listen(Number(process.env.PORT ?? 8080), "127.0.0.1", () => {
        console.log(`http://127.0.0.1:${server.address().port} by ${process.pid}`);
    });
    process.once("SIGTERM", () => {
        // When the last page was sent: until then it may be asked for.
        server.close(async () => {
            await cache.close();
            process.disconnect();
        });
    });
}

if (cluster.isPrimary) {
    for (let workers = 0; workers < 4; workers++) {
        cluster.fork();
    }
    process.once("SIGTERM", () => {
        for (const worker of Object.values(cluster.workers)) {
            worker.process.kill("SIGTERM");
        }
    });
} else {
    work();
}
