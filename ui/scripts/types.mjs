// Writes src/api/schema.ts from the description of the HTTP interface that the tests of servo-api hold current.
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const snapshot = "../../crates/servo-api/tests/http/snapshots/http__description__the_description_is_the_one_that_was_agreed_on.snap";
const text = readFileSync(at(snapshot), "utf8");
const description = JSON.parse(text.slice(text.indexOf("\n---\n", 3) + 5));
const nodes = await openapiTS(description, { defaultNonNullable: false });
writeFileSync(at("../src/api/schema.ts"), astToString(nodes));
