/** What a definition is drawn of: the types of nodes, and how each begins. */
import type { JsonObject } from "@/api/views";

/** What the palette offers, in the order people need it. */
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
] as const;

/** What a new node of a type says at first: what it needs to run, and nothing that its author has to take away. */
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
