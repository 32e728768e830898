import { Trash2 } from "lucide-react";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Definition, DefinitionEdge, DefinitionNode, Json, JsonObject, Text } from "@/api/views";
import { Button } from "@/components/Button";
import { textIn } from "@/i18n";
import type { Draft } from "./draft";
import { Field } from "./Field";
import { configFields, type FieldShape } from "./language";
import { edgeNames } from "./operations";

const NAME: FieldShape = { name: "name", about: "", control: "text", choices: [], required: false };
const OUTPUTS: FieldShape = { name: "outputs", about: "", control: "json", choices: [], required: false };
const INPUTS: FieldShape = { ...OUTPUTS, name: "inputs" };
const CONDITIONS = ["always", "expression", "label", "default", "error", "llm", "never"] as const;
const ASKS: Record<string, string> = { expression: "expression", label: "label", llm: "prompt" };

/** What a node says, field by field, as its type takes it. */
export function NodeForm(props: { node: DefinitionNode; schema: JsonObject; draft: Draft }) {
  const { t, i18n } = useTranslation();
  const { node, draft } = props;
  const fields = useMemo(() => configFields(props.schema, node.type), [props.schema, node.type]);
  const config = node.config ?? {};
  const isSet = (field: FieldShape) => config[field.name] !== undefined && config[field.name] !== null;
  const main = fields.filter((field, at) => field.required || isSet(field) || at < 4);
  const more = fields.filter((field) => !main.includes(field));
  const change = (pointer: string) => (value: Json | undefined) =>
    draft.type(
      value === undefined
        ? { op: "change_node", node: node.id, remove: [pointer] }
        : { op: "change_node", node: node.id, set: { [pointer]: value } },
    );
  return (
    <section aria-label={t("workflows.node")} className="space-y-3">
      <div className="flex items-start gap-2">
        <div className="min-w-0 flex-1">
          <h2 className="font-semibold break-words">{textIn(node.name, i18n.language, node.id)}</h2>
          <p className="text-ink-faint">
            {t(`node.${node.type}`, node.type)} · <span className="font-mono text-xs">{node.id}</span>
          </p>
        </div>
        <Button
          kind="quiet"
          onClick={() => draft.act({ op: "remove_node", node: node.id })}
          aria-label={t("editor.remove")}
          title={t("editor.remove")}
        >
          <Trash2 className="size-4" />
        </Button>
      </div>
      <Field
        shape={{ ...NAME, about: t("editor.nameAbout") }}
        value={node.name as Text as Json}
        onChange={change("/name")}
      />
      {main.map((field) => (
        <Field key={field.name} shape={field} value={config[field.name]} onChange={change(`/config/${field.name}`)} />
      ))}
      <Field
        shape={{ ...INPUTS, about: t("editor.inputsAbout") }}
        value={node.inputs as Json | undefined}
        onChange={change("/inputs")}
      />
      <Field
        shape={{ ...OUTPUTS, about: t("editor.outputsAbout") }}
        value={node.outputs as Json | undefined}
        onChange={change("/outputs")}
      />
      {more.length > 0 ? (
        <details>
          <summary className="cursor-pointer font-medium text-ink-soft">
            {t("editor.more", { count: more.length })}
          </summary>
          <div className="mt-3 space-y-3">
            {more.map((field) => (
              <Field
                key={field.name}
                shape={field}
                value={config[field.name]}
                onChange={change(`/config/${field.name}`)}
              />
            ))}
          </div>
        </details>
      ) : null}
    </section>
  );
}

/** When an edge is taken. */
export function EdgeForm(props: { name: string; definition: Definition; draft: Draft }) {
  const { t } = useTranslation();
  const { name, definition, draft } = props;
  const edge = definition.edges[edgeNames(definition.edges).indexOf(name)] as DefinitionEdge | undefined;
  if (!edge) return null;
  const kind = String(edge.condition?.type ?? "always");
  const asks = ASKS[kind];
  const set = (condition: JsonObject | null) =>
    draft.type(
      condition === null
        ? { op: "change_edge", edge: name, remove: ["/condition"] }
        : { op: "change_edge", edge: name, set: { "/condition": condition } },
    );
  return (
    <section aria-label={t("editor.edge")} className="space-y-3">
      <div className="flex items-start gap-2">
        <h2 className="min-w-0 flex-1 font-semibold break-words">
          {edge.source} → {edge.target}
        </h2>
        <Button
          kind="quiet"
          onClick={() => draft.act({ op: "disconnect", edge: name })}
          aria-label={t("editor.removeEdge")}
          title={t("editor.removeEdge")}
        >
          <Trash2 className="size-4" />
        </Button>
      </div>
      <label className="block font-medium">
        {t("editor.taken")}
        <select
          value={kind}
          onChange={(event) => {
            const next = event.target.value;
            const field = ASKS[next];
            set(next === "always" ? null : { type: next, ...(field ? { [field]: "" } : {}) });
          }}
          className="mt-0.5 w-full rounded-md border border-line-strong bg-surface px-2 py-1.5 font-normal"
        >
          {[...new Set([...CONDITIONS, kind])].map((one) => (
            <option key={one} value={one}>
              {t(`condition.${one}`, one)}
            </option>
          ))}
        </select>
      </label>
      {asks ? (
        <Field
          shape={{ name: asks, about: t(`conditionAbout.${kind}`, ""), control: "text", choices: [], required: true }}
          value={edge.condition?.[asks]}
          onChange={(value) => set({ ...edge.condition, type: kind, [asks]: value ?? "" })}
        />
      ) : null}
    </section>
  );
}
