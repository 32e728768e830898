/** The answers that people gave to gates, newest first. */
import { infiniteQueryOptions, useInfiniteQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest, query } from "@/api/http";
import type { Schemas } from "@/api/views";
import { Listing, LoadMore } from "@/components/Listing";
import { RelativeTime } from "@/components/RelativeTime";
import { EmptyMessage, ErrorMessage, Loading } from "@/components/StatusMessage";
import { useWorkflowName } from "@/components/useWorkflowName";
import { textIn } from "@/i18n";
import { Choice } from "./GateList";
import { questionOf } from "./question";

type Answer = Schemas["AnsweredGate"];

const answersOf = (everyone: boolean) =>
  infiniteQueryOptions({
    queryKey: ["inbox", "answered", everyone],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["AnsweredPage"]>(
        `/api/inbox/answered${query({ everyone: everyone ? "true" : null, after: pageParam, limit: 50 })}`,
        { signal },
      ),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });

export function AnsweredGates() {
  const { t } = useTranslation();
  const [whose, setWhose] = useState("mine");
  const found = useInfiniteQuery(answersOf(whose === "all"));
  const answers = found.data?.pages.flatMap((page) => page.answers) ?? [];
  return (
    <>
      <div className="mb-4 flex">
        <Choice
          name={t("answered.whose")}
          value={whose}
          options={[
            ["mine", t("answered.mine")],
            ["all", t("answered.all")],
          ]}
          onChange={setWhose}
        />
      </div>
      {found.isPending ? <Loading /> : null}
      {found.isError ? <ErrorMessage error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isSuccess && answers.length === 0 ? (
        <EmptyMessage title={t("answered.none")}>{t("answered.noneHint")}</EmptyMessage>
      ) : null}
      <AnswerTable answers={answers} isOfAll={whose === "all"} />
      <LoadMore query={found} />
    </>
  );
}

function AnswerTable({ answers, isOfAll }: { answers: readonly Answer[]; isOfAll: boolean }) {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const by = { name: t("answered.by"), cell: (one: Answer) => <bdi>{one.by}</bdi> };
  return (
    <Listing
      name={t("inbox.answered")}
      entries={answers}
      keyOf={(one) => `${one.inside ?? one.executionId} ${one.gateId} ${one.by}`}
      columns={[
        { name: t("answered.question"), cell: (one) => <Question answer={one} /> },
        { name: t("answered.answer"), cell: (one) => <Action answer={one} /> },
        ...(isOfAll ? [by] : []),
        { name: t("inbox.workflow"), cell: (one) => <bdi>{workflowName(one.workflowId)}</bdi> },
        { name: t("answered.when"), cell: (one) => <RelativeTime at={one.answeredAt} /> },
      ]}
    />
  );
}

function Question({ answer }: { answer: Answer }) {
  const { t, i18n } = useTranslation();
  const node = textIn(answer.nodeName as Parameters<typeof textIn>[0], i18n.language, answer.nodeId);
  const question = questionOf(answer, node, i18n.language, t).split("\n", 1)[0];
  if (!answer.visible) return <span className="line-clamp-2 wrap-anywhere">{question}</span>;
  return (
    <Link
      to="/executions/$id"
      params={{ id: answer.inside ?? answer.executionId }}
      className="line-clamp-2 wrap-anywhere text-accent hover:underline"
    >
      {question}
    </Link>
  );
}

function Action({ answer }: { answer: Answer }) {
  const { t } = useTranslation();
  return (
    <>
      <span className="font-medium">{t(`action.${answer.action}`, answer.action)}</span>
      {answer.closed ? null : <span className="text-ink-faint"> · {t("answered.vote")}</span>}
      {answer.comment ? <span className="block text-ink-soft wrap-anywhere">{answer.comment}</span> : null}
    </>
  );
}
