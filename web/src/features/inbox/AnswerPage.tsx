/** The page of an answer link: one gate, for a recipient without an account. The token of the link is in the fragment,
 * which browsers do not send; nothing is answered before the recipient presses a button. */
import { queryOptions, useQuery } from "@tanstack/react-query";
import { useLocation } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest } from "@/api/http";
import type { GateAnswer } from "@/api/queries";
import type { Gate, Schemas } from "@/api/views";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { ScriptedOutput } from "@/components/Scripted";
import { moment } from "@/components/times";
import { GateForm } from "./GateForm";

type LinkedGate = Schemas["LinkedGateView"] & { gate: Gate };
type Outcome = Schemas["LinkAnswerView"];

const linkedGate = (token: string) =>
  queryOptions({
    queryKey: ["answer-link", token],
    queryFn: ({ signal }) => apiRequest<LinkedGate>("/api/answer-links/read", { body: { token }, signal }),
    // What the recipient reads stays; the server refuses an answer to data that have changed since.
    staleTime: Number.POSITIVE_INFINITY,
    refetchOnWindowFocus: false,
  });

const answer = (token: string, { action, data, comment }: GateAnswer) =>
  apiRequest<Outcome>("/api/answer-links/answer", {
    body: { token, action, ...(data === undefined ? {} : { data }), ...(comment ? { comment } : {}) },
  });

export function AnswerPage() {
  const token = useLocation({ select: (at) => at.hash });
  return <LinkedGatePage key={token} token={token} />;
}

function LinkedGatePage({ token }: { token: string }) {
  const { t, i18n } = useTranslation();
  const known = useQuery({ ...linkedGate(token), enabled: token !== "" });
  const [outcome, setOutcome] = useState<Outcome>();
  if (token === "") return <Page title={t("answer.title")}>{t("answer.incomplete")}</Page>;
  return (
    <Page
      title={t("answer.title")}
      about={
        known.data
          ? t("answer.about", { name: known.data.recipient, until: moment(known.data.expiresAt, i18n.language) })
          : null
      }
    >
      {outcome ? (
        <p role="status" className="font-medium">
          {t(outcome.closed ? "answer.done" : "answer.voted")}
        </p>
      ) : (
        <QueryResult query={known}>
          {({ gate, scripted, workflowId }) => (
            <>
              <p className="mb-3 text-sm text-ink-soft wrap-anywhere">
                {t("answer.workflow", { workflow: workflowId })}
              </p>
              <ScriptedOutput scripted={scripted} />
              <GateForm execution="" gate={gate} sendByLink={(given) => answer(token, given).then(setOutcome)} />
            </>
          )}
        </QueryResult>
      )}
    </Page>
  );
}
