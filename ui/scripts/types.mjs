// Writes src/api/schema.ts from the description of the HTTP interface that the tests of servo-api hold current.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const description = JSON.parse(readFileSync(at("../../crates/servo-api/openapi.json"), "utf8"));
const nodes = await openapiTS(description, { defaultNonNullable: false });
writeFileSync(at("../src/api/schema.ts"), astToString(nodes));
