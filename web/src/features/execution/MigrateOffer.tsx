/** An execution keeps the definition it began with. Where that was changed since, a failed one may go on with the new one. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { ask } from "@/api/http";
import { control, definition, executionDefinition, executionPath } from "@/api/queries";
import type { Execution, Schemas } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorDetail } from "@/components/ErrorDetail";
import { ErrorMessage } from "@/components/StatusMessage";
import { useMay } from "@/components/useMay";
import { changesBetween } from "@/graph/model/diff";
import { stepName, useNodeName } from "@/graph/model/nodeNames";

type Moved = Schemas["MigrationView"];

export function MigrateOffer({ execution: one }: { execution: Execution }) {
  const { t } = useTranslation();
  const called = useNodeName();
  const client = useQueryClient();
  const isOffered = useMay("operator") && one.status === "failed";
  const then = useQuery({ ...executionDefinition(one.executionId), enabled: isOffered });
  const now = useQuery({ ...definition(one.workflowId), enabled: isOffered, retry: false });
  const goOn = useMutation({
    mutationFn: async () => {
      const path = `${executionPath(one.executionId)}/move`;
      // Asked for all that has no place there: a refusal names the first.
      const asked = await ask<Moved>(path, { body: { to: one.workflowId, checkOnly: true } });
      if (!asked.fits) return asked;
      const moved = await ask<Moved>(path, { body: { to: one.workflowId } });
      if (moved.moved) client.setQueryData(["execution", one.executionId], await control(one.executionId, "retry"));
      return moved;
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ["execution", one.executionId, "workflow"] }),
  });
  // Neither in which order its author wrote the fields nor where boxes stand changes what a workflow does.
  const isMended = then.data && now.data && changesBetween(then.data, now.data).length > 0;
  if (!isOffered || !isMended) return null;
  return (
    <section className="mt-2 rounded-md border border-line p-2.5">
      <p className="font-medium">{t("execution.mended")}</p>
      <p className="text-sm text-ink-soft">{t("execution.mendedAbout")}</p>
      <Button className="mt-2" disabled={goOn.isPending} onClick={() => goOn.mutate()}>
        <RotateCcw className="size-4" /> {t("execution.mendedGo")}
      </Button>
      {goOn.isError ? (
        <div className="mt-2">
          <ErrorMessage why={goOn.error} />
        </div>
      ) : null}
      {goOn.data?.fits === false ? (
        <div role="alert" className="mt-2 text-sm text-failed">
          <p>{t("execution.mendedNot")}</p>
          <ul className="list-disc pl-5">
            {goOn.data.problems.map((why) => (
              <li key={`${why.code} ${why.where}`} className="break-words">
                <bdi className="font-medium">{stepName(why.where, called)}</bdi>
                <ErrorDetail code={why.code} message={why.message} />
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </section>
  );
}
