/** What happens inside a step before anything of it is in the journal: words of models, calls of tools.

  Hundreds of agents may speak at once, and few of them are looked at: whoever shows a step listens to that step, and is
  told once a frame, however much was said in it. What is not in sight costs nothing but that it is kept.
*/
import { useSyncExternalStore } from "react";
import type { Json } from "@/api/views";

export interface LiveCall {
  tool: string;
  arguments: Json | undefined;
  /** Undefined while it is under way. */
  ok: boolean | undefined;
}

export interface Live {
  text: string;
  thought: string;
  calls: LiveCall[];
  /** The tasks of a planner: the one it is at. */
  task: string;
}

/** So much of what is said is shown while it is said. */
const SAID_MAX = 100_000;

interface Delta {
  kind?: string;
  text?: string;
  /** What was said before one listened, and since. */
  soFar?: string;
  tool?: string;
  arguments?: Json;
  ok?: boolean;
  number?: number;
  of?: number;
}

/** Of all steps of one execution that are under way. */
export class LiveOutput {
  private readonly steps = new Map<string, Live>();
  private readonly listeners = new Set<() => void>();
  private frame: number | null = null;
  private told = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Another number once there is something new to show. */
  readonly version = (): number => this.told;

  get(step: string): Live | undefined {
    return this.steps.get(step);
  }

  /** Takes one message of the stream in. */
  hear(data: string): void {
    const told = JSON.parse(data) as { step: string; delta?: Delta };
    if (!told.delta) return;
    const was = this.steps.get(told.step) ?? { text: "", thought: "", calls: [], task: "" };
    const now = heard(was, told.delta);
    if (now === was) return;
    this.steps.set(told.step, now);
    this.tellSoon();
  }

  /** Whoever tells of it from now on begins anew: what is said twice would be shown twice. */
  forgetSaid(): void {
    for (const [step, was] of this.steps) this.steps.set(step, { ...was, text: "", thought: "" });
    this.tellSoon();
  }

  /** The journal tells of these now. */
  forget(isOver: (step: string) => boolean): void {
    for (const step of this.steps.keys()) if (isOver(step) && this.steps.delete(step)) this.tellSoon();
  }

  close(): void {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
  }

  private tellSoon(): void {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.told += 1;
      for (const listener of this.listeners) listener();
    });
  }
}

/** One part of what is heard of one step. */
export function useLive<Part extends keyof Live>(heard: LiveOutput, step: string, part: Part): Live[Part] | undefined {
  return useSyncExternalStore(heard.subscribe, () => heard.get(step)?.[part]);
}

/** Everything that is heard: `version` of it. */
export function useLiveOutput(heard: LiveOutput): number {
  return useSyncExternalStore(heard.subscribe, heard.version);
}

function heard(was: Live, delta: Delta): Live {
  switch (delta.kind) {
    case "thought":
      return { ...was, thought: (was.thought + (delta.text ?? "")).slice(-SAID_MAX) };
    case "so_far":
      return { ...was, text: (delta.soFar ?? "").slice(-SAID_MAX) };
    case "discarded":
      return { ...was, text: "" };
    case "tool_call":
      return {
        ...was,
        calls: [...was.calls, { tool: delta.tool ?? "", arguments: delta.arguments, ok: undefined }],
      };
    case "tool_result": {
      const at = was.calls.findIndex((call) => call.tool === delta.tool && call.ok === undefined);
      const calls = was.calls.map((call, index) => (index === at ? { ...call, ok: delta.ok } : call));
      return { ...was, calls };
    }
    case "task":
      return { ...was, task: `${delta.number}/${delta.of}` };
    default:
      return delta.text ? { ...was, text: (was.text + delta.text).slice(-SAID_MAX) } : was;
  }
}
