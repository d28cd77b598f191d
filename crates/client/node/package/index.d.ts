/** A key: text, or any 1 to 250 bytes; with white space or control characters up to 186. */
export type Key = string | Uint8Array;

/** What is stored as it is. Text is UTF-8. */
export type Plain = string | Uint8Array;

/** How values become bytes, and bytes values. */
export interface Codec<V> {
    encode(value: V): Plain;
    decode(stored: Buffer): V;
}

export interface Options<C = "buffer" | "utf8" | "json" | Codec<any>> {
    /**
     * Where the server is: `tcp://HOST[:PORT],…`, `unix:///PATH`, `tls://…?ca=FILE`, or `shm:///PATH`, the memory of a server with
     * `--shared PATH`. Behind `?` there may be options: docs/clients.md.
     */
    address: string;
    /** What values are: "buffer" (the default), "utf8", "json", or a codec of your own. */
    codec?: C;
    /** Lifetime of what is stored without one, in seconds. */
    ttl?: number;
    /** Seconds that a call may take: 1. If it makes a connection first, that comes on top. */
    timeout?: number;
    /** Seconds that a connection may take to be made: 1. */
    connectTimeout?: number;
    /**
     * Values that `get` has asked for stay in this process for `ttl` seconds, in so many bytes of memory (16 MiB). Others' changes
     * are seen so much later.
     */
    near?: { ttl: number; bytes?: number };
    /** For a server with `-Y`. */
    user?: string;
    password?: string;
}

/** How an item is kept. */
export interface Keep {
    /** Its lifetime in seconds, rounded up to whole ones. Infinity: without an end. Not given: that of the client. */
    ttl?: number;
}

export interface Compute extends Keep {
    /** Seconds that others wait for the one that computes: 10. Then another one computes. */
    lease?: number;
    /** When no more seconds than these are left, one computes anew, and the others get the old value meanwhile. */
    early?: number;
    /** Ends the call, which is rejected with the signal's reason. What it was to compute, another one computes at once. */
    signal?: AbortSignal;
}

export interface Item<V> {
    value: V;
    /** For `cas`: it changes with the item. */
    cas: bigint;
    /** The number that some other client may have stored beside the value. */
    flags: number;
    /** Seconds that are left, or Infinity. */
    ttl: number;
}

/** What `getSync` may be told to return where only the server could say. */
export const ASK: unique symbol;

interface Clients {
    new (address: string | URL, options?: Omit<Options<"buffer">, "address">): Client<Buffer, Plain>;
    new (options: Options<"buffer">): Client<Buffer, Plain>;
    new (address: string | URL, options: Omit<Options<"utf8">, "address"> & { codec: "utf8" }): Client<string, Plain>;
    new (options: Options<"utf8"> & { codec: "utf8" }): Client<string, Plain>;
    new <V = any>(address: string | URL, options: Omit<Options<"json">, "address"> & { codec: "json" }): Client<V>;
    new <V = any>(options: Options<"json"> & { codec: "json" }): Client<V>;
    new <V>(address: string | URL, options: Omit<Options<Codec<V>>, "address"> & { codec: Codec<V> }): Client<V>;
    new <V>(options: Options<Codec<V>> & { codec: Codec<V> }): Client<V>;
    /** What values are is not known before the program runs. */
    new (address: string | URL, options: Omit<Options, "address">): Client<any>;
    new (options: Options): Client<any>;
}

export const Client: Clients;

/**
 * A client of one server or several. Calls that are made before the program waits travel together, on one connection to each server.
 *
 * Promises are rejected with one of the errors below, with a TypeError for an argument of a wrong type, or with a RangeError for a
 * number that cannot be. A process ends when it waits for no call, though its clients are open.
 */
export interface Client<V = Buffer, W = V> {
    /** Makes the connections. Nobody has to: the first call does, too. With `shm://` the memory can be read from then on. */
    connect(): Promise<void>;

    /**
     * The value under a key, at once: from the memory of a server (`shm://`), or from the near cache. Undefined is that there is none.
     * `otherwise`, undefined if not given, is that only the server can say: before there is a connection, after it has ended, and
     * while an item is stale. If the server was stopped in the middle of a change of this key, it tries for 200 ms.
     */
    getSync<O = undefined>(key: Key, otherwise?: O): V | undefined | O;
    /** The value under a key, or undefined. */
    get(key: Key): Promise<V | undefined>;
    /** The values under these keys, in their order. It is rejected if one of several servers fails. */
    getMany(keys: Iterable<Key>): Promise<(V | undefined)[]>;
    /** The value under a key, and what else the server knows of it. */
    getItem(key: Key): Promise<Item<V> | undefined>;
    /** The value under a key, which from now on has this lifetime. */
    getAndTouch(key: Key, ttl: number): Promise<V | undefined>;
    /**
     * The value under a key. If there is none, one of all that ask, in whatever process, computes it, and the others wait. If it
     * computes undefined, nothing is stored. If the server cannot be asked, the value is computed and not stored.
     */
    getOrCompute<K extends Key>(key: K, compute: (key: K) => W | Promise<W>, options?: Compute): Promise<V>;
    getOrCompute<K extends Key>(
        key: K,
        compute: (key: K) => W | undefined | Promise<W | undefined>,
        options?: Compute,
    ): Promise<V | undefined>;

