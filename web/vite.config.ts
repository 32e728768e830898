import { readFileSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import tailwindcss from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { Plugin } from "vite";
import { defineConfig } from "vitest/config";
import { codeSplitting } from "./codeSplitting.ts";

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

const brotli = promisify(brotliCompress);
const gzipped = promisify(gzip);

/** Write each text file also compressed, so that the server need not compress it for each client. */
function compressedCopies(): Plugin {
  const quality = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };

  async function compress(path: string): Promise<void> {
    const content = await readFile(path);
    if (content.length < 1024) return;
    await writeFile(`${path}.br`, await brotli(content, { params: quality }));
    await writeFile(`${path}.gz`, await gzipped(content, { level: 9 }));
  }

  return {
    name: "compressed-copies",
    apply: "build",
    async writeBundle({ dir = "" }, bundle) {
      const names = Object.keys(bundle).filter((one) => /\.(js|css|html|svg|txt)$/.test(one));
      await Promise.all(names.map((name) => compress(join(dir, name)))); // Uses all cores: the highest quality takes long.
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwindcss(), swaggerUiLicences(), compressedCopies()],
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
    rolldownOptions: {
      input: { app: file("index.html"), api: file("api.html") },
      output: { codeSplitting },
    },
    modulePreload: { polyfill: false },
  },
  worker: { format: "es" },
  server: { proxy: { "/api": "http://127.0.0.1:8000" } },
  // Tests have no clock to race: on a busy machine they take as long as they take.
  test: {
    testTimeout: 120_000,
    hookTimeout: 300_000,
    // What it asks for by a name that is an alias here has to be resolved here.
    server: { deps: { inline: ["@rjsf/core"] } },
    // The files of a worker share their modules: to import the app again for each file takes longer than its tests.
    isolate: false,
    maxWorkers: "100%",
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
