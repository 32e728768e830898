/**
 * Conditions as rows of field, operator and value. An expression that rows cannot represent is left as it is:
 * `readCondition` returns null for it.
 */
import type { Json } from "@/api/views";
import type { Name } from "./formulaScope";

export type Operator =
  | "eq"
  | "ne"
  | "lt"
  | "le"
  | "gt"
  | "ge"
  | "contains"
  | "lacks"
  | "isTrue"
  | "isFalse"
  | "isEmpty"
  | "isSet";

export interface ConditionRow {
  path: string;
  operator: Operator;
  /** Undefined for operators without a value. */
  value?: Json;
}

export interface Condition {
  /** How the rows are joined. */
  join: "and" | "or";
  rows: ConditionRow[];
}

const SIGNS = { eq: "==", ne: "!=", lt: "<", le: "<=", gt: ">", ge: ">=" } as const;
const OPERATOR_OF = new Map<string, Operator>(Object.entries(SIGNS).map(([name, sign]) => [sign, name as Operator]));
const VALUELESS: ReadonlySet<Operator> = new Set(["isTrue", "isFalse", "isEmpty", "isSet"]);
export const takesValue = (operator: Operator): boolean => !VALUELESS.has(operator);

const PATH = String.raw`(?:[\p{L}_][\p{L}\p{N}_]*)(?:\.[\p{L}_][\p{L}\p{N}_]*|\[\d+\]|\["[^"\\]*"\])*`;
const LITERAL = String.raw`"(?:[^"\\]|\\["\\/bfnrtu])*"|'[^'\\]*'|-?\d+(?:\.\d+)?|true|false|null`;
const COMPARED = new RegExp(`^(${PATH})\\s*(==|!=|<=|>=|<|>)\\s*(${LITERAL})$`, "u");
const CONTAINED = new RegExp(`^(${LITERAL})\\s+(in|not in)\\s+(${PATH})$`, "u");
const BARE = new RegExp(`^(not\\s+)?(${PATH})$`, "u");
const WORDS = new Set(["and", "or", "not", "in", "is", "true", "false", "null"]);

export function readCondition(expression: string): Condition | null {
  const text = expression.trim();
  if (text === "") return { join: "and", rows: [] };
  for (const join of ["and", "or"] as const) {
    const rows = partsOf(text, join).map(rowOf);
    if (rows.every((row) => row !== null)) return { join, rows };
  }
  return null;
}

/** Split at the word, except inside quotes. */
function partsOf(text: string, word: "and" | "or"): string[] {
  const parts = [""];
  for (const piece of text.match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\s+(?:and|or)\s+|[^"'\s]+|\s+|["']/g) ?? [])
    if (piece.trim() === word) parts.push("");
    else parts[parts.length - 1] += piece;
  return parts.map((part) => part.trim());
}

function rowOf(text: string): ConditionRow | null {
  const compared = COMPARED.exec(text);
  if (compared) {
    const [, path = "", sign = "", literal = ""] = compared;
    const value = literalOf(literal);
    if (WORDS.has(path)) return null;
    if (value === null && sign === "==") return { path, operator: "isEmpty" };
    if (value === null && sign === "!=") return { path, operator: "isSet" };
    return { path, operator: OPERATOR_OF.get(sign) as Operator, value };
  }
  const contained = CONTAINED.exec(text);
  if (contained) {
    const [, literal = "", word, path = ""] = contained;
    return { path, operator: word === "in" ? "contains" : "lacks", value: literalOf(literal) };
  }
  const [, not, path = ""] = BARE.exec(text) ?? [];
  return path && !WORDS.has(path) ? { path, operator: not ? "isFalse" : "isTrue" } : null;
}

function literalOf(text: string): Json {
  return text.startsWith("'") ? text.slice(1, -1) : (JSON.parse(text) as Json);
}

export function writeCondition({ join, rows }: Condition): string {
  return rows.map(rowText).join(` ${join} `);
}

function rowText({ path, operator, value = "" }: ConditionRow): string {
  switch (operator) {
    case "contains":
      return `${JSON.stringify(value)} in ${path}`;
    case "lacks":
      return `${JSON.stringify(value)} not in ${path}`;
    case "isTrue":
      return path;
    case "isFalse":
      return `not ${path}`;
    case "isEmpty":
      return `${path} == null`;
    case "isSet":
      return `${path} != null`;
    default:
      return `${path} ${SIGNS[operator]} ${JSON.stringify(value)}`;
  }
}

export interface KnownPath {
  path: string;
  type: string;
  label: string;
}

const DEPTH_MAX = 3;
const ROOTS_WITHOUT_MEMBERS = new Set(["state", "config", "execution", "session"]);

/** All paths that a condition can compare: fields, then results of nodes. */
export function knownPaths(names: readonly Name[]): KnownPath[] {
  const found = new Map<string, KnownPath>();
  const visit = (one: Name, path: string, label: string, depth: number) => {
    if (depth > 0 || !(one.name === "nodes" || one.name === "input" || ROOTS_WITHOUT_MEMBERS.has(one.name)))
      found.set(path, { path, type: one.type, label });
    if (depth < DEPTH_MAX)
      for (const member of one.members) {
        const isPlain = /^[\p{L}_][\p{L}\p{N}_]*$/u.test(member.name);
        visit(
          member,
          isPlain ? `${path}.${member.name}` : `${path}["${member.name}"]`,
          `${depth === 0 && one.name === "nodes" ? "" : `${label} › `}${member.label ?? member.name}`,
          depth + 1,
        );
      }
  };
  for (const one of names) if (!ROOTS_WITHOUT_MEMBERS.has(one.name)) visit(one, one.name, one.label ?? one.name, 0);
  return [...found.values()].filter((one) => !/^input\./.test(one.path) || !found.has(one.path.slice(6)));
}

/** Operators for a type of field; all of them if the type is not known. */
export function operatorsFor(type: string): readonly Operator[] {
  if (type === "boolean") return ["isTrue", "isFalse", "isEmpty", "isSet"];
  if (type === "number" || type === "integer") return ["eq", "ne", "lt", "le", "gt", "ge", "isEmpty", "isSet"];
  if (type === "string") return ["eq", "ne", "contains", "lacks", "isEmpty", "isSet"];
  if (type === "array" || type === "object") return ["contains", "lacks", "isTrue", "isFalse", "isEmpty", "isSet"];
  return ["eq", "ne", "lt", "le", "gt", "ge", "contains", "lacks", "isTrue", "isFalse", "isEmpty", "isSet"];
}
