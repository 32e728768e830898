/** One gate of the inbox. If another user answers it meanwhile, the card reports it and keeps the user's draft. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { execution } from "@/api/queries";
import type { Gate, InboxGate } from "@/api/views";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { ScriptedOutput } from "@/components/Scripted";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useWorkflowName } from "@/components/useWorkflowName";
import { ExecutionNodes } from "../execution/ExecutionNodes";
import { PARTIAL_RUN_PREFIX } from "../execution/partialRuns";
import { useClosedReason } from "./closedGate";
import { GateForm } from "./GateForm";
import type { HeldAnswer } from "./heldAnswer";

/** `readAt` is the time at which the inbox was loaded. If it is newer than the execution, votes or delegations may have
 * changed: reload. */
export function GateCard(props: {
  entry: InboxGate;
  isListed: boolean;
  readAt: number;
  /** False while it only keeps an answer that is being sent. */
  isShown: boolean;
  onDone: () => void;
  onHold: (held: HeldAnswer) => void;
  onRefused: () => void;
  onNext: () => void;
}) {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const client = useQueryClient();
  const closedReason = useClosedReason();
  const { entry, isListed, readAt } = props;
  const executionId = entry.inside ?? entry.executionId;
  const known = useQuery(execution(executionId));
  useEffect(() => {
    if (readAt > (client.getQueryState(["execution", executionId])?.dataUpdatedAt ?? readAt))
      void client.invalidateQueries({ queryKey: ["execution", executionId], exact: true });
  }, [client, executionId, readAt]);
  const open = known.data?.waiting.find((one) => one.gateId === entry.gateId);
  const [lastGate, setLastGate] = useState<Gate>();
  if (open && open !== lastGate) setLastGate(open);
  const gate = open ?? lastGate;
  const isOver = !isListed || (known.isSuccess && !open);
  if (!gate && !isOver) return known.isError ? <ErrorMessage error={known.error} /> : <Loading />;
  return (
    <>
      <div className="mb-3 flex flex-wrap items-center gap-2 text-sm">
        <p className="line-clamp-2 wrap-anywhere">
          <Link to="/executions/$id" params={{ id: entry.executionId }} className="text-accent underline">
            {t("inbox.open", { workflow: workflowName(entry.workflowId) })}
          </Link>
        </p>
        {entry.executionId.startsWith(PARTIAL_RUN_PREFIX) ? <Chip look="accent">{t("executions.trial")}</Chip> : null}
      </div>
      <ScriptedOutput scripted={known.data?.scripted} />
      {gate ? (
        <ExecutionNodes execution={executionId}>
          <GateForm
            execution={executionId}
            gate={gate}
            closedReason={(open && !known.isError) || !known.data ? null : (closedReason(gate, known.data) ?? "")}
            onDone={props.onDone}
            onHold={props.onHold}
            onRefused={props.onRefused}
            hasKeys={isListed && props.isShown}
          />
        </ExecutionNodes>
      ) : null}
      <div role="status">
        {isOver ? (
          <>
            <p className="mt-3 font-medium">{t("inbox.gone")}</p>
            <Button className="mt-2" onClick={props.onNext}>
              {t("inbox.next")}
            </Button>
          </>
        ) : null}
      </div>
    </>
  );
}
