"use strict";

// Whether what a program passes is what a call takes. The compiled part is given nothing else.

// Of whatever context: a test's frame may have a Uint8Array of its own.
const { isUint8Array } = require("node:util").types;

function typeError(what, wanted, given) {
    const shown = given === null ? "null" : typeof given === "object" ? given.constructor?.name ?? "an object" : typeof given;
    return Object.assign(new TypeError(`${what} is ${wanted}, not ${shown}`), { code: "ERR_INVALID_ARG_TYPE" });
}

function rangeError(what, wanted, given) {
    return Object.assign(new RangeError(`${what} is ${wanted}, not ${given}`), { code: "ERR_OUT_OF_RANGE" });
}

/** A key, whose length the compiled part checks. */
function key(given) {
    if (typeof given === "string" ? hasLoneSurrogate(given) : !isUint8Array(given)) {
        throw typeof given === "string"
            ? rangeError("a key", "text without lone surrogates", JSON.stringify(given))
            : typeError("a key", "a string or a Uint8Array", given);
    }
    return given;
}

/** Such a string has no UTF-8: two of them would be one key. */
function hasLoneSurrogate(text) {
    // In Node.js from 20 on.
    return text.isWellFormed ? !text.isWellFormed() : /\p{Surrogate}/u.test(text);
}

/** Keys in an array or anything else that can be gone through. */
function keys(given) {
    if (typeof given === "string" || typeof given?.[Symbol.iterator] !== "function") {
        throw typeError("keys", "an array of keys", given);
    }
    return Array.from(given, key);
}

/** Pairs of keys and values, in a Map or an array, or of an object. */
function pairs(given) {
    if (typeof given !== "object" || given === null || isUint8Array(given)) {
        throw typeError("items", "a Map, an array of pairs, or an object", given);
    }
    const found = typeof given[Symbol.iterator] === "function" ? [...given] : Object.entries(given);
    if (!found.every((pair) => Array.isArray(pair) && pair.length === 2)) {
        throw typeError("items", "a Map, an array of pairs, or an object", given);
    }
    return found;
}

/** Seconds. `what` is what they are of, in words. */
function seconds(what, given) {
    if (typeof given !== "number") {
        throw typeError(what, "a number of seconds", given);
    }
    if (!(given > 0)) {
        throw rangeError(what, "more than 0 seconds, and Infinity or undefined for an item without an end", given);
    }
    return given;
}

/** A time that has an end. */
function time(what, given) {
    if (typeof given !== "number") {
        throw typeError(what, "a number of seconds", given);
    }
    if (!(given >= 0 && given < Infinity)) {
        throw rangeError(what, "0 or more seconds", given);
    }
    return given;
}

/** A whole number that a counter can have. */
function count(what, given) {
    if (typeof given !== "number" && typeof given !== "bigint") {
        throw typeError(what, "a number or a bigint", given);
    }
    if (typeof given === "number" ? !(Number.isSafeInteger(given) && given >= 0) : !(given >= 0n && given < 1n << 64n)) {
        throw rangeError(what, "a whole number from 0 to 2^53 - 1, or as a bigint to 2^64 - 1", given);
    }
    return BigInt(given);
}

function object(what, given, names) {
    if (typeof given !== "object" || given === null) {
        throw typeError(what, "an object", given);
    }
    for (const name of Object.keys(given)) {
        if (!names.includes(name)) {
            throw Object.assign(new TypeError(`${what} have no ${JSON.stringify(name)}, but ${names.join(", ")}`), {
                code: "ERR_INVALID_ARG_VALUE",
            });
        }
    }
    return given;
}

function text(what, given) {
    if (typeof given !== "string") {
        throw typeError(what, "a string", given);
    }
    return given;
}

function callable(what, given) {
    if (typeof given !== "function") {
        throw typeError(what, "a function", given);
    }
    return given;
}

/** What has an event "abort": an AbortSignal, of whatever context. */
function signal(given) {
    if (typeof given?.aborted !== "boolean" || typeof given.addEventListener !== "function") {
        throw typeError("signal", "an AbortSignal", given);
    }
    return given;
}

module.exports = { isUint8Array, typeError, rangeError, key, keys, pairs, seconds, time, count, object, text, callable, signal };
