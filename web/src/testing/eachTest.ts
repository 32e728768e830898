/** Runs before each file of component tests: files share the modules that they import, hooks belong to one file. */
import { afterEach, beforeAll, beforeEach } from "vitest";
import { leavePage, startServer } from "./page";

// A test can end while the page that it opened last still loads. The window of its file is gone by then, so a module
// that needs one would fail, for all later files too. Once loaded, modules are there at once.
const lazyParts = import.meta.glob([
  "../features/**/*.tsx",
  "../components/*.tsx",
  "../forms/**/*.tsx",
  "!**/*.test.tsx",
]);

/** The first file transforms all modules, which takes long on a busy machine. */
const LOADING_MS_MAX = 600_000;

beforeAll(() => Promise.all(Object.values(lazyParts).map((load) => load())), LOADING_MS_MAX);
beforeEach(startServer);
afterEach(leavePage);
