// What the types of `require` allow.
import heatsink = require("heatsink");

const started: Promise<heatsink.Local> = heatsink.local();
export = started;
