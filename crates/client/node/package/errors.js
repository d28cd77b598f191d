"use strict";

// What a client says of a call that failed. Arguments of a wrong type are a TypeError, numbers that cannot be a RangeError, both
// with the codes that Node.js gives its own.

/** What all have in common: a code, and whether the server may have carried out the call. */
class NuthatchError extends Error {
    constructor(message, code, carriedOut = false) {
        super(message);
        this.code = code;
        this.carriedOut = carriedOut;
    }
}

/** A key that is empty or too long. Nothing was sent. */
class KeyError extends NuthatchError {}
/** A value that is longer than a server takes. Nothing was sent. */
class ValueError extends NuthatchError {}
/** An address, or an option behind it, that is invalid. */
class AddressError extends NuthatchError {}
/** There is no connection, and for a moment no attempt to make one. Nothing was sent. */
class DownError extends NuthatchError {}
/** The connection ended before the reply came. */
class LostError extends NuthatchError {}
/** The reply did not come in time. */
class TimeoutError extends NuthatchError {}
/** Too many calls wait. Nothing was sent. */
class FullError extends NuthatchError {}
/** The server refused the request. */
class RefusedError extends NuthatchError {}
/** The value under the key is no number. */
class NotANumberError extends NuthatchError {}
/** The server sent what is no reply. The connection is closed. */
class UnexpectedError extends NuthatchError {}
/** The client is closed. Nothing was sent. */
class ClosedError extends NuthatchError {}

const CLASSES = {
    ERR_NUTHATCH_KEY: KeyError,
    ERR_NUTHATCH_VALUE: ValueError,
    ERR_NUTHATCH_ADDRESS: AddressError,
    ERR_NUTHATCH_DOWN: DownError,
    ERR_NUTHATCH_LOST: LostError,
    ERR_NUTHATCH_TIMEOUT: TimeoutError,
    ERR_NUTHATCH_FULL: FullError,
    ERR_NUTHATCH_REFUSED: RefusedError,
    ERR_NUTHATCH_NOT_A_NUMBER: NotANumberError,
    ERR_NUTHATCH_UNEXPECTED: UnexpectedError,
    ERR_NUTHATCH_CLOSED: ClosedError,
};

for (const made of [NuthatchError, ...Object.values(CLASSES)]) {
    Object.defineProperty(made.prototype, "name", { value: made.name, configurable: true, writable: true });
}

/** What the compiled part says of a call that failed, until an error is made of it. */
class Failure {
    #said;

    constructor(code, message, carriedOut) {
        this.#said = { code, message, carriedOut };
    }

    made() {
        const { code, message, carriedOut } = this.#said;
        return new (CLASSES[code] ?? NuthatchError)(message, code, carriedOut);
    }
}

/** What the compiled part threw, as the error that it is. */
function thrown(error) {
    return Object.hasOwn(CLASSES, error?.code) ? new Failure(error.code, error.message).made() : error;
}

function closed() {
    return new ClosedError("the client is closed", "ERR_NUTHATCH_CLOSED");
}

module.exports = {
    Failure,
    thrown,
    closed,
    classes: { NuthatchError, ...Object.fromEntries(Object.values(CLASSES).map((made) => [made.name, made])) },
};
