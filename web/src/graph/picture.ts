/** A definition as a picture: boxes, arrows, and what stands on them. */
import type { Definition, DefinitionEdge, DefinitionNode, JsonObject, Text } from "@/api/views";
import { textIn } from "@/i18n";

export interface Box {
  id: string;
  type: string;
  name: string;
  detail: string;
  position: { x: number; y: number } | null;
}

export interface Arrow {
  id: string;
  source: string;
  target: string;
  label: string;
  isError: boolean;
}

export interface Picture {
  boxes: Box[];
  arrows: Arrow[];
}

export const BOX = { width: 208, height: 60 } as const;
const LABEL_MAX = 42;

export function pictureOf(definition: Definition, language: string): Picture {
  const ids = new Set(definition.nodes.map((node) => node.id));
  const boxes = definition.nodes.map((node) => ({
    id: node.id,
    type: node.type,
    name: textIn(node.name, language, node.id),
    detail: detailOf(node, language),
    position: node.position ?? null,
  }));
  const arrows: Arrow[] = [];
  const seen = new Map<string, number>();
  const add = (edge: DefinitionEdge, label: string, isError: boolean) => {
    const name = edge.id ?? `${edge.source}->${edge.target}`;
    const nth = seen.get(name) ?? 0;
    seen.set(name, nth + 1);
    const target = edge.target;
    if (ids.has(edge.source) && ids.has(target))
      arrows.push({ id: nth ? `${name}#${nth}` : name, source: edge.source, target, label, isError });
  };
  for (const edge of definition.edges) add(edge, labelOf(edge.condition), edge.condition?.type === "error");
  return { boxes, arrows };
}

export function labelOf(condition: JsonObject | undefined): string {
  if (!condition) return "";
  const text = (() => {
    switch (condition.type) {
      case "always":
        return "";
      case "default":
        return "else";
      case "never":
        return "never";
      case "label":
        return String(condition.label ?? "");
      case "expression":
        return String(condition.expression ?? "");
      case "equals":
        return `${String(condition.field)} = ${JSON.stringify(condition.value)}`;
      case "contains":
        return `${String(condition.field)} ∋ ${JSON.stringify(condition.value)}`;
      case "exists":
        return `${String(condition.field)}?`;
      case "llm":
        return `“${String(condition.prompt ?? "")}”`;
      case "error":
        return ["error", ...((condition.codes as string[] | undefined) ?? [])].join(" ");
      default:
        return String(condition.type ?? "");
    }
  })();
  return text.length > LABEL_MAX ? `${text.slice(0, LABEL_MAX - 1)}…` : text;
}

function detailOf(node: DefinitionNode, language: string): string {
  const config = node.config ?? {};
  const found = (() => {
    switch (node.type) {
      case "agent":
      case "prompt":
        return config.agent ?? config.model ?? config.prompt;
      case "tool":
        return config.tool;
      case "workflow":
        return config.workflow;
      case "human":
        return textIn(config.message as Text | undefined, language);
      case "decision":
        return config.expression ?? config.llmPrompt;
      case "parallel":
        return config.items;
      case "join":
        return config.wait ?? config.aggregate;
      case "loop":
        return config.while ?? config.until ?? config.over;
      case "wait":
        return config.duration ?? config.until ?? config.event;
      case "emit":
        return config.event;
      case "memory":
        return [config.operation, config.key].filter(Boolean).join(" ");
      case "note":
        return textIn(config.text as Text | undefined, language);
      default:
        return "";
    }
  })();
  return typeof found === "string" || typeof found === "number" ? String(found) : "";
}
