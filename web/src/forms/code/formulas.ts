/** What the server says of one formula: what is wrong with it, what it gives over some values. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest } from "@/api/http";
import type { Json, JsonObject, Schemas } from "@/api/views";
import type { Known } from "@/features/editor/document/known";
import type { FormulaSyntax } from "@/features/editor/document/shapes";

export type CheckedFormula = Schemas["CheckedFormula"];
export type EvaluatedFormula = Schemas["EvaluatedFormula"];

export const functionsOfLanguage = () =>
  queryOptions({
    queryKey: ["expressions", "functions"],
    queryFn: ({ signal }) => apiRequest<Schemas["LanguageFunctions"]>("/api/expressions/functions", { signal }),
    select: (told) => told.functions,
    staleTime: Number.POSITIVE_INFINITY,
  });

export function checkFormula(
  text: string,
  spelled: FormulaSyntax,
  known: Known,
  signal?: AbortSignal,
): Promise<CheckedFormula> {
  const body = { text, kind: spelled, dialect: known.dialect, names: known.own, schemas: known.schemas };
  return apiRequest<CheckedFormula>("/api/expressions/check", { body, ...(signal ? { signal } : {}) });
}

export function evaluateFormula(
  text: string,
  spelled: FormulaSyntax,
  known: Known,
  values: JsonObject,
  signal?: AbortSignal,
): Promise<EvaluatedFormula> {
  const body = { text, kind: spelled, dialect: known.dialect, names: known.own, values };
  return apiRequest<EvaluatedFormula>("/api/expressions/evaluate", { body, ...(signal ? { signal } : {}) });
}

/** The server counts characters, a text here has two units for some of them. */
export function unitsAt(text: string, characters: number): number {
  let units = 0;
  let left = characters;
  for (const one of text) {
    if (left <= 0) break;
    units += one.length;
    left -= 1;
  }
  return units;
}

/** Values to try a formula with: what it reads, filled in from `sample` as far as that has it. */
export function valuesFor(reads: CheckedFormula["reads"], sample: JsonObject): JsonObject {
  const found: JsonObject = {};
  for (const { root, path } of reads) {
    const keys = (root === "state" || root === "" ? [...path] : [root, ...path]) as (string | number | null)[];
    const first = keys[0];
    if (typeof first !== "string" || root === "config") continue;
    const known = sample[first];
    found[first] = known !== undefined ? known : placed(found[first] ?? null, keys.slice(1));
  }
  return found;
}

/** Room for a value along a path; null where it would stand. */
function placed(value: Json, path: readonly (string | number | null)[]): Json {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (typeof key !== "string") return [placed(Array.isArray(value) ? (value[0] ?? null) : null, rest)];
  const inner = value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
  return { ...inner, [key]: placed(inner[key] ?? null, rest) };
}
