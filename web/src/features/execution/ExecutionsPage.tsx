import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { executions } from "@/api/queries";
import type { ExecutionStatus } from "@/api/views";
import { Button } from "@/components/Button";
import { ago, moment, span } from "@/components/instants";
import { Status } from "@/components/Status";
import { Empty, Failed, Loading } from "@/components/Told";

const STATUSES: readonly ExecutionStatus[] = [
  "running",
  "waiting",
  "paused",
  "interrupted",
  "completed",
  "failed",
  "cancelled",
];

export function ExecutionsPage() {
  const { t, i18n } = useTranslation();
  const navigate = useNavigate();
  const search = useSearch({ from: "/executions" });
  const status = STATUSES.find((one) => one === search.status);
  const found = useInfiniteQuery(
    executions({ ...(search.workflow ? { workflow: search.workflow } : {}), ...(status ? { status: [status] } : {}) }),
  );
  const entries = found.data?.pages.flatMap((page) => page.executions) ?? [];
  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <div className="flex flex-wrap items-center gap-3">
        <h1 className="text-xl font-semibold">{t("executions.title")}</h1>
        {search.workflow ? (
          <Link to="/executions" className="rounded-full bg-accent-soft px-2.5 py-0.5 text-sm text-accent">
            {search.workflow} ×
          </Link>
        ) : null}
        <label className="ml-auto flex items-center gap-2 text-ink-soft">
          {t("executions.status")}
          <select
            value={status ?? ""}
            onChange={(event) =>
              void navigate({
                to: "/executions",
                search: {
                  ...(search.workflow ? { workflow: search.workflow } : {}),
                  ...(event.target.value ? { status: event.target.value } : {}),
                },
              })
            }
            className="h-8 rounded-md border border-line-strong bg-surface px-2 text-ink"
          >
            <option value="">{t("executions.any")}</option>
            {STATUSES.map((one) => (
              <option key={one} value={one}>
                {t(`status.${one}`)}
              </option>
            ))}
          </select>
        </label>
      </div>
      <div className="mt-5">
        {found.isPending ? <Loading /> : null}
        {found.isError ? <Failed why={found.error} again={() => void found.refetch()} /> : null}
        {found.isSuccess && entries.length === 0 ? <Empty title={t("executions.none")} /> : null}
        <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface empty:hidden">
          {entries.map((one) => (
            <li key={one.executionId}>
              <Link
                to="/executions/$id"
                params={{ id: one.executionId }}
                className="flex flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 hover:bg-sunken"
              >
                <span className="w-32 shrink-0">
                  <Status status={one.status} />
                </span>
                <span className="min-w-0 flex-1 font-medium break-words">
                  <bdi>{one.workflowId}</bdi>
                  {one.parent ? <span className="ml-2 font-normal text-ink-faint">{t("executions.part")}</span> : null}
                </span>
                <span className="font-mono text-xs text-ink-faint max-sm:hidden">{one.executionId}</span>
                <span className="w-24 text-right text-ink-soft" title={moment(one.startedAt, i18n.language)}>
                  {ago(one.startedAt, i18n.language)}
                </span>
                <span className="w-16 text-right text-ink-soft max-sm:hidden">
                  {span(one.updatedAt - one.startedAt)}
                </span>
              </Link>
            </li>
          ))}
        </ul>
        {found.hasNextPage ? (
          <div className="mt-3 text-center">
            <Button onClick={() => void found.fetchNextPage()} disabled={found.isFetchingNextPage}>
              {t("executions.more")}
            </Button>
          </div>
        ) : null}
      </div>
    </div>
  );
}
