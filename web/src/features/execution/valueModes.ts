/** The ways to show a value, and the one that suits it. */
import type { Json } from "@/api/views";

export type Mode = "rendered" | "raw" | "json";

const MARKDOWN = /^#{1,6} |^\s*[-*+] |^\s*\d+\. |^```|^> |\*\*[^*\n]+\*\*|\[[^\]\n]+\]\([^)\n]+\)|^\|.*\|$/m;
const LONG_TEXT = 120;

export const textOf = (value: Json | undefined): string =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");

/** The object or list that a text contains as JSON. */
export function parsedJson(text: string): Json | undefined {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

export function modesOf(value: Json, text: string): Mode[] {
  if (typeof value === "string")
    return parsedJson(text) === undefined ? ["rendered", "raw"] : ["rendered", "raw", "json"];
  return typeof value === "object" ? ["rendered", "raw", "json"] : ["raw"];
}

/** Markdown and objects with long texts are rendered; other values are shown as they are. */
export function defaultMode(value: Json, text: string): Mode {
  if (typeof value === "string")
    return parsedJson(text) !== undefined ? "json" : MARKDOWN.test(text) ? "rendered" : "raw";
  return hasLongText(value) ? "rendered" : "raw";
}

function hasLongText(value: Json): boolean {
  if (typeof value === "string") return value.includes("\n") || value.length > LONG_TEXT;
  return value !== null && typeof value === "object" && Object.values(value).some(hasLongText);
}