    /** Stores a value, whatever there was. */
    set(key: Key, value: W, options?: Keep): Promise<void>;
    /** Stores a value if there is none, and says whether it did. */
    add(key: Key, value: W, options?: Keep): Promise<boolean>;
    /** Stores a value if there is one, and says whether it did. */
    replace(key: Key, value: W, options?: Keep): Promise<boolean>;
    /** Stores a value if the item is still the one that `getItem` gave with this number, and says whether it did. */
    cas(key: Key, value: W, cas: bigint, options?: Keep): Promise<boolean>;
    /** Stores each key's value. If that is rejected, some may have been stored: `carriedOut`. */
    setMany(items: Iterable<readonly [Key, W]> | Record<string, W>, options?: Keep): Promise<void>;
    /** Adds bytes behind those there are, without the codec, and says whether there is an item. */
    append(key: Key, value: Plain): Promise<boolean>;
    /** Adds bytes in front of those there are, without the codec, and says whether there is an item. */
    prepend(key: Key, value: Plain): Promise<boolean>;

    /**
     * Adds to a number, which is stored as decimal digits, and gives the sum; undefined if there is no item. It wraps around at 2^64.
     * A sum above 2^53 - 1 is a RangeError, after it was stored, unless `delta` is a bigint.
     */
    incr(key: Key, delta?: number): Promise<number | undefined>;
    incr(key: Key, delta: bigint): Promise<bigint | undefined>;
    /** Subtracts from a number, down to 0. */
    decr(key: Key, delta?: number): Promise<number | undefined>;
    decr(key: Key, delta: bigint): Promise<bigint | undefined>;

    /** Gives an item this lifetime in seconds, and says whether there is one. */
    touch(key: Key, ttl: number): Promise<boolean>;
    /** Removes an item, and says whether there was one. */
    delete(key: Key): Promise<boolean>;
    /** Removes items, and says of each whether there was one. */
    deleteMany(keys: Iterable<Key>): Promise<boolean[]>;
    /** Keeps an item as out of date for this long: one of those that ask by `getOrCompute` computes it anew. */
    makeStale(key: Key, ttl: number): Promise<boolean>;
    /** Removes all items of all servers, after so many seconds. */
    flush(delay?: number): Promise<void>;

    /** Each server's version. */
    version(): Promise<Record<string, string>>;
    /** Each server's statistics: all, or those of a kind, as "items". */
    stats(kind?: string): Promise<Record<string, Record<string, string>>>;

    /** Waits for the calls that are under way, and what they compute, and ends the connections. Later calls fail. */
    close(): Promise<void>;
    [Symbol.asyncDispose](): Promise<void>;
}

/** What went wrong. */
export class NuthatchError extends Error {
    code: string;
    /** Whether the server may have carried out the call all the same: of a change of many keys, a part of it. */
    carriedOut: boolean;
}
/** ERR_NUTHATCH_KEY: a key that is empty or too long. */
export class KeyError extends NuthatchError {}
/** ERR_NUTHATCH_VALUE: a value that is longer than `value_max` of the address. */
export class ValueError extends NuthatchError {}
/** ERR_NUTHATCH_ADDRESS: an address, or an option behind it, that is invalid. */
export class AddressError extends NuthatchError {}
/** ERR_NUTHATCH_DOWN: no connection, and for a moment no attempt to make one. */
export class DownError extends NuthatchError {}
/** ERR_NUTHATCH_LOST: the connection ended before the reply came. */
export class LostError extends NuthatchError {}
/** ERR_NUTHATCH_TIMEOUT: no reply in time. */
export class TimeoutError extends NuthatchError {}
/** ERR_NUTHATCH_FULL: too many calls wait, and the address says not to wait for room. */
export class FullError extends NuthatchError {}
/** ERR_NUTHATCH_REFUSED: the server refused the request, in its words. */
export class RefusedError extends NuthatchError {}
/** ERR_NUTHATCH_NOT_A_NUMBER: the value under the key cannot be counted. */
export class NotANumberError extends NuthatchError {}
/** ERR_NUTHATCH_UNEXPECTED: the server sent what is no reply; the connection is closed. */
export class UnexpectedError extends NuthatchError {}
/** ERR_NUTHATCH_CLOSED: the client is closed. */
export class ClosedError extends NuthatchError {}
