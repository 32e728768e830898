import { CircleHelp, Columns3, Trash2 } from "lucide-react";
import { useEffect, useId, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode, Json, JsonObject } from "@/api/views";
import { helpForNode } from "@/components/helpPages";
import { IconButton, iconLook } from "@/components/IconButton";
import { NodeVerbs } from "@/features/trying/NodeVerbs";
import { textIn } from "@/i18n";
import type { Draft } from "../document/draft";
import { firstConfig } from "../document/palette";
import { configFields, type FieldShape, fieldsNamed } from "../document/shapes";
import { useEditor } from "../editorContext";
import { fieldStyle } from "../fields/boxes";
import { Field, Folded } from "../fields/Field";
import { pointerTo, useForm } from "../fields/fieldContext";
import { ElementProblems } from "./ElementProblems";
import { ResultNameField } from "./ResultNameField";

const DATA = ["inputs", "outputs"];
const RUN = [
  "execution",
  "skipWhen",
  "routing",
  "trigger",
  "requiresApproval",
  "approval",
  "compensate",
  "chatVisible",
  "progress",
  "placement",
];
/** Fields to show first, for common node types; for other types, the first ones in schema order. */
const FIRST: Readonly<Record<string, readonly string[]>> = {
  agent: ["prompt", "system", "tools", "outputSchema"],
  prompt: ["prompt", "system", "tools", "outputSchema"],
  human: ["message", "actions", "form", "approvers"],
  note: ["text", "color", "width", "height", "frame"],
};
const FIRST_MAX = 4;

/** Form of a node, with the fields of its type. */
export function NodeForm(props: {
  node: DefinitionNode;
  schema: JsonObject;
  draft: Draft;
  /** Show the data of past executions beside the form; absent where they are shown. */
  onShowData?: () => void;
}) {
  const { t } = useTranslation();
  const { node, schema, draft } = props;
  const { problems } = useForm();
  const at = pointerTo("/nodes", draft.shown.nodes.indexOf(node));
  const fields = useMemo(() => configFields(schema, node.type), [schema, node.type]);
  const own = useMemo(() => new Map(fieldsNamed(schema, "Node").map((one) => [one.name, one])), [schema]);
  const config = node.config ?? {};
  /** Notes never run. */
  const isNote = node.type === "note";
  const isSet = (field: FieldShape) => config[field.name] !== undefined && config[field.name] !== null;
  const first = FIRST[node.type];
  const isFirst = (field: FieldShape, nth: number) =>
    field.required || isSet(field) || (first ? first.includes(field.name) : nth < FIRST_MAX);
  // Required and filled fields come first; the order does not change while the user types.
  const [main] = useState(() => {
    const rank = (field: FieldShape) =>
      first?.includes(field.name) ? first.indexOf(field.name) - FIRST_MAX : field.required ? 0 : isSet(field) ? 1 : 2;
    return fields
      .filter(isFirst)
      .sort((a, b) => rank(a) - rank(b))
      .map((one) => one.name);
  });
  const change = (pointer: string) => (value: Json | undefined) =>
    draft.type(
      value === undefined
        ? { op: "change_node", node: node.id, remove: [pointer] }
        : { op: "change_node", node: node.id, set: { [pointer]: value } },
    );
  /** The initial arguments of a new node belong to its initial tool only. */
  const isDefaultConfig = (name: string) =>
    name === "tool" && JSON.stringify(config) === JSON.stringify(firstConfig(node.type));
  const configField = (field: FieldShape) => (
    <Field
      key={field.name}
      shape={field}
      value={config[field.name]}
      at={pointerTo(`${at}/config`, field.name)}
      beside={config}
      onChange={(value) => {
        const pointer = pointerTo("/config", field.name);
        if (value === undefined || !isDefaultConfig(field.name)) change(pointer)(value);
        else
          draft.type({ op: "change_node", node: node.id, set: { [pointer]: value }, remove: ["/config/parameters"] });
      }}
    />
  );
  const ownField = (name: string) => {
    const shape = own.get(name);
    const value = node[name] as Json | undefined;
    return shape ? (
      <Field key={name} shape={shape} value={value} at={pointerTo(at, name)} onChange={change(`/${name}`)} />
    ) : null;
  };
  const isWrongIn = (names: readonly string[]) =>
    problems.some((one) => names.some((name) => one.pointer.startsWith(`${at}/${name}`)));
  const setCount = (names: readonly string[]) => names.filter((name) => node[name] !== undefined).length;
  const more = fields.filter((field) => !main.includes(field.name));
  const rest = more.map((one) => `config/${one.name}`);
  return (
    <section aria-label={t("workflows.node")} className="space-y-3">
      <NodeHead node={node} draft={draft} at={at} {...(props.onShowData ? { onShowData: props.onShowData } : {})} />
      <NodeVerbs node={node} />
      <ElementProblems at={at} inside={["", "/id", "/type"]} />
      {isNote ? null : ownField("name")}
      {main.flatMap((name) => fields.find((one) => one.name === name) ?? []).map(configField)}
      {more.length > 0 ? (
        <Folded
          name={t("editor.more", { count: more.length })}
          count={more.filter(isSet).length}
          isWrong={isWrongIn(rest)}
        >
          <div className="space-y-3">{more.map(configField)}</div>
        </Folded>
      ) : null}
      {isNote ? null : (
        <>
          <ResultNameField node={node} onChange={change("/outputs")} />
          <Folded name={t("editor.data")} count={setCount(DATA)} isWrong={isWrongIn(DATA)} isOpen={setCount(DATA) > 0}>
            <div className="space-y-3">{DATA.map(ownField)}</div>
          </Folded>
        </>
      )}
      {isNote ? (
        <NodeId node={node} draft={draft} />
      ) : (
        <Folded name={t("editor.advanced")} count={setCount(RUN)} isWrong={isWrongIn(RUN)}>
          <div className="space-y-3">
            <NodeId node={node} draft={draft} />
            {ownField("description")}
            {RUN.map(ownField)}
          </div>
        </Folded>
      )}
    </section>
  );
}

