import { EventEmitter } from "node:events";

import { Client } from "./index.js";

/** A store for Keyv from 5 on, and so for cache-manager from 6 on: `new Keyv({ store: new KeyvNuthatch("unix:///…") })`. */
export class KeyvNuthatch extends EventEmitter {
    /**
     * A store at this address, or with a client, whose codec is "buffer", "utf8" or "json". With `mayFlush`, `clear()` removes all that the server has, of
     * whatever namespace; else it is rejected, because a server does not know which keys are this store's.
     */
    constructor(server: string | URL | Client<any, any>, options?: { mayFlush?: boolean });
    opts: any;
    namespace?: string | undefined;
    get(key: string): Promise<any>;
    getMany(keys: string[]): Promise<any[]>;
    /** The lifetime is in milliseconds. */
    set(key: string, value: any, ttl?: number): Promise<boolean>;
    setMany(entries: { key: string; value: any; ttl?: number }[]): Promise<any>;
    delete(key: string): Promise<boolean>;
    deleteMany(keys: string[]): Promise<boolean>;
    clear(): Promise<void>;
    has(key: string): Promise<boolean>;
    /** Closes the client, if it was made here. */
    disconnect(): Promise<void>;
}
