// The definitions, as the compiler of TypeScript sees them in a module. It is not run.

import { ASK, Client, DownError, type Options } from "nuthatch";
import { KeyvNuthatch } from "nuthatch/keyv";

interface User {
    name: string;
}

const plain = new Client("tcp://127.0.0.1");
const text = new Client("tcp://127.0.0.1", { codec: "utf8", ttl: 60 });
const users = new Client<User>({ address: "unix:///run/nuthatch.sock", codec: "json", near: { ttl: 1 } });
const numbers = new Client("tcp://a", { codec: { encode: (value: number) => String(value), decode: (stored) => Number(stored) } });

const bytes: Buffer | undefined = await plain.get("k");
const found: string | undefined | typeof ASK = text.getSync("k", ASK);
const user: User | undefined = users.getSync("ann");
const number: number | undefined = (await numbers.getItem("n"))?.value;
const many: (string | undefined)[] = await text.getMany(new Set(["a", "b"]));
const computed: User = await users.getOrCompute("ann", async (key) => ({ name: key.toUpperCase() }), { ttl: 60, early: 5, signal: AbortSignal.timeout(50) });
const perhaps: User | undefined = await users.getOrCompute("ann", (): User | undefined => undefined);
await plain.setMany(new Map([["k", Buffer.from("v")]]));
await plain.setMany({ k: "v" }, { ttl: 60 });
const sum: number | undefined = await plain.incr("n");
const large: bigint | undefined = await plain.decr("n", 5n);
await text.cas("k", "v", (await text.getItem("k"))!.cas);
const options: Options = { address: "tcp://a", codec: process.env.TEXT ? "utf8" : "json" };
const perhapsText: unknown = await new Client(options).get("k");
const { address, ...others } = options;
const byUrl: Buffer | undefined = new Client(new URL(address)).getSync("k");
new KeyvNuthatch(new Client(address, others));
new KeyvNuthatch(text, { mayFlush: true });
await plain[Symbol.asyncDispose]();

// @ts-expect-error: no number
await users.set("ann", 5);
// @ts-expect-error: a lifetime is an option
await text.set("k", "v", 60);
// @ts-expect-error: no such codec
new Client("tcp://a", { codec: "xml" });

try {
    await plain.get("k");
} catch (error) {
    const code: string | undefined = error instanceof DownError ? error.code : undefined;
    console.log(code, bytes, found, user, number, many, computed, perhaps, sum, large, perhapsText, byUrl);
}
