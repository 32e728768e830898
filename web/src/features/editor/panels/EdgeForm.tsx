import { ArrowDown, ArrowUp, Trash2 } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionEdge, Json, JsonObject } from "@/api/views";
import { IconButton } from "@/components/IconButton";
import { edgeNames } from "@/graph/model/edgeNames";
import { useNodeName } from "@/graph/model/nodeNames";
import type { Draft } from "../document/draft";
import { fieldsNamed } from "../document/shapes";
import { useEditor } from "../editorContext";
import { fieldStyle } from "../fields/boxes";
import { Field } from "../fields/Field";
import { pointerTo } from "../fields/fieldContext";

/** Condition types and the names of their schemas. */
const CONDITIONS = {
  always: "Always",
  expression: "When",
  label: "OnLabel",
  equals: "Equals",
  contains: "Contains",
  exists: "Exists",
  default: "Otherwise",
  error: "OnError",
  llm: "AskModel",
  never: "Never",
} as const;
const OWN = ["label", "mark"];

/** Form of an edge: when it is taken. */
export function EdgeForm(props: { name: string; edge: DefinitionEdge; schema: JsonObject; draft: Draft }) {
  const { t } = useTranslation();
  const { name, edge, schema, draft } = props;
  const nameOf = useNodeName();
  const { canvas } = useEditor();
  const id = useId();
  const at = pointerTo("/edges", draft.shown.edges.indexOf(edge));
  const kind = String(edge.condition?.type ?? "always");
  const fieldsFor = (one: string) =>
    fieldsNamed(schema, CONDITIONS[one as keyof typeof CONDITIONS] ?? "Always").filter(
      (field) => field.name !== "type",
    );
  const change = (pointer: string, value: Json | undefined) =>
    draft.type(
      value === undefined
        ? { op: "change_edge", edge: name, remove: [pointer] }
        : { op: "change_edge", edge: name, set: { [pointer]: value } },
    );
  const choose = (next: string) => {
    const required = fieldsFor(next).filter((field) => field.required);
    const fields = Object.fromEntries(required.map((field) => [field.name, edge.condition?.[field.name] ?? ""]));
    change("/condition", next === "always" ? undefined : { type: next, ...fields });
  };
  return (
    <section aria-label={t("editor.edge")} className="space-y-3">
      <div className="flex items-start gap-2" data-at={at}>
        <h2 className="line-clamp-3 min-w-0 flex-1 font-semibold wrap-anywhere">
          <bdi>{nameOf(edge.source)}</bdi> → <bdi>{nameOf(edge.target)}</bdi>
        </h2>
        <IconButton
          icon={Trash2}
          name={t("editor.removeEdge")}
          onClick={() => {
            draft.act({ op: "disconnect", edge: name });
            canvas.focus();
          }}
        />
      </div>
      <div data-at={`${at}/condition`}>
        <label htmlFor={id} className="mb-0.5 block font-medium">
          {t("editor.taken")}
        </label>
        <select id={id} value={kind} onChange={(event) => choose(event.target.value)} className={fieldStyle(false)}>
          {[...new Set([...Object.keys(CONDITIONS), kind])].map((one) => (
            <option key={one} value={one}>
              {t(`condition.${one}`, one)}
            </option>
          ))}
        </select>
      </div>
      {fieldsFor(kind).map((field) => (
        <Field
          key={`${kind} ${field.name}`}
          shape={{ ...field, about: field.about || t(`conditionAbout.${kind}`, "") }}
          value={edge.condition?.[field.name]}
          at={`${at}/condition/${field.name}`}
          onChange={(value) => change("/condition", { ...edge.condition, type: kind, [field.name]: value ?? "" })}
        />
      ))}
      <EdgeOrder name={name} edge={edge} draft={draft} />
      {fieldsNamed(schema, "Edge")
        .filter((field) => OWN.includes(field.name))
        .map((field) => (
          <Field
            key={field.name}
            shape={field}
            value={edge[field.name] as Json | undefined}
            at={pointerTo(at, field.name)}
            onChange={(value) => change(`/${field.name}`, value)}
          />
        ))}
    </section>
  );
}

/** Order in which the outgoing edges of a node are evaluated. */
function EdgeOrder({ name, edge, draft }: { name: string; edge: DefinitionEdge; draft: Draft }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  const names = edgeNames(draft.shown.edges);
  const beside = names.filter((_, at) => draft.shown.edges[at]?.source === edge.source);
  const nth = beside.indexOf(name);
  if (beside.length < 2) return null;
  const swap = (other: string | undefined) => {
    if (other === undefined) return;
    const order = names.map((one) => (one === name ? other : one === other ? name : one));
    draft.act({ op: "order_edges", edges: order });
  };
  return (
    <div className="flex items-center gap-1 text-sm text-ink-soft">
      <span className="flex-1">
        {t("editor.order", { node: nameOf(edge.source), nth: nth + 1, count: beside.length })}
      </span>
      <IconButton
        icon={ArrowUp}
        name={t("editor.earlier")}
        disabled={nth === 0}
        onClick={() => swap(beside[nth - 1])}
      />
      <IconButton
        icon={ArrowDown}
        name={t("editor.later")}
        disabled={nth === beside.length - 1}
        onClick={() => swap(beside[nth + 1])}
      />
    </div>
  );
}
