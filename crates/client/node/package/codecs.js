"use strict";

// Values of JavaScript as bytes, and back. `isText`: `decode` gets a string, else a Buffer.

const { callable, isUint8Array, object, typeError } = require("./checks.js");

/** Bytes or text as they are. */
function plain(value) {
    if (typeof value !== "string" && !isUint8Array(value)) {
        throw typeError("a value", 'a string or a Uint8Array (the codec "json" takes others)', value);
    }
    return value;
}

const same = (stored) => stored;

const CODECS = {
    buffer: { isText: false, encode: plain, decode: same },
    utf8: { isText: true, encode: plain, decode: same },
    json: {
        isText: true,
        encode(value) {
            const text = JSON.stringify(value);
            if (text === undefined) {
                throw typeError("a value", "what JSON can have", value);
            }
            return text;
        },
        // Without bytes: the item that has the place of one that is being computed.
        decode: (text) => (text === "" ? undefined : JSON.parse(text)),
    },
};

/** A codec by its name, or one of the program's own. */
function codec(given) {
    if (typeof given === "string" && Object.hasOwn(CODECS, given)) {
        return CODECS[given];
    }
    if (typeof given !== "object") {
        throw typeError("codec", '"buffer", "utf8", "json", or an object with encode and decode', JSON.stringify(given));
    }
    const { encode, decode } = object("codec", given, ["encode", "decode"]);
    callable("codec.encode", encode);
    callable("codec.decode", decode);
    return { isText: false, encode: (value) => plain(encode(value)), decode };
}

module.exports = { codec, plain, same };
