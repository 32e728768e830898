import { describe, expect, it } from "vitest";
import { BrowserStorage } from "./browserStorage";

/** A browser with room for so many letters. */
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

describe("what the browser keeps", () => {
  it("is known until the page is left where the browser keeps nothing", () => {
    const shelf = new BrowserStorage(() => {
      throw new DOMException("denied", "SecurityError");
    });
    expect(shelf.read("a")).toBe(null);
    expect(shelf.write("a", "one")).toBe(false);
    expect([shelf.read("a"), shelf.lasts("a"), shelf.lasts("b")]).toEqual(["one", false, true]);
    expect(shelf.write("a", null)).toBe(true);
    expect(shelf.read("a")).toBe(null);
  });

  it("is the latest, also where there was room only for what was before", () => {
    const shelf = new BrowserStorage(() => room);
    const room = storage(3);
    expect(shelf.write("a", "one")).toBe(true);
    expect(shelf.write("a", "three")).toBe(false);
    expect([shelf.read("a"), room.getItem("a")]).toEqual(["three", "one"]);
    expect(shelf.write("a", "two")).toBe(true);
    expect([shelf.read("a"), room.getItem("a"), shelf.lasts("a")]).toEqual(["two", "two", true]);
  });
});
