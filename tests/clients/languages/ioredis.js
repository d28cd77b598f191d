// ioredis against a server: node ioredis.js PORT, with NODE_PATH where ioredis is. Ends with 0 if all is as expected.
const assert = require("node:assert");
const Redis = require("ioredis");

async function converse(redis) {
  await redis.flushall();
  assert.strictEqual(await redis.set("k", "v", "EX", 100), "OK");
  assert.strictEqual(await redis.get("k"), "v");
  assert.strictEqual(await redis.get("none"), null);
  assert.ok((await redis.ttl("k")) > 98);
  assert.strictEqual(await redis.set("k", "w", "NX"), null);
  assert.strictEqual(await redis.mset({ a: "1", b: "2" }), "OK");
  assert.deepStrictEqual(await redis.mget("a", "none", "b"), ["1", null, "2"]);
  assert.strictEqual(await redis.incrby("a", 41), 42);
  const bytes = Buffer.from([0, 13, 10, 255]);
  await redis.set("bytes", bytes);
  assert.deepStrictEqual(await redis.getBuffer("bytes"), bytes);
  const pipeline = redis.pipeline();
  for (let number = 0; number < 500; number++) pipeline.set(`key:${number}`, number).get(`key:${number}`);
  const answers = await pipeline.exec();
  assert.strictEqual(answers.length, 1000);
  assert.ok(answers.every(([error, answer], at) => !error && answer === (at % 2 ? String((at - 1) / 2) : "OK")));
  assert.deepStrictEqual(await redis.multi().incr("n").get("n").exec(), [[null, 1], [null, "1"]]);
  const found = new Set();
  for await (const keys of redis.scanStream({ match: "key:*", count: 100 })) keys.forEach((key) => found.add(key));
  assert.strictEqual(found.size, 500);
  assert.strictEqual(await redis.del("k", "a", "none"), 2);
  await assert.rejects(redis.lpush("list", "x"), /cache of plain values/);
}

const redis = new Redis(Number(process.argv[2]));
converse(redis).then(
  () => redis.quit(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
