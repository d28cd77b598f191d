// Who is told that a key has expired, as sessions and timers use it: node events.js PORT. Ends with 0 if all is as expected.
const assert = require("node:assert");
const Redis = require("ioredis");
const { createClient } = require("redis");

// Until it is so: bounded by who runs this.
async function until(condition) {
  while (!condition()) await new Promise((done) => setTimeout(done, 5));
}

async function nodeRedis(url, writer) {
  const subscriber = createClient({ url });
  await subscriber.connect();
  const told = [];
  await subscriber.pSubscribe("__keyevent@0__:expired", (key, channel) => told.push([channel, key]));
  await writer.set("session:1", "v", "PX", 20);
  await until(() => told.length === 1);
  assert.deepStrictEqual(told, [["__keyevent@0__:expired", "session:1"]]);
  subscriber.destroy();
}

async function ioredis(port, writer) {
  const subscriber = new Redis(port);
  const told = [];
  await subscriber.subscribe("__keyspace@0__:session:2");
  subscriber.on("message", (channel, event) => told.push(event));
  await writer.set("session:2", "v", "EX", 100);
  await writer.pexpire("session:2", 20);
  await until(() => told.includes("expired"));
  assert.deepStrictEqual(told, ["set", "expire", "expire", "expired"]);
  subscriber.disconnect();
}

async function main(port) {
  const writer = new Redis(port);
  assert.strictEqual(await writer.config("SET", "notify-keyspace-events", "KEA"), "OK");
  await nodeRedis(`redis://127.0.0.1:${port}`, writer);
  await ioredis(port, writer);
  await writer.config("SET", "notify-keyspace-events", "");
  writer.disconnect();
}

main(Number(process.argv[2])).then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
