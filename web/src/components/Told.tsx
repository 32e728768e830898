/** What people are told: that something failed and what to do, that nothing is there, that something is under way. */
import { CircleAlert, LoaderCircle } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, type Problem } from "@/api/http";

export function Failed(props: { why: unknown; again?: () => void }) {
  const { t } = useTranslation();
  const why = props.why;
  const told = why instanceof ApiError ? why : null;
  const message = told?.isAway ? t("told.away") : why instanceof Error ? why.message : String(why);
  return (
    <div role="alert" className="flex gap-3 rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
      <CircleAlert className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0">
        <p className="font-medium break-words">{message}</p>
        {told?.hint ? <p className="mt-0.5 break-words text-ink-soft">{told.hint}</p> : null}
        {told && told.problems.length > 1 ? <Problems problems={told.problems} /> : null}
        {props.again ? (
          <button type="button" onClick={props.again} className="mt-1 underline">
            {t("told.again")}
          </button>
        ) : null}
      </div>
    </div>
  );
}

export function Problems(props: { problems: readonly Problem[]; onPick?: (problem: Problem) => void }) {
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
            </span>{" "}
            <span className="text-ink">{one.message}</span>
            {one.line === null ? null : <span className="text-ink-faint"> :{one.line}</span>}
          </button>
          {one.hint ? <p className="text-ink-soft">{one.hint}</p> : null}
        </li>
      ))}
    </ul>
  );
}

export function PageFailed({ error, reset }: { error: unknown; reset: () => void }) {
  return (
    <div className="mx-auto max-w-2xl p-6">
      <Failed why={error} again={reset} />
    </div>
  );
}

export function Empty(props: { title: string; children?: ReactNode }) {
  return (
    <div className="rounded-lg border border-dashed border-line-strong p-10 text-center">
      <p className="font-medium">{props.title}</p>
      {props.children ? <div className="mt-2 text-ink-soft">{props.children}</div> : null}
    </div>
  );
}

export function Loading() {
  const { t } = useTranslation();
  return (
    <div role="status" className="flex items-center gap-2 p-4 text-ink-faint">
      <LoaderCircle className="size-4 animate-spin" /> {t("told.loading")}
    </div>
  );
}
