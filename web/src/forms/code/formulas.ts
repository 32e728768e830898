/** Requests that check or evaluate one formula. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest } from "@/api/http";
import type { Json, JsonObject, Schemas } from "@/api/views";
import type { FormulaScope } from "@/features/editor/document/formulaScope";
import type { FormulaSyntax } from "@/features/editor/document/shapes";

export type CheckedFormula = Schemas["CheckedFormula"];
export type EvaluatedFormula = Schemas["EvaluatedFormula"];

export const functionsOfLanguage = () =>
  queryOptions({
    queryKey: ["expressions", "functions"],
    queryFn: ({ signal }) => apiRequest<Schemas["LanguageFunctions"]>("/api/expressions/functions", { signal }),
    select: (response) => response.functions,
    staleTime: Number.POSITIVE_INFINITY,
  });

export function checkFormula(
  text: string,
  spelled: FormulaSyntax,
  known: FormulaScope,
  signal?: AbortSignal,
): Promise<CheckedFormula> {
  const body = { text, kind: spelled, dialect: known.dialect, names: known.localNames, schemas: known.schemas };
  return apiRequest<CheckedFormula>("/api/expressions/check", { body, ...(signal ? { signal } : {}) });
}

export function evaluateFormula(
  text: string,
  spelled: FormulaSyntax,
  known: FormulaScope,
  values: JsonObject,
  signal?: AbortSignal,
): Promise<EvaluatedFormula> {
  const body = { text, kind: spelled, dialect: known.dialect, names: known.localNames, values };
  return apiRequest<EvaluatedFormula>("/api/expressions/evaluate", { body, ...(signal ? { signal } : {}) });
}

/** Convert an offset in characters, as the server counts, to UTF-16 code units. */
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

/** Values for trying a formula: the names that it reads, filled from `sample` where available. */
export function valuesFor(reads: CheckedFormula["reads"], sample: JsonObject): JsonObject {
  const found: JsonObject = {};
  for (const { root, path } of reads) {
    const keys = (root === "state" || root === "" ? [...path] : [root, ...path]) as (string | number | null)[];
    const first = keys[0];
    if (typeof first !== "string" || root === "config") continue;
    const known = sample[first];
    found[first] = known !== undefined ? known : withPath(found[first] ?? null, keys.slice(1));
  }
  return found;
}

/** A value nested along a path, with null at its end. */
function withPath(value: Json, path: readonly (string | number | null)[]): Json {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (typeof key !== "string") return [withPath(Array.isArray(value) ? (value[0] ?? null) : null, rest)];
  const inner = value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
  return { ...inner, [key]: withPath(inner[key] ?? null, rest) };
}
