import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { ENDED, type Execution } from "@/api/views";
import { now } from "@/clock";
import { amount, money } from "@/components/amounts";
import { ExecutionLink } from "@/components/ExecutionLink";
import { span } from "@/components/times";
import { chatWorkflowsById } from "@/features/chat/sessions";
import type { ExecutionTimeline } from "./timelineModel";

/** Usage, duration and origin of an execution. */
export function Figures(props: { execution: Execution; timeline: ExecutionTimeline }) {
  const { t } = useTranslation();
  const { execution: one, timeline } = props;
  const chatWorkflows = useQuery({ ...chatWorkflowsById([one.workflowId]), enabled: one.sessionId !== null });
  // A session does not imply a chat: agents with memory have sessions too.
  const hasChat = (chatWorkflows.data?.length ?? 0) > 0;
  const { usage, trigger } = one;
  const kind = typeof trigger?.kind === "string" ? t(`execution.by.${trigger.kind}`, trigger.kind) : "";
  const by = [kind, trigger?.by, trigger?.id].filter((part) => typeof part === "string" && part).join(" · ");
  return (
    <dl className="flex flex-wrap gap-x-3 text-xs text-ink-faint">
      <Figure name={t("execution.duration")}>
        {span((ENDED.has(one.status) ? timeline.to : now()) - timeline.from)}
      </Figure>
      <Figure name={t("execution.steps")}>{one.steps}</Figure>
      <Figure name={t("execution.tokens")}>{`${amount(usage.inputTokens)} → ${amount(usage.outputTokens)}`}</Figure>
      {usage.costUsd === null ? null : <Figure name={t("execution.cost")}>{money(usage.costUsd)}</Figure>}
      {one.model ? <Figure name={t("execution.model")}>{one.model}</Figure> : null}
      {by ? <Figure name={t("execution.startedBy")}>{by}</Figure> : null}
      {one.sessionId && hasChat ? (
        <Figure name={t("execution.session")}>
          <Link
            to="/chat/$workflow/$session"
            params={{ workflow: one.workflowId, session: one.sessionId }}
            title={one.sessionId}
            className="text-accent underline"
          >
            {t("execution.toChat")}
          </Link>
        </Figure>
      ) : null}
      {timeline.origin ? (
        <Figure name={t("execution.forkOf", { row: timeline.origin.row })}>
          <ExecutionLink id={timeline.origin.execution} />
        </Figure>
      ) : null}
      {timeline.parent ? (
        <Figure name={t("execution.parent")}>
          <ExecutionLink id={timeline.parent} />
        </Figure>
      ) : null}
    </dl>
  );
}

function Figure({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex min-w-0 gap-1">
      <dt className="shrink-0">{name}</dt>
      <dd className="min-w-0 truncate text-ink-soft tabular-nums">{children}</dd>
    </div>
  );
}
