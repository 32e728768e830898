/**
 * Live output of running steps, before the journal has it: text of models, calls of tools.
 *
 * Hundreds of agents can write at once, but the page shows few: a component subscribes to the step it shows and renders
 * once per frame. The output of the other steps is stored and renders nothing.
 */
import { useSyncExternalStore } from "react";
import type { Json } from "@/api/views";

export interface LiveCall {
  tool: string;
  arguments: Json | undefined;
  /** Undefined while the call is running. */
  ok: boolean | undefined;
}

export interface StepOutput {
  text: string;
  thought: string;
  calls: LiveCall[];
  /** The current task of a planner, as in `2/5`. */
  task: string;
}

/** At most this many characters of live text are kept. */
const TEXT_CHARS_MAX = 100_000;

interface Delta {
  kind?: string;
  text?: string;
  /** All text so far, including the text sent before the client subscribed. */
  soFar?: string;
  tool?: string;
  arguments?: Json;
  ok?: boolean;
  number?: number;
  of?: number;
}

/** The live output of all running steps of one execution. */
export class LiveOutput {
  private readonly steps = new Map<string, StepOutput>();
  private readonly listeners = new Set<() => void>();
  private frame: number | null = null;
  private versionNumber = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  /** Changes whenever there is new output. */
  readonly version = (): number => this.versionNumber;

  get(step: string): StepOutput | undefined {
    return this.steps.get(step);
  }

  /** Apply one message of the stream. */
  receive(data: string): void {
    const message = JSON.parse(data) as { step: string; delta?: Delta };
    if (!message.delta) return;
    const was = this.steps.get(message.step) ?? { text: "", thought: "", calls: [], task: "" };
    const now = applyDelta(was, message.delta);
    if (now === was) return;
    this.steps.set(message.step, now);
    this.scheduleNotify();
  }

  /** Drop the text of all steps: a new stream sends it from the start, and it must not appear twice. */
  clearText(): void {
    for (const [step, was] of this.steps) this.steps.set(step, { ...was, text: "", thought: "" });
    this.scheduleNotify();
  }

  /** Drop the output of steps that the journal has now. */
  drop(isOver: (step: string) => boolean): void {
    for (const step of this.steps.keys()) if (isOver(step) && this.steps.delete(step)) this.scheduleNotify();
  }

  close(): void {
    if (this.frame !== null) cancelAnimationFrame(this.frame);
  }

  private scheduleNotify(): void {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.versionNumber += 1;
      for (const listener of this.listeners) listener();
    });
  }
}

/** Subscribe to one part of a step's live output. */
export function useLive<Part extends keyof StepOutput>(
  applyDelta: LiveOutput,
  step: string,
  part: Part,
): StepOutput[Part] | undefined {
  return useSyncExternalStore(applyDelta.subscribe, () => applyDelta.get(step)?.[part]);
}

/** Subscribe to all live output; returns its version. */
export function useLiveOutput(applyDelta: LiveOutput): number {
  return useSyncExternalStore(applyDelta.subscribe, applyDelta.version);
}

function applyDelta(was: StepOutput, delta: Delta): StepOutput {
  switch (delta.kind) {
    case "thought":
      return { ...was, thought: (was.thought + (delta.text ?? "")).slice(-TEXT_CHARS_MAX) };
    case "so_far":
      return { ...was, text: (delta.soFar ?? "").slice(-TEXT_CHARS_MAX) };
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
      return delta.text ? { ...was, text: (was.text + delta.text).slice(-TEXT_CHARS_MAX) } : was;
  }
}
