import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { definition, start } from "@/api/queries";
import type { Json } from "@/api/views";
import { Dialog } from "@/components/Dialog";
import { Failed, Loading } from "@/components/Told";
import { textIn } from "@/i18n";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** Asks for what the workflow's input schema takes, and starts it. */
export function StartDialog(props: { workflow: string; onClose: () => void }) {
  const { t, i18n } = useTranslation();
  const navigate = useNavigate();
  const known = useQuery(definition(props.workflow));
  // One key for one dialog: pressing twice starts once.
  const key = useMemo(() => crypto.randomUUID(), []);
  const [input, setInput] = useState<Json>({});
  const begin = useMutation<{ executionId: string }, ApiError, Json>({
    mutationFn: (given) => start(props.workflow, given, `${key}`),
    onSuccess: ({ executionId }) => navigate({ to: "/executions/$id", params: { id: executionId } }),
  });
  return (
    <Dialog
      open
      onClose={props.onClose}
      title={t("start.title", { name: textIn(known.data?.name, i18n.language, props.workflow) })}
      about={textIn(known.data?.description, i18n.language)}
    >
      {known.isPending ? <Loading /> : null}
      {known.isError ? <Failed why={known.error} /> : null}
      {known.isSuccess ? (
        <Suspense fallback={<Loading />}>
          <SchemaForm
            schema={known.data.input ?? { type: "object" }}
            value={input}
            onChange={setInput}
            onSubmit={(value) => begin.mutate(value)}
            submit={t("start.begin")}
            busy={begin.isPending}
          />
        </Suspense>
      ) : null}
      {begin.isError ? (
        <div className="mt-3">
          <Failed why={begin.error} />
        </div>
      ) : null}
    </Dialog>
  );
}
