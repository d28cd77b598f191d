// memjs against a server: node memjs.js PORT [USER PASSWORD], with NODE_PATH where memjs is. Ends with 0 if all is as
// expected.
const assert = require("node:assert");
const memjs = require("memjs");

async function converse(client) {
  await client.flush();
  assert.strictEqual((await client.get("none")).value, null);
  assert.ok(await client.set("k", "v", { expires: 100 }));
  assert.strictEqual((await client.get("k")).value.toString(), "v");
  assert.strictEqual(await client.add("k", "w", {}), false);
  assert.ok(await client.replace("k", "w", {}));
  const bytes = Buffer.from([0, 13, 10, 255, 128]);
  await client.set("bytes", bytes, {});
  assert.deepStrictEqual((await client.get("bytes")).value, bytes);
  await client.set("large", "x".repeat(500000), {});
  assert.strictEqual((await client.get("large")).value.length, 500000);
  assert.strictEqual((await client.increment("n", 5, { initial: 40 })).value, 40);
  assert.strictEqual((await client.increment("n", 5, {})).value, 45);
  assert.strictEqual((await client.decrement("n", 100, {})).value, 0);
  // Its prepend appends, at memcached too.
  await client.set("text", "b", {});
  assert.ok(await client.append("text", "c"));
  assert.strictEqual((await client.get("text")).value.toString(), "bc");
  assert.ok(await client.touch("text", 200));
  assert.ok(await client.delete("text"));
  assert.strictEqual(await client.delete("text"), false);
  const numbers = [...Array(300).keys()];
  await Promise.all(numbers.map((number) => client.set(`key:${number}`, String(number), {})));
  const found = await Promise.all(numbers.map((number) => client.get(`key:${number}`)));
  assert.deepStrictEqual(found.map((answer) => Number(answer.value)), numbers);
}

const [port, username, password] = process.argv.slice(2);
const client = memjs.Client.create(`127.0.0.1:${port}`, { username, password, retries: 1 });
converse(client).then(
  () => client.close(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
