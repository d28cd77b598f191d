// Near caches that the server keeps right: node tracking.js PORT. Ends with 0 if all is as expected.
const assert = require("node:assert");
const Redis = require("ioredis");
const { BasicClientSideCache, createClient } = require("redis");

// Until it is so: bounded by who runs this.
async function until(condition) {
  while (!(await condition())) await new Promise((done) => setTimeout(done, 5));
}

// node-redis: a get that the near cache answers asks nobody.
async function nodeRedis(url, writer) {
  const near = new BasicClientSideCache({ ttl: 0, maxEntries: 100, evictPolicy: "LRU", recordStats: true });
  const client = createClient({ url, RESP: 3, clientSideCache: near });
  await client.connect();
  await writer.set("k", "v");
  for (let number = 0; number < 4; number++) assert.strictEqual(await client.get("k"), "v");
  assert.deepStrictEqual([near.stats().hitCount, near.stats().missCount], [3, 1]);
  await writer.set("k", "w");
  await until(async () => (await client.get("k")) === "w");
  await writer.pexpire("k", 100);
  await until(async () => (await client.get("k")) === null);
  await writer.set("k", "again");
  await until(async () => (await client.get("k")) === "again");
  await writer.flushall();
  await until(async () => (await client.get("k")) === null);
  client.destroy();
}

// ioredis speaks RESP2: another connection is told which keys are no longer as they were.
async function ioredis(port, writer) {
  const listener = new Redis(port);
  const told = [];
  const id = await listener.client("ID");
  await listener.subscribe("__redis__:invalidate");
  listener.on("message", (channel, keys) => told.push([channel, keys]));
  const reader = new Redis(port);
  assert.strictEqual(await reader.client("TRACKING", "ON", "REDIRECT", id), "OK");
  await writer.set("k", "v");
  assert.strictEqual(await reader.get("k"), "v");
  await writer.set("k", "w");
  await until(() => told.length === 1);
  assert.deepStrictEqual(told, [["__redis__:invalidate", "k"]]);
  listener.disconnect();
  reader.disconnect();
}

async function main(port) {
  const writer = new Redis(port);
  await nodeRedis(`redis://127.0.0.1:${port}`, writer);
  await ioredis(port, writer);
  writer.disconnect();
}

main(Number(process.argv[2])).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
