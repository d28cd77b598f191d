import keyv from "./keyv.js";

export const { KeyvNuthatch } = keyv;
