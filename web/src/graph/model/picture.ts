/** A definition as a picture: boxes, arrows and their labels. */
import type { TFunction } from "i18next";
import type { Definition, DefinitionEdge, DefinitionNode, JsonObject, Text } from "@/api/views";
import { textIn } from "@/i18n";
import { answerName } from "./answerNames";
import { edgeNames } from "./edgeNames";
import { followedOutcomes, type Outcome, type OutcomeKind, outcomeOf, portsOf } from "./outcomes";
import { impliedEdges, type Region, regionsOf } from "./regions";

export interface Box {
  id: string;
  type: string;
  name: string;
  detail: string;
  position: { x: number; y: number } | null;
  /** One port for each outcome, if edges follow different ones. */
  ports?: Port[];
  /** Ids of the nodes that are folded into this box. */
  foldedNodes?: string[];
}

/** The point at which the edges of one outcome begin. */
export interface Port {
  id: string;
  kind: OutcomeKind;
  name: string;
  /** An edge follows the outcome. */
  isFollowed: boolean;
}

/** More ports than these are too close to be aimed at: the box has one, and the editor asks for the answer. */
const PORTS_MAX = 5;

export interface Arrow {
  id: string;
  source: string;
  target: string;
  label: string;
  isError: boolean;
  /** The port at which the arrow begins, if the box has several. */
  port?: { id: string; nth: number; count: number };
  /** The document implies this arrow but does not contain it. */
  isImplied?: boolean;
}

/** A sticky note, or a frame around nodes. Neither takes part in the flow. */
export interface Note {
  id: string;
  /** Its accessible name. */
  name: string;
  /** Markdown; of a frame: the title. */
  text: string;
  color: NoteColor;
  isFrame: boolean;
  position: { x: number; y: number } | null;
  width: number;
  height: number;
}

export const NOTE_COLORS = ["yellow", "green", "blue", "purple", "red", "gray"] as const;
export type NoteColor = (typeof NOTE_COLORS)[number];
const NOTE_SIZE = { width: 220, height: 120 } as const;
const FRAME_SIZE = { width: 480, height: 280 } as const;

export interface Picture {
  boxes: Box[];
  arrows: Arrow[];
  notes?: Note[];
  regions?: Region[];
  /** Id of the workflow, if known; the folding state is stored under it. */
  workflow?: string;
}

/**
 * From this number of boxes on, only visible boxes are rendered, and at small zoom levels all boxes are painted on one
 * canvas.
 */
export const LARGE_PICTURE = 150;
const LABEL_MAX = 42;

/** An unchanged node keeps its box object, so that React does not render it again. */
const BOXES = new WeakMap<DefinitionNode, { language: string; ports: string; box: Box }>();

function boxOf(node: DefinitionNode, definition: Definition, language: string, t: TFunction): Box {
  const ports = namedPorts(node, definition, language, t);
  const portsKey = JSON.stringify(ports);
  const known = BOXES.get(node);
  if (known?.language === language && known.ports === portsKey) return known.box;
  const box: Box = {
    id: node.id,
    type: node.type,
    name: textIn(node.name, language, node.id),
    detail: detailOf(node, language),
    position: node.position ?? null,
    ...(ports.length > 0 ? { ports } : {}),
  };
  BOXES.set(node, { language, ports: portsKey, box });
  return box;
}

/** Note nodes of a draft may have invalid values until they are corrected; these count as absent. */
export function noteOf(node: DefinitionNode, language: string, t: TFunction): Note {
  const { text, color, frame, width, height } = node.config ?? {};
  const isFrame = frame === true;
  const shown = textIn(text as Text | undefined, language);
  const size = isFrame ? FRAME_SIZE : NOTE_SIZE;
  const [line = ""] = shown.trim().split("\n");
  return {
    id: node.id,
    name: [t(isFrame ? "node.frame" : "node.note"), line].filter(Boolean).join(": "),
    text: shown,
    color: NOTE_COLORS.find((one) => one === color) ?? (isFrame ? "gray" : "yellow"),
    isFrame,
    position: node.position ?? null,
    width: typeof width === "number" ? width : size.width,
    height: typeof height === "number" ? height : size.height,
  };
}

function namedPorts(node: DefinitionNode, definition: Definition, language: string, t: TFunction): Port[] {
  const ports = portsOf(node, definition);
  if (ports.length > PORTS_MAX) return [];
  const followed = followedOutcomes(node, definition);
  return ports.map((one) => ({
    id: one.id,
    kind: one.kind,
    name: outcomeName(one, node, language, t),
    isFollowed: followed.has(one.id),
  }));
}

export function outcomeName(outcome: Outcome, node: DefinitionNode, language: string, t: TFunction): string {
  return outcome.kind === "answer" ? answerName(node, outcome.label, language, t) : t(`outcome.${outcome.kind}`);
}

export function pictureOf(definition: Definition, language: string, t: TFunction): Picture {
  const nodes = new Map(definition.nodes.map((node) => [node.id, node]));
  const steps = definition.nodes.filter((node) => node.type !== "note");
  const boxes = [
    ...steps.filter((node) => node.id === definition.entry),
    ...steps.filter((node) => node.id !== definition.entry),
  ].map((node) => boxOf(node, definition, language, t));
  const notes = definition.nodes.flatMap((node) => (node.type === "note" ? noteOf(node, language, t) : []));
  const portsOfBox = new Map(boxes.map((box) => [box.id, box.ports ?? []]));
  const arrows: Arrow[] = [];
  const add = (edge: DefinitionEdge, id: string, isImplied: boolean) => {
    const { source, target, condition } = edge;
    if (!portsOfBox.has(source) || !portsOfBox.has(target)) return;
    const label = isImplied
      ? ""
      : labelOf(condition, nodes.get(source), language, t) || textIn(edge.label as Text | undefined, language);
    const ports = portsOfBox.get(source) ?? [];
    const port = outcomeOf(edge, nodes.get(source) as DefinitionNode).id;
    const nth = ports.findIndex((one) => one.id === port);
    arrows.push({
      id,
      source,
      target,
      label,
      ...(nth >= 0 ? { port: { id: port, nth, count: ports.length } } : {}),
      isError: condition?.type === "error",
      ...(isImplied ? { isImplied } : {}),
    });
  };
  const names = edgeNames(definition.edges);
  definition.edges.forEach((edge, at) => {
    add(edge, names[at] as string, false);
  });
  for (const edge of impliedEdges(definition)) add(edge, `${edge.source}->${edge.target}`, true);
  return { boxes, arrows, notes, regions: regionsOf(definition), workflow: definition.id };
}

function labelOf(
  condition: JsonObject | undefined,
  source: DefinitionNode | undefined,
  language: string,
  t: TFunction,
): string {
  if (!condition) return "";
  const text = (() => {
    switch (condition.type) {
      case "always":
        return "";
      case "default":
        return t("arrow.default");
      case "never":
        return t("arrow.never");
      case "label":
        return answerName(source, String(condition.label ?? ""), language, t);
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
        return [t("arrow.error"), ...((condition.codes as string[] | undefined) ?? [])].join(" ");
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
      default:
        return "";
    }
  })();
  return typeof found === "string" || typeof found === "number" ? String(found) : "";
}
