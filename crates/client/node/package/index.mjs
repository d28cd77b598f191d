import nuthatch from "./index.js";

export const {
    ASK,
    Client,
    NuthatchError,
    KeyError,
    ValueError,
    AddressError,
    DownError,
    LostError,
    TimeoutError,
    FullError,
    RefusedError,
    NotANumberError,
    UnexpectedError,
    ClosedError,
} = nuthatch;
