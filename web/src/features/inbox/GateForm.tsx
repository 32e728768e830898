import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Clock } from "lucide-react";
import { lazy, Suspense, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { type GateAnswer, respond } from "@/api/queries";
import type { Execution, Gate, GateOption, Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { ago } from "@/components/instants";
import { Failed, Loading } from "@/components/Told";
import { textIn } from "@/i18n";
import { Value } from "../execution/Value";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** What a person is asked, and the ways to answer. */
export function GateForm(props: { execution: string; gate: Gate; onDone?: () => void }) {
  const { t, i18n } = useTranslation();
  const { gate } = props;
  const client = useQueryClient();
  const name = useId();
  const [comment, setComment] = useState("");
  const [form, setForm] = useState<Json>({});
  const [edits, setEdits] = useState<Record<string, string>>({});
  const answer = useMutation<Execution, ApiError, GateAnswer>({
    mutationFn: (given) => respond(props.execution, given),
    onSuccess: (next) => {
      client.setQueryData(["execution", props.execution], next);
      void client.invalidateQueries({ queryKey: ["inbox"] });
      props.onDone?.();
    },
  });

  function labelOf(option: GateOption): string {
    const label = textIn(option.label, i18n.language, option.value);
    return label === option.value ? t(`action.${option.value}`, option.value) : label;
  }

  function say(action: string) {
    const data =
      action === "edit" || Object.keys(edits).length > 0 ? edited(gate, edits, form) : gate.form ? form : null;
    answer.mutate({
      gateId: gate.gateId,
      action,
      ...(data === null ? {} : { data }),
      ...(comment ? { comment } : {}),
    });
  }

  return (
    <section aria-labelledby={name}>
      <h2 id={name} className="font-semibold break-words">
        {textIn(gate.message, i18n.language, gate.nodeId)}
      </h2>
      <p className="flex flex-wrap gap-x-3 text-xs text-ink-faint">
        <span className="font-mono">{gate.step}</span>
        {gate.deadline ? (
          <span className="flex items-center gap-1 text-waiting">
            <Clock className="size-3" /> {t("gate.deadline", { when: ago(gate.deadline, i18n.language) })}
          </span>
        ) : null}
        {gate.approvers && gate.approvers.quorum > 1 ? (
          <span>{t("gate.quorum", { votes: gate.votes.length, quorum: gate.approvers.quorum })}</span>
        ) : null}
        {gate.approvers?.groups ? <span>{gate.approvers.groups.join(", ")}</span> : null}
      </p>
      {gate.about === "node" ? null : <Value value={gate.about} />}
      {isThere(gate.shown) ? (
        <dl className="mt-2 space-y-2">
          {Object.entries(gate.shown).map(([path, value]) => (
            <div key={path}>
              <dt className="font-mono text-xs text-ink-soft">{path}</dt>
              <dd>
                {gate.editable.includes(path) ? (
                  <textarea
                    value={edits[path] ?? asText(value)}
                    onChange={(event) => setEdits({ ...edits, [path]: event.target.value })}
                    aria-label={t("gate.edit", { path })}
                    rows={Math.min(12, Math.max(3, asText(value).split("\n").length))}
                    className="w-full rounded-md border border-line-strong bg-surface p-2 text-sm"
                  />
                ) : (
                  <Value value={value} />
                )}
              </dd>
            </div>
          ))}
        </dl>
      ) : null}
      {gate.form ? (
        <div className="mt-3">
          <Suspense fallback={<Loading />}>
            <SchemaForm schema={gate.form} value={form} onChange={setForm} busy={answer.isPending} />
          </Suspense>
        </div>
      ) : null}
      <label className="mt-3 block text-sm text-ink-soft">
        {t("gate.comment")}
        <input
          value={comment}
          onChange={(event) => setComment(event.target.value)}
          className="mt-1 h-8 w-full rounded-md border border-line-strong bg-surface px-2 text-ink"
        />
      </label>
      <div className="mt-3 flex flex-wrap gap-2">
        {gate.options.map((option, at) => (
          <Button
            key={option.value}
            kind={at === 0 ? "primary" : option.value === "reject" ? "danger" : "plain"}
            disabled={answer.isPending}
            onClick={() => say(option.value)}
          >
            {labelOf(option)}
          </Button>
        ))}
      </div>
      {answer.isError ? (
        <div className="mt-3">
          <Failed why={answer.error} />
        </div>
      ) : null}
    </section>
  );
}

function isThere(shown: Json): shown is JsonObject {
  return shown !== null && typeof shown === "object" && !Array.isArray(shown);
}

function asText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** The fields that were changed, as they were before: text stays text, the rest is read as JSON. */
function edited(gate: Gate, edits: Record<string, string>, form: Json): Json {
  const found: JsonObject = form !== null && typeof form === "object" && !Array.isArray(form) ? { ...form } : {};
  const shown = isThere(gate.shown) ? gate.shown : {};
  for (const [path, text] of Object.entries(edits)) {
    if (typeof shown[path] === "string") found[path] = text;
    else {
      try {
        found[path] = JSON.parse(text) as Json;
      } catch {
        found[path] = text;
      }
    }
  }
  return found;
}
