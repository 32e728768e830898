/** Runs before each file of component tests: files share the modules that they import, hooks belong to one file. */
import { afterEach, beforeEach } from "vitest";
import { leavePage, startServer } from "./page";

beforeEach(startServer);
afterEach(leavePage);
