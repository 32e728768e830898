import { screen, within } from "@testing-library/react";
import { beforeEach, expect, it } from "vitest";
import type { Schemas } from "@/api/views";
import { open, server } from "@/testing/page";

const worker = (more: Partial<Schemas["WorkerView"]>): Schemas["WorkerView"] => ({
  name: "web-1/812/1/1",
  role: "server",
  version: "1.0.0",
  queues: [],
  capacity: 0,
  executions: 3,
  steps: 0,
  since: 1_767_225_600,
  beatSeconds: 1,
  ...more,
});

const report: Schemas["WorkersReport"] = {
  version: "1.0.0",
  engine: "",
  shared: true,
  workers: [worker({}), worker({ name: "gpu-1/7/1/1", role: "worker", queues: ["gpu"], capacity: 2, steps: 1 })],
  queues: [
    { queue: "gpu", workers: 1, waiting: 0, running: 1, oldestSeconds: 0 },
    { queue: "slow", workers: 0, waiting: 4, running: 0, oldestSeconds: 60 },
  ],
  owned: [{ executionId: "exec-1", worker: "web-1/812/1/1" }],
};

beforeEach(() => {
  server.get("/api/settings", { version: "1.0.0", store: "postgresql://db/pointsman", settings: [] });
});

it("lists the processes, the queues without workers, and the owners of executions", async () => {
  server.get("/api/workers", report);
  await open("/settings");
  const processes = await screen.findByRole("table", { name: "Workers" });
  expect(within(processes).getByRole("row", { name: /gpu-1.*1 \/ 2/ })).toBeTruthy();
  const queues = screen.getByRole("table", { name: "Queues" });
  expect(within(queues).getByRole("row", { name: /slow\s*none\s*0\s*4/ })).toBeTruthy();
  expect(within(screen.getByRole("table", { name: /Owners/ })).getByText("exec-1")).toBeTruthy();
});

it("states that a store of one process is not shared", async () => {
  server.get("/api/workers", { ...report, shared: false, workers: [], queues: [], owned: [] });
  await open("/settings");
  expect(await screen.findByText(/One process does everything/)).toBeTruthy();
});
