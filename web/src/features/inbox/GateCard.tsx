/** One gate of the inbox. If another user answers it meanwhile, the card reports it and keeps the user's draft. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import { execution } from "@/api/queries";
import type { Gate, InboxGate } from "@/api/views";
import { Button } from "@/components/Button";
import { ScriptedOutput } from "@/components/Scripted";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useWorkflowName } from "@/components/useWorkflowName";
import { ExecutionNodes } from "../execution/ExecutionNodes";
import { useClosing } from "./closedGate";
import { GateForm } from "./GateForm";

/** `readAt` is the time at which the inbox was loaded. If it is newer than the execution, votes or delegations may have
 * changed: reload. */
export function GateCard(props: {
  entry: InboxGate;
  isListed: boolean;
  readAt: number;
  onDone: () => void;
  onNext: () => void;
}) {
  const { t } = useTranslation();
  const called = useWorkflowName();
  const client = useQueryClient();
  const over = useClosing();
  const { entry, isListed, readAt } = props;
  const asks = entry.inside ?? entry.executionId;
  const known = useQuery(execution(asks));
  useEffect(() => {
    if (readAt > (client.getQueryState(["execution", asks])?.dataUpdatedAt ?? readAt))
      void client.invalidateQueries({ queryKey: ["execution", asks], exact: true });
  }, [client, asks, readAt]);
  const open = known.data?.waiting.find((one) => one.gateId === entry.gateId);
  const [kept, keep] = useState<Gate>();
  if (open && open !== kept) keep(open);
  const gate = open ?? kept;
  const isOver = !isListed || (known.isSuccess && !open);
  if (!gate && !isOver) return known.isError ? <ErrorMessage error={known.error} /> : <Loading />;
  return (
    <>
      <p className="mb-3 line-clamp-2 wrap-anywhere text-sm">
        <Link to="/executions/$id" params={{ id: entry.executionId }} className="text-accent underline">
          {t("inbox.open", { workflow: called(entry.workflowId) })}
        </Link>
      </p>
      <ScriptedOutput scripted={known.data?.scripted} />
      {gate ? (
        <ExecutionNodes execution={asks}>
          <GateForm
            execution={asks}
            gate={gate}
            over={(open && !known.isError) || !known.data ? null : (over(gate, known.data) ?? "")}
            onDone={props.onDone}
            hasKeys={isListed}
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
