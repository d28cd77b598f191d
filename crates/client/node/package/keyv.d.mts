export * from "./keyv.js";
