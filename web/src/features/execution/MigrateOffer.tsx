/** An execution keeps the definition it started with. If the workflow has changed since, a failed execution can migrate
 * to the new definition and retry. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { RotateCcw } from "lucide-react";
import { useTranslation } from "react-i18next";
import { apiRequest } from "@/api/http";
import { control, definition, executionDefinition, executionPath } from "@/api/queries";
import type { Execution, Schemas } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorDetail } from "@/components/ErrorDetail";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { changesBetween } from "@/graph/model/diff";
import { stepName, useNodeName } from "@/graph/model/nodeNames";

type Migration = Schemas["MigrationView"];

export function MigrateOffer({ execution: one }: { execution: Execution }) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const client = useQueryClient();
  const isOffered = useHasRole("operator") && one.status === "failed";
  const then = useQuery({ ...executionDefinition(one.executionId), enabled: isOffered });
  const now = useQuery({ ...definition(one.workflowId), enabled: isOffered, retry: false });
  const migrate = useMutation({
    mutationFn: async () => {
      const path = `${executionPath(one.executionId)}/move`;
      // `checkOnly` returns all steps that do not fit; a refused migration names only the first.
      const check = await apiRequest<Migration>(path, { body: { to: one.workflowId, checkOnly: true } });
      if (!check.fits) return check;
      const migration = await apiRequest<Migration>(path, { body: { to: one.workflowId } });
      if (migration.moved) client.setQueryData(["execution", one.executionId], await control(one.executionId, "retry"));
      return migration;
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ["execution", one.executionId, "workflow"] }),
  });
  // `changesBetween` ignores the order of fields and the positions of boxes: they do not change what a workflow does.
  const isChanged = then.data && now.data && changesBetween(then.data, now.data).length > 0;
  if (!isOffered || !isChanged) return null;
  return (
    <section className="mt-2 rounded-md border border-line p-2.5">
      <p className="font-medium">{t("execution.mended")}</p>
      <p className="text-sm text-ink-soft">{t("execution.mendedAbout")}</p>
      <Button className="mt-2" disabled={migrate.isPending} onClick={() => migrate.mutate()}>
        <RotateCcw className="size-4" /> {t("execution.mendedGo")}
      </Button>
      {migrate.isError ? (
        <div className="mt-2">
          <ErrorMessage error={migrate.error} />
        </div>
      ) : null}
      {migrate.data?.fits === false ? (
        <div role="alert" className="mt-2 text-sm text-failed">
          <p>{t("execution.mendedNot")}</p>
          <ul className="list-disc pl-5">
            {migrate.data.problems.map((why) => (
              <li key={`${why.code} ${why.where}`} className="break-words">
                <bdi className="font-medium">{stepName(why.where, nodeName)}</bdi>
                <ErrorDetail code={why.code} message={why.message} />
              </li>
            ))}
          </ul>
        </div>
      ) : null}
    </section>
  );
}
