/** Prompts with variables, and the workflow document that runs one of them. */
import type { Json, JsonObject } from "@/api/views";

/** Id of the workflow of every run. No workflow needs to be saved under it. */
export const WORKFLOW = "playground";
export const TARGETS_MAX = 4;
export const ROWS_MAX = 20;

/** What answers a column: a model by name ("" is the server's default model), or a saved agent. */
export interface Target {
  kind: "model" | "agent";
  name: string;
}

/** Input values by variable. */
export type Row = Record<string, Json>;

export interface Draft {
  system: string;
  user: string;
  /** Earlier messages of a conversation, sent before the user prompt. */
  messages: JsonObject[];
  targets: Target[];
  rows: Row[];
  /** Cost limit of each answer in US dollars; empty: none. */
  limit: string;
}

export const EMPTY: Draft = {
  system: "",
  user: "",
  messages: [],
  targets: [{ kind: "model", name: "" }],
  rows: [{}],
  limit: "",
};

/** Words of templates and expressions that are not inputs. */
const RESERVED: ReadonlySet<string> = new Set([
  "else",
  "this",
  "true",
  "false",
  "null",
  "not",
  "state",
  "data",
  "loop",
]);
const EXPRESSION = /(?<!\\)\{\{-?\s*(?:#(?:if|unless|each|compare)\s+)?([A-Za-z_]\w*)/g;
const PLACEHOLDER = /(?<![\\{$])\{([A-Za-z_]\w*)(?:[.[][^{}\s]*)?\??\s*(?:\|[^{}]*)?\}(?!\})/g;
const MESSAGES = "earlier_messages";

/** Return the variables of texts, in the order of their first use. */
export function variablesIn(...texts: string[]): string[] {
  const found = texts.flatMap((text) =>
    [...text.matchAll(EXPRESSION), ...text.matchAll(PLACEHOLDER)]
      .sort((a, b) => a.index - b.index)
      .map((match) => match[1] as string),
  );
  return [...new Set(found)].filter((name) => !RESERVED.has(name));
}

export const variablesOf = (draft: Draft): string[] => variablesIn(draft.system, draft.user);

/** Return a text as a template that renders to it: braces that look like a placeholder are escaped. */
export const literalTemplate = (text: string): string => text.replace(/\{(?=\s*[\w{#/!@-])/g, "\\{");

/** Return the document that asks one model or agent. */
export function documentFor(draft: Draft, target: Target): JsonObject {
  const own: JsonObject =
    target.kind === "agent"
      ? { agent: target.name }
      : {
          ...(draft.system.trim() ? { system: draft.system } : {}),
          ...(target.name.trim() ? { model: target.name.trim() } : {}),
        };
  const hasMessages = draft.messages.length > 0;
  const inputs: [string, JsonObject][] = variablesOf(draft).map((name) => [name, {}]);
  if (hasMessages) inputs.push([MESSAGES, { type: "array" }]);
  const limit = Number(draft.limit);
  return {
    pointsman: 1,
    id: WORKFLOW,
    name: "Playground",
    tags: [WORKFLOW],
    input: { type: "object", properties: Object.fromEntries(inputs) },
    output: { answer: "answer" },
    ...(draft.limit.trim() && limit > 0 ? { config: { limits: { costUsd: limit }, budget: { policy: "stop" } } } : {}),
    nodes: [
      {
        id: "answer",
        type: "agent",
        config: {
          ...own,
          ...(draft.user.trim() ? { prompt: draft.user } : {}),
          ...(hasMessages ? { messages: MESSAGES } : {}),
        },
        outputs: { answer: "result" },
      },
    ],
  };
}

/** Return the input of an execution of `documentFor`. */
export function inputFor(draft: Draft, row: Row): JsonObject {
  const values = variablesOf(draft).flatMap((name) => (row[name] === undefined ? [] : [[name, row[name]]]));
  return {
    ...(Object.fromEntries(values) as JsonObject),
    ...(draft.messages.length > 0 ? { [MESSAGES]: draft.messages } : {}),
  };
}

export const isRunnable = (draft: Draft): boolean =>
  (draft.user.trim() !== "" || draft.messages.length > 0) &&
  draft.targets.every((target) => target.kind === "model" || target.name.trim() !== "");
