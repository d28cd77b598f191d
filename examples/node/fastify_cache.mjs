// The cache of shared_cache.mjs as a plugin of Fastify, which answers JSON.
//
//     npm install fastify nuthatch-node-VERSION-PROCESSOR.tgz
//     NUTHATCH_URL='shm:///run/user/1000/nuthatch-shared?or=tcp://127.0.0.1:11211' node fastify_cache.mjs
//
// Start several of them, each with a PORT: of all one makes a price, and each reads it out of the server's memory, for as many
// seconds as the route says. The program ends by SIGTERM, when what it was asked is answered.

import { setTimeout as sleep } from "node:timers/promises";

import Fastify from "fastify";
import { Client } from "nuthatch";

/** Keeps what the handlers of routes with a `ttl` return, by the address that was asked for. */
async function caching(app, { url }) {
    const cache = new Client(url, { codec: "json" });
    // Of a route for GET Fastify makes one for HEAD, too, which has the same address, and so the same answer.
    app.addHook("onRoute", (route) => {
        const { ttl } = route.config ?? {};
        if (ttl === undefined) {
            return;
        }
        const { handler } = route;
        route.handler = function (request, reply) {
            reply.header("x-cache", "read");
            const make = () => {
                reply.header("x-cache", "made");
                return handler.call(this, request, reply);
            };
            // Shortly before an answer is too old, one makes the next one, and the others have the old one meanwhile.
            return cache.getOrCompute(`page:${request.url}`, make, { ttl, early: ttl / 10 });
        };
    });
    app.addHook("onClose", () => cache.close());
}
// Its hooks are for the routes beside it, not only for those within it.
caching[Symbol.for("skip-override")] = true;

const app = Fastify();
await app.register(caching, { url: process.env.NUTHATCH_URL ?? "tcp://127.0.0.1:11211" });

app.get("/price/:name", { config: { ttl: 60 } }, async (request) => {
    await sleep(500);
    return { name: request.params.name, madeBy: process.pid };
});

console.log(await app.listen({ host: "127.0.0.1", port: Number(process.env.PORT ?? 8080) }));
process.once("SIGTERM", () => app.close());
