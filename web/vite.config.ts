import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";

function file(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}

/** Put the licence texts of Swagger UI (Apache-2.0) and of the packages inside it into the build. */
function swaggerUiLicences(): Plugin {
  return {
    name: "swagger-ui-licences",
    apply: "build",
    generateBundle() {
      for (const name of ["LICENSE", "NOTICE", "swagger-ui-es-bundle.js.LICENSE.txt"]) {
        const source = readFileSync(file(`node_modules/swagger-ui-dist/${name}`));
        this.emitFile({ type: "asset", fileName: `licenses/swagger-ui/${name}`, source });
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwindcss(), swaggerUiLicences()],
  resolve: {
    alias: {
      "@": file("src"),
      // A part of the form library that is for its own tests asks for a validator that compiles code; nothing of it is used.
      "@rjsf/validator-ajv8": file("src/forms/validator.ts"),
    },
  },
  // What the server serves; the folder is built, never edited.
  build: {
    outDir: "../src/pointsman/server/static",
    emptyOutDir: true,
    target: "es2022",
    chunkSizeWarningLimit: 2000,
    rolldownOptions: { input: { app: file("index.html"), api: file("api.html") } },
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
  // Tests have no clock to race: on a busy machine they take as long as they take.
  test: {
    testTimeout: 120_000,
    // What it asks for by a name that is an alias here has to be resolved here.
    server: { deps: { inline: ["@rjsf/core"] } },
    // The files of a worker share their modules: to import the app again for each file takes longer than its tests.
    isolate: false,
    projects: [
      { extends: true, test: { name: "node", include: ["src/**/*.test.ts"], environment: "node" } },
      {
        extends: true,
        test: {
          name: "page",
          include: ["src/**/*.test.tsx"],
          environment: "happy-dom",
          setupFiles: ["src/testing/eachTest.ts"],
        },
      },
    ],
  },
});
