import { defineConfig } from "vitest/config";

// Journeys wait for a browser, a server and Python; on a runner of CI that is shared one of them may be starved for longer
// than anybody waits. So a test is tried again there, up to twice, as the profile `ci` of nextest does, and what never
// passes fails. Nowhere else: a test that sometimes fails is to be seen.
const RETRIES = process.env["CI"] === undefined ? 0 : 2;

export default defineConfig({
  test: { include: ["tests/**/*.test.ts"], environment: "node", fileParallelism: false, testTimeout: 60_000, hookTimeout: 120_000, retry: RETRIES, reporters: ["default"] },
});
