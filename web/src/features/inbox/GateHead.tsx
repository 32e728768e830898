/** The head of a gate: question, approvers, deadline, votes and delegations. */
import { Clock } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Gate, Json } from "@/api/views";
import { now } from "@/clock";
import { Button } from "@/components/Button";
import { ago, moment } from "@/components/times";
import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { Value } from "../execution/Value";
import { hasOption } from "./answer";
import { questionOf } from "./question";

/** `onTake` copies the data of another vote into the draft; null if the user may not answer. */
export function GateHead(props: { id: string; gate: Gate; onCopyVote: ((data: Json) => void) | null }) {
  const { t, i18n } = useTranslation();
  const nodeName = useNodeName();
  const { gate } = props;
  // The first line is the question; the rest, such as a draft to review, is shown as text.
  const [question, ...rest] = questionOf(gate, nodeName(gate.nodeId), i18n.language, t).split("\n");
  return (
    <>
      <h2 id={props.id} className="max-h-[50vh] overflow-y-auto font-semibold wrap-anywhere">
        {question}
      </h2>
      <p className="flex flex-wrap gap-x-3 text-xs text-ink-faint">
        <bdi className="max-w-full truncate">{stepName(gate.step, nodeName)}</bdi>
        {gate.deadline ? (
          <span className="flex items-center gap-1 text-waiting">
            <Clock className="size-3" />{" "}
            {t(gate.deadline < now() ? "gate.overdue" : "gate.deadline", { when: ago(gate.deadline, i18n.language) })} ·{" "}
            {moment(gate.deadline, i18n.language)}
          </span>
        ) : null}
        {gate.approvers && gate.approvers.quorum > 1 ? (
          <span>{t("gate.quorum", { votes: gate.votes.length, quorum: gate.approvers.quorum })}</span>
        ) : null}
        {gate.level > 0 ? <span className="text-waiting">{t("gate.level", { count: gate.level })}</span> : null}
        {gate.approvers?.groups ? <span>{gate.approvers.groups.join(", ")}</span> : null}
      </p>
      {rest.length > 0 ? (
        <div className="mt-2">
          <Value value={rest.join("\n").trim()} />
        </div>
      ) : null}
      {gate.votes.length > 0 ? (
        <ul aria-label={t("gate.votes")} className="mt-1 space-y-1 text-sm text-ink-soft">
          {gate.votes.map((vote) => (
            <li key={vote.by} className="break-words">
              <bdi>{vote.by}</bdi>: {t(`action.${vote.action}`, vote.action)}
              {vote.comment ? <span> – {vote.comment}</span> : null}
              {vote.data === null || vote.data === undefined ? null : (
                <div className="mt-1 space-y-1">
                  <Value value={vote.data} />
                  {props.onCopyVote && hasOption(gate, vote.action) ? (
                    <Button onClick={() => props.onCopyVote?.(vote.data ?? null)}>
                      <span className="truncate">{t("gate.take", { by: vote.by })}</span>
                    </Button>
                  ) : null}
                </div>
              )}
            </li>
          ))}
        </ul>
      ) : null}
      {Object.entries(gate.delegated).map(([from, to]) => (
        <p key={from} className="mt-1 text-sm break-words text-ink-soft">
          {t("gate.delegated", { from, to })}
        </p>
      ))}
    </>
  );
}
