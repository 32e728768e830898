import { describe, expect, it } from "vitest";
import { BrowserStorage } from "./browserStorage";

/** A browser storage with room for this many letters. */
function storage(room: number): Storage {
  const kept = new Map<string, string>();
  return {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, text: string) => {
      if (text.length > room) throw new DOMException("no room", "QuotaExceededError");
      kept.set(key, text);
    },
    removeItem: (key: string) => kept.delete(key),
  } as unknown as Storage;
}

describe("browser storage", () => {
  it("keeps values in memory if the browser stores nothing", () => {
    const shelf = new BrowserStorage(() => {
      throw new DOMException("denied", "SecurityError");
    });
    expect(shelf.read("a")).toBe(null);
    expect(shelf.write("a", "one")).toBe(false);
    expect([shelf.read("a"), shelf.lasts("a"), shelf.lasts("b")]).toEqual(["one", false, true]);
    expect(shelf.write("a", null)).toBe(true);
    expect(shelf.read("a")).toBe(null);
  });

  it("returns the latest value, even if only an earlier one could be stored", () => {
    const shelf = new BrowserStorage(() => room);
    const room = storage(3);
    expect(shelf.write("a", "one")).toBe(true);
    expect(shelf.write("a", "three")).toBe(false);
    expect([shelf.read("a"), room.getItem("a")]).toEqual(["three", "one"]);
    expect(shelf.write("a", "two")).toBe(true);
    expect([shelf.read("a"), room.getItem("a"), shelf.lasts("a")]).toEqual(["two", "two", true]);
  });
});