/** Name and type of the node, with its help and the buttons that concern all of it. */
function NodeHead(props: { node: DefinitionNode; draft: Draft; at: string; onShowData?: () => void }) {
  const { t, i18n } = useTranslation();
  const { canvas } = useEditor();
  const { node, draft, at } = props;
  const isNote = node.type === "note";
  const kind = isNote && node.config?.frame === true ? "frame" : node.type;
  return (
    <div className="flex items-start gap-2" data-at={at}>
      <div className="min-w-0 flex-1">
        <h2 className="line-clamp-3 font-semibold wrap-anywhere">
          {isNote ? t(`node.${kind}`) : textIn(node.name, i18n.language, node.id)}
        </h2>
        {isNote ? null : <p className="text-ink-faint">{t(`node.${kind}`, kind)}</p>}
      </div>
      <a
        href={helpForNode(node.type)}
        target="_blank"
        rel="noreferrer"
        aria-label={t("editor.nodeHelp", { type: t(`node.${node.type}`, node.type) })}
        title={t("editor.nodeHelp", { type: t(`node.${node.type}`, node.type) })}
        className={iconLook()}
      >
        <CircleHelp className="size-4" aria-hidden />
      </a>
      {props.onShowData && !isNote ? (
        <IconButton icon={Columns3} name={t("editor.showData")} onClick={props.onShowData} />
      ) : null}
      <IconButton
        icon={Trash2}
        name={t("editor.remove")}
        onClick={() => {
          draft.act({ op: "remove_node", node: node.id });
          canvas.focus();
        }}
      />
    </div>
  );
}

const GOOD_ID = /^[^\s/~]{1,200}$/;

function NodeId({ node, draft }: { node: DefinitionNode; draft: Draft }) {
  const { t } = useTranslation();
  const { pick } = useEditor();
  const id = useId();
  const [text, setText] = useState(node.id);
  useEffect(() => setText(node.id), [node.id]);
  const isTaken = text !== node.id && draft.shown.nodes.some((one) => one.id === text);
  const isWrong = isTaken || !GOOD_ID.test(text);
  const rename = () => {
    if (text === node.id) return;
    if (isWrong) return setText(node.id);
    draft.act({ op: "rename_node", node: node.id, to: text });
    pick({ kind: "node", id: text });
  };
  return (
    <div>
      <label htmlFor={id} className="mb-0.5 block font-medium">
        {t("editor.nodeId")}
      </label>
      <input
        id={id}
        value={text}
        aria-invalid={isWrong}
        aria-describedby={`${id}-about`}
        onChange={(event) => setText(event.target.value)}
        onBlur={rename}
        onKeyDown={(event) => {
          if (event.key === "Enter") rename();
        }}
        className={`${fieldStyle(isWrong)} font-mono`}
      />
      <p id={`${id}-about`} className={`mt-0.5 text-xs ${isTaken ? "text-failed" : "text-ink-faint"}`}>
        {isTaken ? t("editor.idTaken") : t("editor.idAbout")}
      </p>
    </div>
  );
}
