import { useInfiniteQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { hasFilters } from "@/address";
import type { ApiError } from "@/api/http";
import { executions } from "@/api/queries";
import { ErrorDetail } from "@/components/ErrorDetail";
import { LoadMore } from "@/components/Listing";
import { SelectionBar } from "@/components/SelectionBar";
import { EmptyMessage, ErrorMessage, Loading } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { useSelection } from "@/components/useSelection";
import { useTitle } from "@/components/useTitle";
import { useWorkflowName } from "@/components/useWorkflowName";
import { BulkActions, type BulkResult } from "./BulkActions";
import { BulkAll } from "./BulkAll";
import { ExecutionFilters } from "./ExecutionFilters";
import { ExecutionRow } from "./ExecutionRow";
import { filterOf } from "./filters";
import { ColumnMenu, ViewMenu } from "./ListMenus";
import { useColumns } from "./listColumns";

const DEFAULT_COLUMNS = 3;

export function ExecutionsPage() {
  const { t } = useTranslation();
  useTitle(t("executions.title"));
  const navigate = useNavigate();
  const search = useSearch({ from: "/executions" });
  const found = useInfiniteQuery(executions(filterOf(search)));
  const entries = found.data?.pages.flatMap((page) => page.executions) ?? [];
  const ids = entries.map((one) => one.executionId);
  const selection = useSelection(ids);
  const [columns, toggleColumn] = useColumns();
  const workflowName = useWorkflowName();
  const isOperator = useHasRole("operator");
  const [bulkResult, setBulkResult] = useState<BulkResult | null>(null);
  const [failed, setFailed] = useState<ApiError | null>(null);
  return (
    <div className={`mx-auto p-4 sm:p-6 ${columns.length > DEFAULT_COLUMNS ? "max-w-[96rem]" : "max-w-5xl"}`}>
      <div className="flex flex-wrap items-center gap-2">
        <h1 className="mr-auto text-xl font-semibold">{t("executions.title")}</h1>
        <ViewMenu search={search} onOpen={(view) => void navigate({ to: "/executions", search: view })} />
        <ColumnMenu columns={columns} onToggle={toggleColumn} />
      </div>
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
            <EmptyMessage isNew title={t("executions.noneYet")}>
              <Link to="/workflows" className="text-accent underline">
                {t("executions.begin")}
              </Link>
            </EmptyMessage>
          )
        ) : null}
        {entries.length > 0 ? (
          <div className="mb-1 flex flex-wrap items-center gap-3 text-sm text-ink-soft">
            <span role="status">
              {t(found.hasNextPage ? "executions.countMore" : "executions.count", { count: entries.length })}
            </span>
            {isOperator && !search.q ? <BulkAll filter={filterOf(search)} onDone={setBulkResult} /> : null}
          </div>
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
            <ExecutionRow
              key={one.executionId}
              entry={one}
              selection={selection}
              columns={columns}
              workflowName={workflowName}
            />
          ))}
        </ul>
        <LoadMore query={found} />
      </div>
    </div>
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
