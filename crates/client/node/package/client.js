"use strict";

const { AsyncResource } = require("node:async_hooks");
// Taken now: tests put a clock of their own in its place, with which no call would leave.
const { nextTick } = require("node:process");

const check = require("./checks.js");
const { codec, plain, same } = require("./codecs.js");
const { Failure, closed, thrown } = require("./errors.js");
const { Native } = require("./native.js");

const OPTIONS = ["address", "codec", "ttl", "timeout", "connectTimeout", "near", "user", "password"];

/** What the compiled part says of an answer: `Batch` in convert.rs. */
const FAILED = 1;
const COMPUTE = 2;
const NOT_COMPUTED = 3;
const IN_ROOM = 4;

/** What `getSync` may be told to return where only the server could say. */
const ASK = Symbol("nuthatch.ASK");

/**
 * Where the compiled part puts short values, from which they are copied into Buffers of Node.js' own pool: one that is made elsewhere
 * costs ten times as much. `scratch` has the value of a read, and `room` those of a batch of answers, one behind the other.
 */
const scratch = Buffer.allocUnsafeSlow(4096);
const room = Buffer.allocUnsafeSlow(64 << 10);

function copied(from, start, length) {
    const value = Buffer.allocUnsafe(length);
    from.copy(value, 0, start, start + length);
    return value;
}

/** The options that are no part of the address, for the compiled part. */
function settings({ timeout, connectTimeout, near, user, password }) {
    const given = {};
    if (timeout !== undefined) {
        given.timeout = check.time("timeout", timeout);
    }
    if (connectTimeout !== undefined) {
        given.connectTimeout = check.time("connectTimeout", connectTimeout);
    }
    if (near !== undefined) {
        const { ttl, bytes } = check.object("near", near, ["ttl", "bytes"]);
        given.nearSeconds = check.seconds("near.ttl", ttl);
        if (bytes !== undefined) {
            given.nearBytes = Number(check.count("near.bytes", bytes));
        }
    }
    if (user !== undefined || password !== undefined) {
        given.user = check.text("user", user);
        given.password = check.text("password", password);
    }
    return given;
}

class Client {
    #native;
    /** Says what is known of a key: `reader` in client.rs. */
    #reader;
    #codec;
    #ttl;
    /** By what something may be known without a server: its memory, the near cache. */
    #hasMemory;
    #hasNear;
    /** Calls under way by their numbers: how they are settled, how their answers are read, and the client. */
    #calls = new Map();
    #number = 0;
    /** How many of them wait for a server, and not for the program. */
    #waiting = 0;
    #isKept = false;
    /** What a stored value is to the program. */
    #decoded = (stored) => (stored === undefined ? undefined : this.#codec.decode(stored));
    /** The end of the client: a promise, and what resolves it. */
    #closing;
    #closed;

    constructor(address, options) {
        const isAlone = options === undefined && typeof address === "object" && !(address instanceof URL);
        const given = isAlone ? address : { ...options, address: address instanceof URL ? address.href : address };
        check.object("options", given, OPTIONS);
        check.text("address", given.address);
        this.#codec = codec(given.codec ?? "buffer");
        this.#ttl = given.ttl === undefined ? Infinity : check.seconds("ttl", given.ttl);
        this.#hasMemory = given.address.startsWith("shm:");
        this.#hasNear = given.near !== undefined || /[?&]near_ms=/.test(given.address);
        const calls = this.#calls;
        const take = (batch) => Client.#settle(calls, batch);
        try {
            this.#native = new Native(given.address, settings(given), this.#codec.isText, take, room);
            this.#reader = this.#native.reader(scratch);
        } catch (error) {
            throw thrown(error);
        }
    }

    getSync(key, otherwise) {
        const found = this.#read(key);
        return found === null ? otherwise : this.#decoded(found);
    }

    async get(key) {
        const found = this.#hasMemory || this.#hasNear ? this.#read(key) : null;
        if (found !== null) {
            return this.#decoded(found);
        }
        return await this.#ask(this.#decoded, (number) => this.#native.get(number, check.key(key)));
    }

