import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { hasFilters } from "@/address";
import type { ApiError } from "@/api/http";
import { executions } from "@/api/queries";
import type { ExecutionEntry } from "@/api/views";
import { ErrorDetail } from "@/components/ErrorDetail";
import { LoadMore } from "@/components/Listing";
import { RelativeTime } from "@/components/RelativeTime";
import { ScriptedBadge } from "@/components/Scripted";
import { SelectionBar, SelectionCheckbox } from "@/components/SelectionBar";
import { Status } from "@/components/Status";
import { EmptyMessage, ErrorMessage, Loading } from "@/components/StatusMessage";
import { span } from "@/components/times";
import { type Selection, useSelection } from "@/components/useSelection";
import { useTitle } from "@/components/useTitle";
import { useWorkflowName } from "@/components/useWorkflowName";
import { BulkActions, type BulkResult } from "./BulkActions";
import { ExecutionFilters } from "./ExecutionFilters";
import { filterOf } from "./filters";

const PARTIAL_RUN_PREFIX = "try-";

export function ExecutionsPage() {
  const { t } = useTranslation();
  useTitle(t("executions.title"));
  const navigate = useNavigate();
  const search = useSearch({ from: "/executions" });
  const found = useInfiniteQuery(executions(filterOf(search)));
  const entries = found.data?.pages.flatMap((page) => page.executions) ?? [];
  const ids = entries.map((one) => one.executionId);
  const selection = useSelection(ids);
  const [bulkResult, setBulkResult] = useState<BulkResult | null>(null);
  const [failed, setFailed] = useState<ApiError | null>(null);
  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <h1 className="text-xl font-semibold">{t("executions.title")}</h1>
      <ExecutionFilters search={search} />
      <div className="mt-3">
        {found.isPending ? <Loading /> : null}
        {found.isError ? <ErrorMessage error={found.error} onRetry={() => void found.refetch()} /> : null}
        {failed ? <ErrorMessage error={failed} /> : null}
        {bulkResult ? <BulkOutcome bulkResult={bulkResult} /> : null}
        {found.isSuccess && entries.length === 0 ? (
          hasFilters(search) ? (
            <EmptyMessage title={t("executions.none")}>{t("executions.noneFit")}</EmptyMessage>
          ) : (
            <EmptyMessage title={t("executions.noneYet")}>
              <Link to="/workflows" className="text-accent underline">
                {t("executions.begin")}
              </Link>
            </EmptyMessage>
          )
        ) : null}
        <SelectionBar selection={selection} listed={ids}>
          <BulkActions
            chosen={entries.filter((one) => selection.has(one.executionId))}
            onDone={(text) => {
              setFailed(null);
              setBulkResult(text);
              selection.clear();
            }}
            onFailed={setFailed}
            onCompare={(a, b) => void navigate({ to: "/executions/compare", search: { a, b } })}
          />
        </SelectionBar>
        <ul className="divide-y divide-line overflow-hidden rounded-lg border border-line bg-surface empty:hidden">
          {entries.map((one) => (
            <Row key={one.executionId} entry={one} selection={selection} />
          ))}
        </ul>
        <LoadMore query={found} />
      </div>
    </div>
  );
}

function Row({ entry, selection }: { entry: ExecutionEntry; selection: Selection }) {
  const { t } = useTranslation();
  const nodeName = useWorkflowName();
  const id = entry.executionId;
  return (
    <li className={`flex items-center pl-4 hover:bg-sunken ${selection.has(id) ? "bg-accent-soft" : ""}`}>
      <SelectionCheckbox selection={selection} id={id} label={t("selection.choose", { name: id })} />
      <Link
        to="/executions/$id"
        params={{ id }}
        className="flex min-w-0 flex-1 flex-wrap items-center gap-x-4 gap-y-1 px-4 py-2.5 max-sm:pl-2"
      >
        <span className="shrink-0 sm:w-40">
          <Status status={entry.status} />
        </span>
        <span className="min-w-0 flex-1 font-medium wrap-anywhere max-sm:order-first max-sm:basis-full">
          <bdi title={entry.workflowId}>{nodeName(entry.workflowId)}</bdi>
          {entry.scripted ? (
            <span className="ml-2 font-normal">
              <ScriptedBadge scripted />
            </span>
          ) : null}
          {entry.parent ? <span className="ml-2 font-normal text-ink-faint">{t("executions.part")}</span> : null}
          {id.startsWith(PARTIAL_RUN_PREFIX) ? (
            <span className="ml-2 font-normal text-ink-faint">{t("executions.trial")}</span>
          ) : null}
        </span>
        <span className="max-w-64 truncate font-mono text-xs text-ink-faint max-sm:hidden">{id}</span>
        <span className="ml-auto text-right text-ink-soft sm:w-28">
          <RelativeTime at={entry.startedAt} />
        </span>
        <span className="w-20 text-right text-ink-soft tabular-nums max-sm:hidden">
          {span(entry.updatedAt - entry.startedAt)}
        </span>
      </Link>
    </li>
  );
}

/** An error in the form `[code] sentence`. */
function Refusal({ text }: { text: string }) {
  const [, code = "", message = text] = /^\[([\w-]+)\] (.*)$/s.exec(text) ?? [];
  return <ErrorDetail code={code} message={message} />;
}

/** The result of a bulk action: how many executions succeeded, and why each of the others was refused. */
function BulkOutcome({ bulkResult }: { bulkResult: BulkResult }) {
  const { t } = useTranslation();
  const refused = bulkResult.executions.filter((one) => one.status === "refused");
  const done = bulkResult.executions.length - refused.length;
  return (
    <div role="status" className="mb-3 rounded-md border border-line bg-sunken p-3">
      <p className="font-medium">{t(`executions.did.${bulkResult.verb}`, { count: done })}</p>
      {refused.length > 0 ? (
        <>
          <p className="mt-1 text-failed">{t("executions.refused", { count: refused.length })}</p>
          <ul className="mt-1 list-disc pl-5 text-ink-soft">
            {refused.map((one) => (
              <li key={one.executionId} className="wrap-anywhere">
                <span className="font-mono text-xs">{one.executionId}</span>
                <Refusal text={one.error ?? ""} />
              </li>
            ))}
          </ul>
        </>
      ) : null}
    </div>
  );
}
