// The same where the package is required.

import nuthatch = require("nuthatch");
import keyv = require("nuthatch/keyv");

const client = new nuthatch.Client("tcp://127.0.0.1", { codec: "utf8" });
const found: string | undefined = client.getSync("k");
console.log(found, new keyv.KeyvNuthatch(client));