    getMany(keys) {
        const read = (values) => values.map(this.#decoded);
        return this.#ask(read, (number) => this.#native.getMany(number, check.keys(keys)));
    }

    getItem(key) {
        const read = (found) => {
            if (found === undefined) {
                return undefined;
            }
            const [value, cas, flags, left] = found;
            return { value: this.#decoded(value), cas, flags, ttl: left ?? Infinity };
        };
        return this.#ask(read, (number) => this.#native.getItem(number, check.key(key)));
    }

    getAndTouch(key, ttl) {
        return this.#ask(this.#decoded, (number) => this.#native.getAndTouch(number, check.key(key), check.seconds("ttl", ttl)));
    }

    set(key, value, options) {
        return this.#store("set", key, value, options);
    }

    add(key, value, options) {
        return this.#store("add", key, value, options);
    }

    replace(key, value, options) {
        return this.#store("replace", key, value, options);
    }

    append(key, value) {
        return this.#ask(same, (number) => this.#native.append(number, check.key(key), plain(value)));
    }

    prepend(key, value) {
        return this.#ask(same, (number) => this.#native.prepend(number, check.key(key), plain(value)));
    }

    cas(key, value, cas, options) {
        return this.#ask(same, (number) => {
            if (typeof cas !== "bigint") {
                throw check.typeError("cas", "the bigint that getItem gave", cas);
            }
            check.count("cas", cas);
            this.#native.cas(number, check.key(key), this.#codec.encode(value), cas, this.#lifetime(options));
        });
    }

