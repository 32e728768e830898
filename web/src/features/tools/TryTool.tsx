import { useMutation } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import type { Json, JsonObject } from "@/api/views";
import { Card } from "@/components/DescriptionList";
import { ErrorDetail, ServerText } from "@/components/ErrorDetail";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { Value } from "@/features/execution/Value";
import { type Tool, type TriedTool, tryTool } from "./tools";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** Call a tool once with arguments that the user enters. The call is real. */
export function TryTool({ tool }: { tool: Tool }) {
  const { t } = useTranslation();
  const mayTry = useHasRole("editor");
  if (!tool.enabled)
    return (
      <p className="text-ink-soft">
        {t("tools.tryOff")} <ServerText text={tool.off ?? ""} look="" />
      </p>
    );
  const why = tool.requiresApproval
    ? t("tools.approvalWhy")
    : tool.side === "client"
      ? t("tools.clientWhy")
      : mayTry
        ? null
        : t("tools.roleWhy");
  if (why !== null) return <p className="text-ink-soft">{t("tools.tryOnly", { why })}</p>;
  return (
    <Card>
      <p className="mb-3 text-ink-soft">{t("tools.tryAbout")}</p>
      <ToolCallForm schema={tool.parameters as JsonObject} call={(given) => tryTool(tool.name, given)} />
    </Card>
  );
}

/** The arguments of a tool as a form, and the answer of the call. */
export function ToolCallForm(props: { schema: JsonObject; call: (given: JsonObject) => Promise<TriedTool> }) {
  const { t } = useTranslation();
  const [given, setGiven] = useState<Json>({});
  const call = useMutation<TriedTool, ApiError, JsonObject>({ mutationFn: props.call });
  return (
    <>
      <Suspense fallback={<Loading />}>
        <SchemaForm
          schema={props.schema}
          value={given}
          onChange={setGiven}
          onSubmit={(said) => call.mutate((said ?? {}) as JsonObject)}
          submit={t("tools.call")}
          busy={call.isPending}
        />
      </Suspense>
      <div aria-live="polite" className="mt-3 empty:hidden">
        {call.isError ? <ErrorMessage error={call.error} /> : null}
        {call.data ? <Answer result={call.data} /> : null}
      </div>
    </>
  );
}

function Answer({ result }: { result: TriedTool }) {
  const { t } = useTranslation();
  if (result.ok)
    return (
      <>
        <p className="mb-1 font-medium text-done">{t("tools.result")}</p>
        <Value value={result.result as Json} />
      </>
    );
  return (
    <div className="rounded-md border border-failed/40 bg-failed-soft p-3">
      <p className="font-medium text-failed">{t("tools.failed", { code: result.failure?.code ?? "" })}</p>
      <ErrorDetail
        code={result.failure?.code ?? ""}
        message={result.failure?.message ?? ""}
        hint={result.failure?.hint ?? ""}
      />
    </div>
  );
}
