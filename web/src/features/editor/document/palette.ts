/** Node types of the palette and their initial configuration. */
import type { JsonObject } from "@/api/views";

/** Groups of the palette; the label of each is `paletteGroup.<name>`. */
export const PALETTE_GROUPS = [
  { name: "agents", types: ["agent", "workflow"] },
  { name: "people", types: ["human"] },
  { name: "tools", types: ["tool", "http", "code"] },
  { name: "flow", types: ["decision", "parallel", "join", "loop", "wait", "emit", "start", "end"] },
  { name: "data", types: ["transform", "memory"] },
  { name: "canvas", types: ["note", "frame"] },
] as const;

/** Fields of the configuration that name what a node of the type uses. */
const NAMED_BY: Readonly<Record<string, string>> = { tool: "tool", agent: "agent", workflow: "workflow" };

/** A choice of the palette that uses a saved thing: a tool, an agent or a workflow. */
export const namedChoice = (type: keyof typeof NAMED_BY & string, name: string): string => `${type}:${name}`;

/**
 * Type, initial configuration and id of a new node. `choice`: a node type, `frame` (a note around nodes), or a
 * `namedChoice`.
 */
export function firstNode(choice: string): { type: string; config: JsonObject; idStem: string } {
  const [type = "", ...rest] = choice.split(":");
  const name = rest.join(":");
  const field = NAMED_BY[type];
  if (name && field) return { type, config: { [field]: name }, idStem: name.replace(/\W+/g, "_") };
  if (choice === "frame") return { type: "note", config: { frame: true }, idStem: "frame" };
  return { type: choice, config: firstConfig(choice), idStem: choice };
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
