import { useMutation } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import type { Failure, Json, JsonObject } from "@/api/views";
import { Card } from "@/components/DescriptionList";
import { ErrorDetail } from "@/components/ErrorDetail";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { Value } from "@/features/execution/Value";
import { textIn } from "@/i18n";
import { reachStep } from "./firstSteps";
import { type TemplateDetail, type TriedTemplate, tryTemplate } from "./templates";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));
const ANYTHING = { type: "object" };

/** Run a template with the answers of its script. */
export function TryTemplate({ template: one }: { template: TemplateDetail }) {
  const { t } = useTranslation();
  const mayTry = useHasRole("operator");
  const [input, setInput] = useState<Json>(one.input as Json);
  const run = useMutation<TriedTemplate, ApiError, Json>({
    mutationFn: (given) => tryTemplate(one.id, given),
    onSuccess: () => reachStep("try"),
  });
  if (!mayTry) return <p className="text-ink-soft">{t("templates.tryRole")}</p>;
  return (
    <Card>
      <Suspense fallback={<Loading />}>
        <SchemaForm
          schema={(one.inputSchema ?? ANYTHING) as JsonObject}
          value={input}
          onChange={setInput}
          onSubmit={(given) => run.mutate(given)}
          submit={t("templates.run")}
          busy={run.isPending}
        />
      </Suspense>
      <div aria-live="polite" className="mt-3 empty:hidden">
        {run.isError ? <ErrorMessage error={run.error} /> : null}
        {run.data ? <Outcome template={one} run={run.data} /> : null}
      </div>
    </Card>
  );
}

function Outcome({ template: one, run }: { template: TemplateDetail; run: TriedTemplate }) {
  const { t, i18n } = useTranslation();
  const names = new Map(one.nodes.map((node) => [node.id, textIn(node.name as never, i18n.language, node.id)]));
  const gates = run.waits.filter((wait) => wait.kind === "gate");
  return (
    <div className="space-y-3">
      <p className={`font-medium ${run.status === "completed" ? "text-done" : "text-failed"}`}>
        {t(`status.${run.status}`)}
      </p>
      <ol className="flex flex-wrap gap-x-1.5 gap-y-1 text-sm" aria-label={t("templates.path")}>
        {run.path.map((node, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a path visits a node several times
          <li key={at} className="flex items-center gap-1.5 not-last:after:text-ink-faint not-last:after:content-['→']">
            <bdi>{names.get(node) ?? node}</bdi>
          </li>
        ))}
      </ol>
      {gates.map((wait) => (
        <p key={`${wait.nodeId}`} className="text-ink-soft">
          {t("templates.gate", { node: names.get(String(wait.nodeId)) ?? wait.nodeId, action: wait.answered })}
        </p>
      ))}
      {run.output === null ? null : <Value value={run.output as Json} />}
      {run.status === "completed"
        ? null
        : (run.errors as unknown as Failure[]).map((why) => (
            <ErrorDetail key={why.message} code={why.code} message={why.message} hint={why.hint ?? ""} />
          ))}
    </div>
  );
}
