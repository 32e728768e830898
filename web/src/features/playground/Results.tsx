import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import type { Execution, Json } from "@/api/views";
import { money } from "@/components/amounts";
import { PageSection } from "@/components/DescriptionList";
import { ErrorDetail } from "@/components/ErrorDetail";
import { Status } from "@/components/Status";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { span } from "@/components/times";
import { brief, isObject } from "@/values/changes";
import { Value } from "../execution/Value";
import { type Row, type Target, variablesOf } from "./prompt";
import type { Cell, Version } from "./store";
import type { Answers } from "./useAnswers";

/** The answers: a section for each input row, with the targets side by side. */
export function Results({ version, answers }: { version: Version; answers: Answers }) {
  const { t } = useTranslation();
  const variables = variablesOf(version.draft);
  return (
    <PageSection title={t("playground.answers")}>
      <div className="space-y-6">
        {version.cells.map((cells, rowAt) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the rows of a version do not change
          <div key={rowAt}>
            <Input row={version.draft.rows[rowAt] ?? {}} nth={rowAt + 1} variables={variables} />
            <div className="grid gap-3 sm:grid-cols-[repeat(auto-fit,minmax(15rem,1fr))]">
              {cells.map((cell, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: the columns of a version do not change
                <Column key={at} target={version.draft.targets[at] as Target} cell={cell} answers={answers} />
              ))}
            </div>
          </div>
        ))}
      </div>
    </PageSection>
  );
}

function Input({ row, nth, variables }: { row: Row; nth: number; variables: readonly string[] }) {
  const { t } = useTranslation();
  if (variables.length === 0) return null;
  return (
    <h3 className="mb-2 wrap-anywhere">
      <span className="font-medium">{t("playground.input", { nth })}</span>{" "}
      <span className="text-ink-soft">
        {variables.map((name) => `${name}: ${brief(row[name] ?? null)}`).join(" · ")}
      </span>
    </h3>
  );
}

function Column({ target, cell, answers }: { target: Target; cell: Cell; answers: Answers }) {
  const { t } = useTranslation();
  const name = target.name || t("playground.defaultModel");
  const found = cell.execution === undefined ? undefined : answers.byId.get(cell.execution);
  const error = cell.execution === undefined ? undefined : answers.errors.get(cell.execution);
  return (
    <article aria-label={name} className="min-w-0 rounded-lg border border-line bg-surface p-3">
      <div className="mb-2 flex flex-wrap items-center gap-2">
        <h4 className="min-w-0 font-mono text-xs font-semibold wrap-anywhere">{name}</h4>
        {found ? <Status status={found.status} /> : null}
      </div>
      {cell.error ? (
        <Failure code={cell.error.code} message={cell.error.message} hint={cell.error.hint} />
      ) : error ? (
        <ErrorMessage error={error} isGone />
      ) : found ? (
        <Answer found={found} />
      ) : (
        <Loading />
      )}
    </article>
  );
}

function Failure(props: { code: string; message: string; hint?: string | undefined }) {
  return (
    <div role="alert" className="rounded-md border border-failed/40 bg-failed-soft p-2.5">
      <ErrorDetail code={props.code} message={props.message} hint={props.hint} look="text-failed" />
    </div>
  );
}

function Answer({ found }: { found: Execution }) {
  const { t } = useTranslation();
  const { usage } = found;
  const answer = isObject(found.output) ? (found.output.answer as Json | undefined) : undefined;
  return (
    <>
      {answer === undefined ? null : <Value value={answer} />}
      <div className="space-y-2 empty:hidden">
        {found.errors.map((why) => (
          <Failure key={`${why.code} ${why.message}`} code={why.code} message={why.message} hint={why.hint} />
        ))}
        {found.status === "interrupted" ? <p className="text-waiting">{t("playground.atLimit")}</p> : null}
      </div>
      <p className="mt-2 flex flex-wrap gap-x-2 text-xs text-ink-faint tabular-nums">
        <span>{t("call.tokens", { input: usage.inputTokens, output: usage.outputTokens })}</span>
        <span>{span(found.durationMs / 1000)}</span>
        <span>{usage.costUsd === null ? t("playground.noPrice") : money(usage.costUsd)}</span>
        {found.model ? <span className="font-mono">{found.model}</span> : null}
      </p>
      <Link
        to="/executions/$id"
        params={{ id: found.executionId }}
        className="mt-1 inline-flex min-h-6 items-center text-sm text-accent hover:underline"
      >
        {t("playground.execution")}
      </Link>
    </>
  );
}
