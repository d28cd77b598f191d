// node-redlock on three servers: node redlock.js PORT PORT PORT. Ends with 0 if all is as expected.
const assert = require("node:assert");
const Redis = require("ioredis");
const { default: Redlock } = require("redlock");

async function main(ports) {
  const servers = ports.map((port) => new Redis(port));
  const redlock = new Redlock(servers, { retryCount: 0 });
  // What it could not do on one of the servers.
  redlock.on("error", () => {});
  let lock = await redlock.acquire(["a"], 10_000);
  await assert.rejects(redlock.acquire(["a"], 10_000));
  lock = await lock.extend(20_000);
  // It goes on when most of them have answered.
  const left = await Promise.all(servers.map((server) => server.pttl("a")));
  assert.ok(left.filter((time) => time > 15_000).length >= 2, left);
  await lock.release();
  const there = await Promise.all(servers.map((server) => server.exists("a")));
  assert.ok(there.filter((one) => one === 0).length >= 2, there);
  // One of three servers has another's lock: most are enough.
  await servers[2].set("b", "another's");
  lock = await redlock.acquire(["b"], 10_000);
  await servers[1].del("b");
  await assert.rejects(lock.extend(10_000));
  assert.strictEqual(await servers[2].get("b"), "another's");
  assert.strictEqual(await redlock.using(["c"], 10_000, async () => 7), 7);
  servers.forEach((server) => server.disconnect());
}

main(process.argv.slice(2).map(Number)).catch((error) => {
  console.error(error);
  process.exit(1);
});
