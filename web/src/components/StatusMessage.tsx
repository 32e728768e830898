/** Messages for errors, empty lists and loading. */
import { useLocation } from "@tanstack/react-router";
import { CircleAlert, LoaderCircle } from "lucide-react";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, isUnknownName, type Problem } from "@/api/http";
import { ConnectModel, MENDED_BY_MODEL } from "./ConnectModel";
import { ErrorDetail, ServerText } from "./ErrorDetail";
import { helpPage } from "./helpPages";

export function ErrorMessage(props: {
  error: unknown;
  onRetry?: () => void;
  /** The thing does not exist. The hint would explain how API callers list such things, so it is hidden. */
  isGone?: boolean;
}) {
  const { t } = useTranslation();
  const error = props.error;
  const apiError = error instanceof ApiError ? error : null;
  const hint = props.isGone ? "" : (apiError?.hint ?? "");
  return (
    <div role="alert" className="flex gap-3 rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
      <CircleAlert className="mt-0.5 size-4 shrink-0" />
      <div className="min-w-0">
        {apiError?.isUnreachable ? (
          <p className="font-medium break-words">{t("loading.disconnected")}</p>
        ) : props.isGone && isUnknownName(apiError) ? (
          <p className="font-medium">{t("loading.notFound")}</p>
        ) : (
          <ErrorDetail
            code={apiError?.code ?? ""}
            message={error instanceof Error ? error.message : String(error)}
            hint={hint}
            look="font-medium"
          />
        )}
        {apiError && apiError.problems.length > 1 ? <ProblemList problems={apiError.problems} /> : null}
        {MENDED_BY_MODEL.has(apiError?.code ?? "") ? <ConnectModel /> : null}
        {props.onRetry ? (
          <button type="button" onClick={props.onRetry} className="mt-1 underline">
            {t("loading.retry")}
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
          <ServerText text={one.hint} look="text-ink-soft" />
        </li>
      ))}
    </ul>
  );
}

export function EmptyMessage(props: {
  title: string;
  /** Link to the documentation of the page, for lists in which nothing is yet. */
  isNew?: boolean;
  children?: ReactNode;
}) {
  const { t } = useTranslation();
  const help = useLocation({ select: ({ pathname }) => helpPage(pathname) });
  return (
    <div className="rounded-lg border border-dashed border-line-strong p-10 text-center wrap-anywhere">
      <p className="font-medium">{props.title}</p>
      {props.children ? <div className="mt-2 text-ink-soft">{props.children}</div> : null}
      {props.isNew ? (
        <a href={help} target="_blank" rel="noreferrer" className="mt-3 inline-block text-accent underline">
          {t("shell.learnMore")}
        </a>
      ) : null}
    </div>
  );
}

export function Loading() {
  const { t } = useTranslation();
  return (
    <div role="status" data-loading className="flex items-center gap-2 p-4 text-ink-faint">
      <LoaderCircle className="size-4 animate-spin" /> {t("loading.inProgress")}
    </div>
  );
}
