import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: {
    alias: {
      "@": fileURLToPath(new URL("src", import.meta.url)),
      // A part of the form library that is for its own tests asks for a validator that compiles code; nothing of it is used.
      "@rjsf/validator-ajv8": fileURLToPath(new URL("src/forms/validator.ts", import.meta.url)),
    },
  },
  // What the server serves; the folder is built, never edited.
  build: { outDir: "../src/pointsman/server/static", emptyOutDir: true, target: "es2022", chunkSizeWarningLimit: 1600 },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
  // Tests have no clock to race: on a busy machine they take as long as they take. Those that need a page say so.
  test: {
    environment: "node",
    testTimeout: 120_000,
    // What it asks for by a name that is an alias here has to be resolved here.
    server: { deps: { inline: ["@rjsf/core"] } },
  },
});
