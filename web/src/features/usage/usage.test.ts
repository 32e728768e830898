import { describe, expect, it } from "vitest";
import { byDay, ceiling, formatMeasure, lastDays, type Row } from "./usage";

const row = (day: string, costUsd: number) => ({ day, costUsd, inputTokens: 2, outputTokens: 1 }) as unknown as Row;

describe("usage by day", () => {
  it("has a value for each day, also for days without usage", () => {
    const rows = [row("2026-02-27", 1), row("2026-03-02", 3)];
    expect(byDay(rows, "costUsd", { since: "2026-02-26", until: "2026-03-02" })).toEqual([
      ["2026-02-26", 0],
      ["2026-02-27", 1],
      ["2026-02-28", 0],
      ["2026-03-01", 0],
      ["2026-03-02", 3],
    ]);
    expect(byDay(rows, "tokens", { since: "", until: "" }).map(([, value]) => value)).toEqual([3, 0, 0, 3]);
    expect(byDay([], "costUsd", { since: "", until: "" })).toEqual([]);
    expect(byDay(rows, "costUsd", { since: "2026-03-02", until: "2026-02-01" })).toEqual([]);
    expect(byDay(rows, "costUsd", { since: "0001-01-01", until: "2026-03-02" })).toHaveLength(400);
  });

  it("includes today in the last days", () => {
    expect(lastDays("7", Date.parse("2026-03-03T12:00:00Z"))).toEqual({ since: "2026-02-25", until: "2026-03-03" });
    expect(lastDays("all", 0)).toEqual({ since: "", until: "" });
  });
});

describe("numbers", () => {
  it("end an axis at a round value", () => {
    expect([0, 0.003, 1, 1.2, 4.4, 51, 10_000].map(ceiling)).toEqual([1, 0.005, 1, 2, 5, 100, 10_000]);
  });

  it("are formatted for display", () => {
    expect(formatMeasure(0.0123, "costUsd", "en")).toBe("$0.0123");
    expect(formatMeasure(1234.5, "costUsd", "en")).toBe("$1,234.50");
    expect(formatMeasure(7200, "seconds", "en")).toBe("2 h");
    expect(formatMeasure(12_000, "tokens", "de")).toBe("12.000");
  });
});
