import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { CornerDownRight, GitFork, Scale } from "lucide-react";
import { useTranslation } from "react-i18next";
import { relations } from "@/api/queries";
import type { Schemas } from "@/api/views";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { type Look, Status } from "@/components/Status";
import { useWorkflowName } from "@/components/useWorkflowName";
import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { type Branch, branchesOf } from "./branches";

/** Related executions: parents, children, and the tree of forks with the row at which each was forked. */
export function RelatedExecutions({ execution }: { execution: string }) {
  const { t } = useTranslation();
  const relationsQuery = useQuery(relations(execution));
  return (
    <div className="h-full overflow-auto p-3">
      <QueryResult query={relationsQuery}>
        {(relations) => {
          const branches = branchesOf(execution, relations);
          return (
            <div className="space-y-3">
              {relations.parents.length ? <Entries title={t("family.parents")} entries={relations.parents} /> : null}
              {relations.children.length ? <Entries title={t("family.children")} entries={relations.children} /> : null}
              <section>
                <h3 className="text-xs font-semibold text-ink-faint uppercase">{t("family.forks")}</h3>
                {branches.length > 1 ? (
                  <ul className="mt-1">
                    {branches.map((branch) => (
                      <Fork key={branch.execution} branch={branch} self={execution} />
                    ))}
                  </ul>
                ) : (
                  <p className="text-ink-soft">{t("family.noForks")}</p>
                )}
                {relations.complete ? null : <p className="text-ink-faint">{t("family.more")}</p>}
              </section>
            </div>
          );
        }}
      </QueryResult>
    </div>
  );
}

function Fork({ branch, self }: { branch: Branch; self: string }) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const workflow = useWorkflowName();
  return (
    <li className="flex min-h-8 flex-wrap items-center gap-2" style={{ paddingLeft: branch.depth * 24 }}>
      {branch.depth ? (
        <CornerDownRight className="size-4 text-ink-faint" aria-hidden />
      ) : (
        <GitFork className="size-4" />
      )}
      {branch.row === null ? null : (
        <span className="rounded bg-sunken px-1.5 text-xs tabular-nums">
          {branch.before
            ? t("family.before", { step: stepName(branch.before, nodeName) })
            : t("family.row", { row: branch.row })}
        </span>
      )}
      {branch.entry ? <Status status={branch.entry.status as Look} /> : null}
      {branch.execution === self ? (
        <strong className="font-mono text-xs">{t("family.this")}</strong>
      ) : (
        <>
          <Link
            to="/executions/$id"
            params={{ id: branch.execution }}
            title={branch.execution}
            className={`text-accent underline ${branch.entry ? "" : "font-mono text-xs break-all"}`}
          >
            <bdi>{branch.entry ? workflow(branch.entry.workflowId) : branch.execution}</bdi>
          </Link>
          <Link
            to="/executions/compare"
            search={{ a: self, b: branch.execution }}
            className="inline-flex h-6 items-center gap-1 text-accent underline"
          >
            <Scale className="size-3.5" aria-hidden /> {t("family.compare")}
          </Link>
        </>
      )}
      {branch.entry ? (
        <>
          <span className="text-ink-faint">
            <RelativeTime at={branch.entry.startedAt} />
          </span>
          <span className="font-mono text-xs break-all text-ink-faint">{branch.execution}</span>
        </>
      ) : null}
    </li>
  );
}

function Entries({ title, entries }: { title: string; entries: readonly Schemas["ExecutionEntry"][] }) {
  const nodeName = useWorkflowName();
  return (
    <section>
      <h3 className="text-xs font-semibold text-ink-faint uppercase">{title}</h3>
      <ul className="mt-1">
        {entries.map((one) => (
          <li key={one.executionId} className="flex min-h-8 flex-wrap items-center gap-2">
            <Status status={one.status as Look} />
            <Link to="/executions/$id" params={{ id: one.executionId }} className="text-accent underline">
              <bdi title={one.workflowId}>{nodeName(one.workflowId)}</bdi>
            </Link>
            <span className="font-mono text-xs text-ink-faint">{one.executionId}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
