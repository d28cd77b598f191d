"use strict";

const { ASK, Client } = require("./client.js");
const { classes } = require("./errors.js");

module.exports = { ASK, Client, ...classes };
