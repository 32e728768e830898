import { Link } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { Chip } from "@/components/Chip";
import { ErrorDetail, ServerText } from "@/components/ErrorDetail";
import type { FiredTime } from "./schedules";

const LOOKS = {
  started: "good",
  missed: "careful",
  skipped: "careful",
  queued: "accent",
  failed: "bad",
} as const;

/** The outcome of one due time, with a link to the execution it started. */
export function Outcome({ fired }: { fired: FiredTime }) {
  const { t } = useTranslation();
  const chip = (
    <Chip look={LOOKS[fired.outcome]}>{t(`schedules.outcome.${fired.outcome}`, { count: fired.count })}</Chip>
  );
  const { error, note } = fired;
  return (
    <span className="flex flex-wrap items-center gap-x-2 gap-y-1">
      {chip}
      {fired.executionId ? (
        <Link to="/executions/$id" params={{ id: fired.executionId }} className="text-accent underline">
          {t("schedules.execution")}
        </Link>
      ) : null}
      {error ? (
        <span>
          <ErrorDetail code={error.code} message={error.message} hint={error.hint} look="text-ink-soft wrap-anywhere" />
        </span>
      ) : (
        <ServerText text={note ?? ""} look="text-ink-soft wrap-anywhere" />
      )}
    </span>
  );
}
