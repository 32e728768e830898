import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { loadPart, useServerUnreachable } from "./loadPart";

describe("lazy part of the app", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is loaded again until the server responds, and the app reports that it is away", async () => {
    const heard: boolean[] = [];
    const stop = useServerUnreachable.subscribe((now) => void heard.push(now.isUnreachable));
    let asked = 0;
    let isUp = false;
    const read = () => (isUp ? Promise.resolve("page") : Promise.reject(new Error("away")));
    const answers = () => Promise.resolve(++asked > 2);
    const found = loadPart(read, answers);
    await vi.advanceTimersByTimeAsync(999);
    expect(heard).toEqual([true]);
    isUp = true;
    await vi.advanceTimersByTimeAsync(1);
    await expect(found).resolves.toBe("page");
    expect(heard).toEqual([true, false]);
    stop();
  });

  it("fails at once if the server responds but does not have it", async () => {
    const read = vi.fn(() => Promise.reject(new Error("of another version")));
    await expect(loadPart(read, () => Promise.resolve(true))).rejects.toThrow("of another version");
    expect(read).toHaveBeenCalledTimes(1);
    expect(useServerUnreachable.getState().isUnreachable).toBe(false);
  });
});
