/** Node types of the palette and their initial configuration. */
import type { JsonObject } from "@/api/views";

/** Node types in the palette, most used first. */
export const PALETTE = [
  "agent",
  "tool",
  "human",
  "decision",
  "parallel",
  "join",
  "loop",
  "transform",
  "memory",
  "workflow",
  "http",
  "code",
  "wait",
  "emit",
  "start",
  "end",
  "note",
  "frame",
] as const;

/** Type and initial configuration of a new node. A frame is a note that stands around nodes. */
export function firstNode(choice: string): { type: string; config: JsonObject } {
  if (choice === "frame") return { type: "note", config: { frame: true } };
  return { type: choice, config: firstConfig(choice) };
}

/** Initial configuration of a new node: the fields that it needs to run, and nothing that the author must remove. */
export function firstConfig(type: string): JsonObject {
  switch (type) {
    case "tool":
      return { tool: "calculator", parameters: { expression: "1 + 1" } };
    case "human":
      return { actions: ["approve", "reject"] };
    case "decision":
      return { expression: "true" };
    case "parallel":
      return { items: "[1, 2, 3]" };
    case "loop":
      return { maxIterations: 3 };
    case "transform":
      return { set: {} };
    case "memory":
      return { scope: "session", operation: "get", key: "key" };
    case "http":
      return { method: "GET", url: "https://example.org/" };
    case "code":
      return { language: "python", source: "result = inputs" };
    case "wait":
      return { duration: "1m" };
    case "emit":
      return { event: "event" };
    default:
      return {};
  }
}
