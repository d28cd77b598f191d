// Rate limiters and locks of Node.js: node limits.js PORT. Ends with 0 if all is as expected.
const assert = require("node:assert");
const Redis = require("ioredis");
const { createClient } = require("redis");
const { RateLimiterRedis } = require("rate-limiter-flexible");
const { RedisStore } = require("rate-limit-redis");
const { rateLimit } = require("express-rate-limit");
const { Mutex } = require("redis-semaphore");

// What a limiter of Express answers to so many requests, without HTTP below it.
async function statuses(limiter, count) {
  const seen = [];
  for (let number = 0; number < count; number++) {
    const response = { headersSent: false, setHeader() {}, status: (code) => ((seen[number] = code), response), send() {} };
    await limiter({ ip: "192.0.2.1", headers: {}, app: { get() {} }, get() {} }, response, () => (seen[number] = 200));
  }
  return seen;
}

async function limits(redis, client) {
  for (const storeClient of [redis, client]) {
    const flexible = new RateLimiterRedis({ storeClient, keyPrefix: storeClient === redis ? "one" : "two", points: 3, duration: 60, useRedisPackage: storeClient === client });
    for (let left = 2; left >= 0; left--) assert.strictEqual((await flexible.consume("user")).remainingPoints, left);
    await assert.rejects(flexible.consume("user"), (refused) => refused.msBeforeNext > 50_000);
    assert.strictEqual((await flexible.get("user")).consumedPoints, 4);
    await flexible.block("user", 100);
    assert.ok((await flexible.get("user")).msBeforeNext > 90_000);
    assert.ok(await flexible.delete("user"));
  }
  const store = new RedisStore({ sendCommand: (...words) => client.sendCommand(words) });
  const limiter = rateLimit({ windowMs: 60_000, limit: 2, store, validate: false });
  assert.deepStrictEqual(await statuses(limiter, 3), [200, 200, 429]);
}

async function mutex(redis) {
  const held = new Mutex(redis, "held", { lockTimeout: 5000, refreshInterval: 50 });
  await held.acquire();
  const other = new Mutex(redis, "held", { acquireTimeout: 200, retryInterval: 20 });
  assert.strictEqual(await other.tryAcquire(), false);
  await held.release();
  assert.strictEqual(await other.tryAcquire(), true);
  await other.release();
}

async function main(port) {
  const redis = new Redis(port);
  const client = await createClient({ url: `redis://127.0.0.1:${port}` }).connect();
  await redis.flushall();
  await limits(redis, client);
  await mutex(redis);
  redis.disconnect();
  client.destroy();
}

main(Number(process.argv[2])).catch((error) => {
  console.error(error);
  process.exit(1);
});
