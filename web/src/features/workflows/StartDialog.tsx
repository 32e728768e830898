import { useMutation } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useId, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { start } from "@/api/queries";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { DialogActions } from "@/components/DialogActions";
import { DraftDialog } from "@/components/DraftDialog";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { textIn } from "@/i18n";
import { useServerTexts } from "@/i18n/given";
import { uniqueId } from "@/uniqueId";
import { reachStep } from "../templates/firstSteps";
import { BUILT_IN_PREFIX } from "./ids";
import { translatedInput } from "./inputPrompt";
import { useVersionToRun, VersionChoice } from "./VersionChoice";

const NOTHING = { type: "object" };

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** Show a form for the input schema of a workflow, and start it. */
export function StartDialog(props: { workflow: string; input?: Json; prefersDraft?: boolean; onClose: () => void }) {
  const { t, i18n } = useTranslation();
  const navigate = useNavigate();
  const version = useVersionToRun(props.workflow, props.prefersDraft ?? false);
  const known = version.definition;
  // One idempotency key per dialog: a double click starts one execution.
  const key = useMemo(() => uniqueId(), []);
  const form = useId();
  const [input, setInput] = useState<Json>(props.input ?? {});
  const { builtIn } = useServerTexts();
  const asked = known?.input ?? NOTHING;
  const schema = useMemo(
    () => (props.workflow.startsWith(BUILT_IN_PREFIX) ? translatedInput(asked, builtIn) : asked),
    [props.workflow, asked, builtIn],
  );
  const begin = useMutation<{ executionId: string }, ApiError, Json>({
    mutationFn: (given) => start(version.reference, given, `${key}-${version.reference}`),
    onSuccess: ({ executionId }) => {
      reachStep("run");
      return navigate({ to: "/executions/$id", params: { id: executionId } });
    },
  });
  return (
    <DraftDialog
      open
      onClose={props.onClose}
      title={t("start.title", { name: textIn(known?.name, i18n.language, props.workflow) })}
      about={textIn(known?.description, i18n.language)}
    >
      {version.error ? <ErrorMessage error={version.error} /> : known ? null : <Loading />}
      {version.choice ? (
        <div className="mb-3">
          <VersionChoice {...version.choice} />
        </div>
      ) : null}
      {begin.isError ? (
        <div className="mb-3">
          <ErrorMessage error={begin.error} />
        </div>
      ) : null}
      {known ? (
        <Suspense fallback={<Loading />}>
          <SchemaForm
            schema={schema}
            value={input}
            onChange={setInput}
            onSubmit={(value) => begin.mutate(value)}
            id={form}
            busy={begin.isPending}
          />
          {/* Only beside the loaded form: an earlier click would have no effect. */}
          <DialogActions onClose={props.onClose}>
            <Button kind="primary" type="submit" form={form} disabled={begin.isPending}>
              {t("start.begin")}
            </Button>
          </DialogActions>
        </Suspense>
      ) : null}
    </DraftDialog>
  );
}
