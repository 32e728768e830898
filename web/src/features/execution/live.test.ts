import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LiveOutput } from "./live";

const frames: (() => void)[] = [];
const draw = () => {
  for (const frame of frames.splice(0)) frame();
};

beforeEach(() => {
  vi.stubGlobal("requestAnimationFrame", (frame: () => void) => frames.push(frame));
  vi.stubGlobal("cancelAnimationFrame", () => frames.splice(0));
});
afterEach(() => vi.unstubAllGlobals());

const words = (step: string, text: string) => JSON.stringify({ step, delta: { kind: "text", text } });

describe("live output of many agents", () => {
  it("notifies once per frame and leaves other steps unchanged", () => {
    const heard = new LiveOutput();
    const told = vi.fn();
    heard.subscribe(told);
    for (let at = 0; at < 3000; at++) heard.receive(words(`say:${at % 300}`, "tide "));
    expect(told).not.toHaveBeenCalled();
    draw();
    expect(told).toHaveBeenCalledTimes(1);
    const other = heard.get("say:2");
    heard.receive(words("say:1", "rises"));
    draw();
    expect(heard.get("say:1")?.text).toBe(`${"tide ".repeat(10)}rises`);
    expect(heard.get("say:2")).toBe(other);
    expect(told).toHaveBeenCalledTimes(2);
  });

  it("stops after the subscription ends, and drops steps that the journal has", () => {
    const heard = new LiveOutput();
    heard.receive(words("a", "x"));
    heard.receive(words("b", "y"));
    heard.drop((step) => step === "a");
    expect([heard.get("a"), heard.get("b")?.text]).toEqual([undefined, "y"]);
    heard.close();
    expect(frames).toEqual([]);
  });
});
