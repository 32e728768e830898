import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { textIn } from "@/i18n";
import type { Draft } from "../document/draft";
import { type FieldShape, fieldsNamed, objectOf } from "../document/shapes";
import { Field, Folded } from "../fields/Field";
import { useForm } from "../fields/fieldContext";

const FIRST = ["name", "description", "tags", "input", "output"];
const MORE = [
  "version",
  "status",
  "entry",
  "onError",
  "allowedGroups",
  "strict",
  "state",
  "agents",
  "triggers",
  "concurrency",
  "chatIntegration",
];

/** Fields of the workflow itself, without nodes and edges. */
export function WorkflowForm({ schema, draft }: { schema: JsonObject; draft: Draft }) {
  const { t, i18n } = useTranslation();
  const { problems } = useForm();
  const shapes = useMemo(() => new Map(fieldsNamed(schema, "").map((one) => [one.name, one])), [schema]);
  const settings = useMemo(() => fieldsNamed(schema, "Config"), [schema]);
  const definition = draft.shown;
  const config = objectOf(definition.config as Json | undefined);
  const change = (pointer: string) => (value: Json | undefined) =>
    draft.type(
      value === undefined
        ? { op: "change_workflow", remove: [pointer] }
        : { op: "change_workflow", set: { [pointer]: value } },
    );
  const field = (shape: FieldShape | undefined, value: Json | undefined, at: string) =>
    shape ? <Field key={at} shape={shape} value={value} at={at} onChange={change(at)} /> : null;
  const own = (name: string) => field(shapes.get(name), definition[name] as Json | undefined, `/${name}`);
  const isWrongIn = (names: readonly string[]) =>
    problems.some((one) => names.some((name) => one.pointer.startsWith(`/${name}`)));
  return (
    <section aria-label={t("editor.workflow")} className="space-y-3">
      <p className="text-ink-soft">{t("editor.pick")}</p>
      <h2 className="line-clamp-3 font-semibold wrap-anywhere">
        {textIn(definition.name, i18n.language, definition.id)}
      </h2>
      {FIRST.map(own)}
      <Folded name={t("editor.workflowLimits")} count={Object.keys(config).length} isWrong={isWrongIn(["config"])}>
        <div className="space-y-3">{settings.map((one) => field(one, config[one.name], `/config/${one.name}`))}</div>
      </Folded>
      <Folded
        name={t("editor.workflowMore")}
        count={MORE.filter((name) => definition[name] !== undefined).length}
        isWrong={isWrongIn(MORE)}
      >
        <div className="space-y-3">{MORE.map(own)}</div>
      </Folded>
    </section>
  );
}
