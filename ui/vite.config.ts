import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Files whose names have a hash are below static/: addresses like /assets/... are pages.
export default defineConfig({
  plugins: [react()],
  build: { assetsDir: "static", target: "es2022", assetsInlineLimit: 0, modulePreload: { polyfill: false }, reportCompressedSize: false },
  worker: { format: "es" },
  server: { proxy: { "/api": { target: process.env["SERVO_URL"] ?? "http://127.0.0.1:8741", changeOrigin: true } } },
});
