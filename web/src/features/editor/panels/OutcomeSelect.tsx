/** Choose when an edge is followed: after one of the known outcomes of its source, or under a condition. */
import { useTranslation } from "react-i18next";
import type { Definition, DefinitionEdge, DefinitionNode, Json, JsonObject } from "@/api/views";
import { answersOf, conditionFor, outcomeOf, outcomesOf } from "@/graph/model/outcomes";
import { outcomeName } from "@/graph/model/picture";
import { fieldsNamed } from "../document/shapes";
import { fieldStyle } from "../fields/boxes";

/** Types of conditions, and the names of their schemas. */
export const CONDITION_SCHEMAS: Readonly<Record<string, string>> = {
  expression: "When",
  label: "OnLabel",
  equals: "Equals",
  contains: "Contains",
  exists: "Exists",
  error: "OnError",
  default: "Otherwise",
  llm: "AskModel",
  never: "Never",
};
/** Conditions that are offered last; others are shown where a document has them. */
const LAST = ["llm", "never"];
const ALWAYS = "other";
const CONDITION = "expression";

export function OutcomeSelect(props: {
  id: string;
  edge: DefinitionEdge;
  source: DefinitionNode;
  schema: JsonObject;
  definition: Definition;
  onChange: (condition: Json | undefined) => void;
}) {
  const { t, i18n } = useTranslation();
  const { id, edge, source, schema, definition, onChange } = props;
  const known = answersOf(source, definition);
  const all = outcomesOf(source, definition);
  const answers = all.filter((one) => one.kind === "answer" && known?.includes(one.label));
  const exits = all.filter((one) => one.kind === "default" || one.kind === "timeout" || one.kind === "error");
  const current = outcomeOf(edge, source);
  const kind = String(edge.condition?.type ?? "always");
  const chosen = [...answers, ...exits].some((one) => one.id === current.id)
    ? current.id
    : kind === "always"
      ? ALWAYS
      : kind;
  const others = [...new Set([...LAST, ...(known ? [] : ["label"]), ...(chosen === kind ? [kind] : [])])].filter(
    (one) => one !== CONDITION,
  );
  const choose = (next: string) => {
    const outcome = [...answers, ...exits].find((one) => one.id === next);
    if (outcome) return onChange(conditionFor(outcome, source));
    if (next === ALWAYS) return onChange(undefined);
    const required = fieldsNamed(schema, CONDITION_SCHEMAS[next] ?? "").filter(
      (field) => field.required && field.name !== "type",
    );
    const fields = Object.fromEntries(required.map((field) => [field.name, edge.condition?.[field.name] ?? ""]));
    onChange({ type: next, ...fields });
  };
  return (
    <select id={id} value={chosen} onChange={(event) => choose(event.target.value)} className={fieldStyle(false)}>
      {answers.length > 0 ? (
        <optgroup label={t("editor.answers")}>
          {answers.map((one) => (
            <option key={one.id} value={one.id}>
              {outcomeName(one, source, i18n.language, t)}
            </option>
          ))}
        </optgroup>
      ) : null}
      <option value={ALWAYS}>{t("condition.always")}</option>
      <option value={CONDITION}>{t(`condition.${CONDITION}`)}</option>
      {exits.map((one) => (
        <option key={one.id} value={one.id}>
          {outcomeName(one, source, i18n.language, t)}
        </option>
      ))}
      {others.map((one) => (
        <option key={one} value={one}>
          {t(`condition.${one}`, one)}
        </option>
      ))}
    </select>
  );
}