    setMany(items, options) {
        return this.#ask(same, (number) => {
            const pairs = check.pairs(items);
            const keys = pairs.map(([key]) => check.key(key));
            const values = pairs.map(([, value]) => this.#codec.encode(value));
            this.#native.setMany(number, keys, values, this.#lifetime(options));
        });
    }

    incr(key, delta = 1) {
        return this.#count(key, delta, false);
    }

    decr(key, delta = 1) {
        return this.#count(key, delta, true);
    }

    touch(key, ttl) {
        return this.#ask(same, (number) => this.#native.touch(number, check.key(key), check.seconds("ttl", ttl)));
    }

    delete(key) {
        return this.#ask(same, (number) => this.#native.delete(number, check.key(key)));
    }

    deleteMany(keys) {
        return this.#ask(same, (number) => this.#native.deleteMany(number, check.keys(keys)));
    }

    makeStale(key, ttl) {
        return this.#ask(same, (number) => this.#native.makeStale(number, check.key(key), check.time("ttl", ttl)));
    }

    flush(delay = 0) {
        return this.#ask(same, (number) => this.#native.flushAll(number, check.time("delay", delay)));
    }

    connect() {
        return this.#ask(() => undefined, (number) => this.#native.version(number));
    }

    version() {
        const read = (servers) => Object.fromEntries(servers.map(([server, [[, version]]]) => [server, version]));
        return this.#ask(read, (number) => this.#native.version(number));
    }

    stats(kind = "") {
        const read = (servers) => Object.fromEntries(servers.map(([server, stats]) => [server, Object.fromEntries(stats)]));
        return this.#ask(read, (number) => this.#native.stats(number, check.text("kind", kind)));
    }

    async getOrCompute(key, compute, options = {}) {
        check.key(key);
        check.callable("compute", compute);
        const { lease, early, signal } = check.object("options", options, ["ttl", "lease", "early", "signal"]);
        const lifetime = this.#lifetime({ ttl: options.ttl });
        if (lease !== undefined) {
            check.time("lease", lease);
        }
        if (signal !== undefined && check.signal(signal).aborted) {
            throw signal.reason;
        }
        if (early !== undefined) {
            check.time("early", early);
        } else if (this.#hasMemory && !this.#hasNear) {
            // Without bytes it may be the place of a value that is being computed.
            const found = this.#read(key);
            if (found !== null && found !== undefined && found.length > 0) {
                return this.#decoded(found);
            }
        }
        const call = { read: this.#decoded, key, compute: AsyncResource.bind(compute) };
        return await this.#answer(call, (number) => {
            this.#native.getOrCompute(number, key, lifetime, lease, early, signal !== undefined);
            if (signal !== undefined) {
                this.#leaveBy(signal, number, call);
            }
        });
    }

    close() {
        if (this.#closing === undefined) {
            this.#closing = new Promise((resolve) => (this.#closed = resolve));
            this.#endIfIdle();
        }
        return this.#closing;
    }

    [Symbol.asyncDispose ?? Symbol.for("Symbol.asyncDispose")]() {
        return this.close();
    }

    /** What is known without a server: undefined is a miss, and null that only a server can say. */
    #read(key) {
        const found = this.#reader(check.key(key));
        if (typeof found === "number") {
            return copied(scratch, 0, found);
        }
        if (found === false) {
            this.#refuse(key);
        }
        return found;
    }

    #refuse(key) {
        try {
            this.#native.check(key);
        } catch (error) {
            throw thrown(error);
        }
    }

    #lifetime(options) {
        if (options === undefined) {
            return this.#ttl;
        }
        const { ttl } = check.object("options", options, ["ttl"]);
        return ttl === undefined ? this.#ttl : check.seconds("ttl", ttl);
    }

    #store(way, key, value, options) {
        return this.#ask(same, (number) =>
            this.#native[way](number, check.key(key), this.#codec.encode(value), this.#lifetime(options)),
        );
    }

    #count(key, delta, isDown) {
        const read = (count) => {
            if (typeof delta === "bigint" || count === undefined) {
                return count;
            }
            if (count > Number.MAX_SAFE_INTEGER) {
                throw check.rangeError("the counter", "at most 2^53 - 1 as a number: count by a bigint", count);
            }
            return Number(count);
        };
        return this.#ask(read, (number) => this.#native.count(number, check.key(key), check.count("delta", delta), isDown));
    }

    /** The promise of an answer, which `read` makes of what the compiled part says. */
    #ask(read, start) {
        return this.#answer({ read }, start);
    }

    /** The same, of a call. Its errors are made here, so that they tell who waits for it. */
    async #answer(call, start) {
        try {
            return await new Promise((resolve, reject) => this.#begin(Object.assign(call, { resolve, reject }), start));
        } catch (error) {
            throw error instanceof Failure ? error.made() : error;
        }
    }

    /** Gives a call its number. `start` may throw; then there is no call. */
    #begin(call, start) {
        if (this.#closing !== undefined) {
            throw closed();
        }
        this.#number = (this.#number + 1) >>> 0;
        try {
            start(this.#number);
        } catch (error) {
            throw thrown(error);
        }
        call.client = this;
        this.#calls.set(this.#number, call);
        this.#waits(1);
        if (!this.#isKept) {
            this.#isKept = true;
            // When all that can go on now has done so: what it asks for travels together.
            nextTick(Client.#flush, this);
        }
    }

    static #flush(client) {
        client.#isKept = false;
        client.#native.flush();
    }

    /** Settles calls. It knows the calls, which know their client: so a client that nobody has, and whom nobody waits for, can go. */
    static #settle(calls, batch) {
        let used = 0;
        for (let at = 0; at < batch.length; at += 3) {
            const number = batch[at];
            const call = calls.get(number);
            let answer = batch[at + 2];
            if (batch[at + 1] === IN_ROOM) {
                const length = answer;
                answer = copied(room, used, length);
                used += length;
            }
            call.client.#answered(number, call, batch[at + 1], answer);
        }
    }

    #answered(number, call, kind, answer) {
        if (kind === COMPUTE && call.hasLeft) {
            // It was on its way; the last answer follows.
            return;
        }
        this.#waits(-1);
        if (kind === COMPUTE) {
            this.#compute(number, call);
            return;
        }
        this.#calls.delete(number);
        call.forgetSignal?.();
        try {
            if (kind === FAILED) {
                call.reject(new Failure(...answer));
            } else if (kind === NOT_COMPUTED) {
                call.failure === undefined ? call.resolve(undefined) : call.reject(call.failure.error);
            } else {
                call.resolve(call.read(answer));
            }
        } catch (error) {
            call.reject(error);
        }
        this.#endIfIdle();
    }

    /** Computes a value for all that wait for it. This client's own caller learns why there is none. */
    async #compute(number, call) {
        let stored;
        call.isComputing = true;
        try {
            const value = await call.compute(call.key);
            stored = value === undefined ? undefined : this.#codec.encode(value);
        } catch (error) {
            call.failure = { error };
        }
        call.isComputing = false;
        if (!call.hasLeft) {
            this.#waits(1);
        }
        this.#native.computed(number, stored);
    }

    /** Ends a call when its signal says so. What it was to compute, others may then. */
    #leaveBy(signal, number, call) {
        const leave = () => {
            call.reject(signal.reason);
            call.hasLeft = true;
            if (call.isComputing) {
                // For the last answer.
                this.#waits(1);
            }
            this.#native.leave(number);
        };
        signal.addEventListener("abort", leave, { once: true });
        call.forgetSignal = () => signal.removeEventListener("abort", leave);
    }

    /** So many calls more wait for a server. The process may end while none does. */
    #waits(more) {
        const before = this.#waiting;
        this.#waiting += more;
        if (before === 0 || this.#waiting === 0) {
            this.#native.hold(this.#waiting !== 0);
        }
    }

    /** Calls that are under way when the client is closed come to their end first. */
    #endIfIdle() {
        if (this.#closed !== undefined && this.#calls.size === 0) {
            this.#native.close();
            this.#closed();
        }
    }
}

module.exports = { Client, ASK };
