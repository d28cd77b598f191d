// Stores of caches and sessions of Node.js: node stores.js PORT. Ends with 0 if all is as expected.
const assert = require("node:assert");
const { promisify } = require("node:util");
const { createClient } = require("redis");
const { default: KeyvRedis } = require("@keyv/redis");
const { default: Keyv } = require("keyv");
const { createCache } = require("cache-manager");
const session = require("express-session");
const { RedisStore } = require("connect-redis");

// What NestJS' CacheModule uses, too.
async function cacheManager(url) {
  const cache = createCache({ stores: [new Keyv({ store: new KeyvRedis(url), namespace: "nuts" })] });
  await cache.mset([{ key: "a", value: { n: 1 }, ttl: 60_000 }, { key: "b", value: "two" }]);
  assert.deepStrictEqual(await cache.mget(["a", "b", "none"]), [{ n: 1 }, "two", undefined]);
  assert.strictEqual(await cache.wrap("made", async () => 7), 7);
  assert.strictEqual(await cache.wrap("made", async () => 8), 7);
  assert.ok((await cache.ttl("a")) > Date.now() + 50_000);
  await cache.del("a");
  assert.strictEqual(await cache.get("a"), undefined);
  await cache.clear();
  assert.strictEqual(await cache.get("b"), undefined);
  await cache.disconnect();
}

async function sessions(url) {
  const client = await createClient({ url }).connect();
  const store = new RedisStore({ client, ttl: 100 });
  const call = (name, ...words) => promisify(store[name].bind(store))(...words);
  const kept = { cookie: new session.Cookie(), user: "ann" };
  await call("set", "one", kept);
  await call("set", "two", kept);
  assert.strictEqual((await call("get", "one")).user, "ann");
  await call("touch", "one", kept);
  assert.ok((await client.ttl("sess:one")) > 98);
  assert.deepStrictEqual((await call("ids")).sort(), ["one", "two"]);
  assert.strictEqual(await call("length"), 2);
  assert.strictEqual((await call("all")).length, 2);
  await call("destroy", "one");
  assert.strictEqual(await call("get", "one"), null);
  await call("clear");
  assert.strictEqual(await call("length"), 0);
  client.destroy();
}

async function main(port) {
  const url = `redis://127.0.0.1:${port}`;
  await cacheManager(url);
  await sessions(url);
}

main(Number(process.argv[2])).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
