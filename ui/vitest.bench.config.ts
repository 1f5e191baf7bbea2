import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["bench/**/*.bench.ts"], environment: "node", fileParallelism: false, testTimeout: 1_200_000, hookTimeout: 1_200_000, reporters: ["default"] },
});
