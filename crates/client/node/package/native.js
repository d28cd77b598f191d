"use strict";

// The compiled part. It is for one system and processor.

try {
    exports.Native = require("./index.node").Native;
} catch (cause) {
    const here = `${process.platform} on ${process.arch}`;
    throw new Error(`nuthatch: this package's index.node does not load here (${here}): ${cause.message}`, { cause });
}
