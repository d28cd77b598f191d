"use strict";

// A store for Keyv from 5 on, and so for cache-manager from 6 on.

const { EventEmitter } = require("node:events");

const { Client } = require("./client.js");
const check = require("./checks.js");

/** Milliseconds, as Keyv has them, as an item's lifetime. None and 0 are none of its own. */
function keep(ttl) {
    return (ttl ?? 0) === 0 ? {} : { ttl: ttl / 1000 };
}

/** What Keyv has stored: text, though the client has Buffers, and never an empty one, which keeps the place of what is computed. */
function text(stored) {
    const found = Buffer.isBuffer(stored) ? stored.toString() : stored;
    return found === "" ? undefined : found;
}

class KeyvNuthatch extends EventEmitter {
    #client;
    #isOwn;
    #mayFlush;

    constructor(server, options = {}) {
        super();
        const { mayFlush = false } = check.object("options", options, ["mayFlush"]);
        this.#isOwn = !(server instanceof Client);
        this.#client = this.#isOwn ? new Client(server, { codec: "utf8" }) : server;
        this.#mayFlush = mayFlush;
        this.opts = {};
    }

    async get(key) {
        return text(await this.#client.get(key));
    }

    async getMany(keys) {
        return (await this.#client.getMany(keys)).map(text);
    }

    async set(key, value, ttl) {
        if (ttl < 0) {
            await this.#client.delete(key);
        } else {
            await this.#client.set(key, value, keep(ttl));
        }
        return true;
    }

    setMany(entries) {
        return Promise.all(entries.map(({ key, value, ttl }) => this.set(key, value, ttl)));
    }

    delete(key) {
        return this.#client.delete(key);
    }

    async deleteMany(keys) {
        const were = await this.#client.deleteMany(keys);
        return were.every(Boolean);
    }

    async clear() {
        if (!this.#mayFlush) {
            throw Object.assign(
                new Error("a server does not know which keys are this store's: with { mayFlush: true } clear() removes all it has"),
                { code: "ERR_NUTHATCH_MAY_NOT_FLUSH" },
            );
        }
        await this.#client.flush();
    }

    async has(key) {
        return (await this.get(key)) !== undefined;
    }

    /** Closes the client, unless the program had made it. */
    async disconnect() {
        if (this.#isOwn) {
            await this.#client.close();
        }
    }
}

module.exports = { KeyvNuthatch };
