/** What people are told: that something failed and what to do, that nothing is there, that something is under way. */
import { CircleAlert, LoaderCircle } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, isNoName, type Problem } from "@/api/http";
import { ErrorDetail, InEnglish } from "./ErrorDetail";

export function ErrorMessage(props: {
  why: unknown;
  again?: () => void;
  /** It is not there: how others would ask for a list of those that are helps nobody who looks at a page. */
  isGone?: boolean;
}) {
  const { t } = useTranslation();
  const why = props.why;
  const told = why instanceof ApiError ? why : null;
  const hint = props.isGone ? "" : (told?.hint ?? "");
  return (
    <div role="alert" className="flex gap-3 rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
      <CircleAlert className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0">
        {told?.isAway ? (
          <p className="font-medium break-words">{t("told.away")}</p>
        ) : props.isGone && isNoName(told) ? (
          <p className="font-medium">{t("told.noSuch")}</p>
        ) : (
          <ErrorDetail
            code={told?.code ?? ""}
            message={why instanceof Error ? why.message : String(why)}
            hint={hint}
            look="font-medium"
          />
        )}
        {told && told.problems.length > 1 ? <ProblemList problems={told.problems} /> : null}
        {props.again ? (
          <button type="button" onClick={props.again} className="mt-1 underline">
            {t("told.again")}
          </button>
        ) : null}
      </div>
    </div>
  );
}

export function ProblemList(props: { problems: readonly Problem[]; onPick?: (problem: Problem) => void }) {
  return (
    <ul className="mt-2 space-y-1.5">
      {props.problems.map((one) => (
        <li key={`${one.pointer} ${one.code} ${one.message}`} className="text-sm">
          <button
            type="button"
            disabled={!props.onPick}
            onClick={() => props.onPick?.(one)}
            className="text-left enabled:hover:underline"
          >
            <span className={one.severity === "error" ? "font-medium text-failed" : "font-medium text-waiting"}>
              {one.code}
            </span>
            {one.line === null ? null : <span className="text-ink-faint"> :{one.line}</span>}
            <ErrorDetail code={one.code} message={one.message} look="text-ink" />
          </button>
          <InEnglish text={one.hint} look="text-ink-soft" />
        </li>
      ))}
    </ul>
  );
}

export function EmptyMessage(props: { title: string; children?: ReactNode }) {
  return (
    <div className="rounded-lg border border-dashed border-line-strong p-10 text-center wrap-anywhere">
      <p className="font-medium">{props.title}</p>
      {props.children ? <div className="mt-2 text-ink-soft">{props.children}</div> : null}
    </div>
  );
}

export function Loading() {
  const { t } = useTranslation();
  return (
    <div role="status" data-loading className="flex items-center gap-2 p-4 text-ink-faint">
      <LoaderCircle className="size-4 animate-spin" /> {t("told.loading")}
    </div>
  );
}
