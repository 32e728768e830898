import { ArrowDown, ArrowUp, Trash2 } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionEdge, DefinitionNode, Json, JsonObject } from "@/api/views";
import { IconButton } from "@/components/IconButton";
import { edgeNames } from "@/graph/model/edgeNames";
import { useNodeName } from "@/graph/model/nodeNames";
import { answersOf, outcomeOf } from "@/graph/model/outcomes";
import type { Draft } from "../document/draft";
import { fieldsNamed } from "../document/shapes";
import { useEditor } from "../editorContext";
import { Field, Folded } from "../fields/Field";
import { pointerTo } from "../fields/fieldContext";
import { ElementProblems } from "./ElementProblems";
import { CONDITION_SCHEMAS, OutcomeSelect } from "./OutcomeSelect";
import { TimeLimit } from "./TimeLimit";

const OWN = ["label", "mark"];

/** Form of an edge: which outcome of its source it follows, or under which condition it is followed. */
export function EdgeForm(props: { name: string; edge: DefinitionEdge; schema: JsonObject; draft: Draft }) {
  const { t } = useTranslation();
  const { name, edge, schema, draft } = props;
  const nameOf = useNodeName();
  const { canvas } = useEditor();
  const id = useId();
  const at = pointerTo("/edges", draft.shown.edges.indexOf(edge));
  const source = draft.shown.nodes.find((one) => one.id === edge.source);
  const change = (pointer: string, value: Json | undefined) =>
    draft.type(
      value === undefined
        ? { op: "change_edge", edge: name, remove: [pointer] }
        : { op: "change_edge", edge: name, set: { [pointer]: value } },
    );
  const own = fieldsNamed(schema, "Edge").filter((field) => OWN.includes(field.name));
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
      {source ? (
        <div data-at={`${at}/condition`}>
          <label htmlFor={id} className="mb-0.5 block font-medium">
            {t("editor.taken")}
          </label>
          <OutcomeSelect
            id={id}
            edge={edge}
            source={source}
            schema={schema}
            definition={draft.shown}
            onChange={(condition) => change("/condition", condition)}
          />
          <ElementProblems at={at} inside={["", "/condition", "/condition/type", "/label"]} />
        </div>
      ) : null}
      {source ? <ConditionFields edge={edge} source={source} schema={schema} at={at} onChange={change} /> : null}
      <EdgeOrder name={name} edge={edge} draft={draft} />
      <Folded
        name={t("editor.more", { count: own.length })}
        count={own.filter((field) => edge[field.name] !== undefined).length}
        isWrong={false}
      >
        <div className="space-y-3">
          {own.map((field) => (
            <Field
              key={field.name}
              shape={field}
              value={edge[field.name] as Json | undefined}
              at={pointerTo(at, field.name)}
              onChange={(value) => change(`/${field.name}`, value)}
            />
          ))}
        </div>
      </Folded>
    </section>
  );
}

/** Fields of the condition, and the time limit whose end the edge follows. */
function ConditionFields(props: {
  edge: DefinitionEdge;
  source: DefinitionNode;
  schema: JsonObject;
  at: string;
  onChange: (pointer: string, value: Json | undefined) => void;
}) {
  const { t } = useTranslation();
  const { draft } = useEditor();
  const { edge, source, schema, at, onChange } = props;
  const kind = String(edge.condition?.type ?? "always");
  const outcome = outcomeOf(edge, source);
  if (outcome.kind === "timeout") return <TimeLimit node={source} />;
  const isKnown = answersOf(source, draft.shown)?.includes(outcome.label) ?? false;
  if (outcome.kind === "answer" && isKnown) return <ElementProblems at={at} inside={["/condition/label"]} />;
  return fieldsNamed(schema, CONDITION_SCHEMAS[kind] ?? "Always")
    .filter((field) => field.name !== "type")
    .map((field) => (
      <Field
        key={`${kind} ${field.name}`}
        shape={{ ...field, about: field.about || t(`conditionAbout.${kind}`, "") }}
        value={edge.condition?.[field.name]}
        at={`${at}/condition/${field.name}`}
        onChange={(value) => onChange("/condition", { ...edge.condition, type: kind, [field.name]: value ?? "" })}
      />
    ));
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
