import { useState } from "react";
import { useTranslation } from "react-i18next";
import { EmptyMessage, ErrorMessage, Loading } from "@/components/StatusMessage";
import { useWorkflowName } from "@/components/useWorkflowName";
import { type Assignee, choices } from "./assignees";
import { GateCard } from "./GateCard";
import { Choice, GateList } from "./GateList";
import { UndoToast } from "./UndoToast";
import { useInbox } from "./useInbox";

/** The gates that the user can answer. After an answer the next gate opens. */
export function OpenGates() {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const [assignee, setAssignee] = useState<Assignee>("you");
  const [workflow, setWorkflow] = useState("");
  const { user, open, all, unanswered, gates, shown, setChosen, cards, held, undo } = useInbox(assignee, workflow);
  const workflows = [...new Set(all.map((one) => one.workflowId))].sort();
  const filter =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      set(value);
      setChosen(null);
    };
  return (
    <>
      <div className="mb-4 flex flex-wrap gap-x-4 gap-y-2 empty:hidden">
        {user ? (
          <Choice
            name={t("inbox.whose")}
            value={assignee}
            options={choices(user).map((one) => [one, t(`inbox.${one}`)])}
            onChange={filter((one) => setAssignee(one as Assignee))}
          />
        ) : null}
        {workflows.length > 1 || workflow ? (
          <Choice
            name={t("inbox.workflow")}
            value={workflow}
            options={[["", t("inbox.any")], ...workflows.map((one): [string, string] => [one, workflowName(one)])]}
            onChange={filter(setWorkflow)}
          />
        ) : null}
      </div>
      {open.isPending ? <Loading /> : null}
      {open.isError ? <ErrorMessage error={open.error} onRetry={() => void open.refetch()} /> : null}
      {open.isSuccess && shown === null ? (
        unanswered.length > 0 || assignee !== "you" ? (
          <EmptyMessage title={t("inbox.noneSuch")}>{t("inbox.noneSuchHint")}</EmptyMessage>
        ) : (
          <EmptyMessage isNew title={t("inbox.none")}>
            {t("inbox.noneHint")}
          </EmptyMessage>
        )
      ) : null}
      <div className={shown ? "grid grid-cols-[minmax(0,1fr)] gap-4 md:grid-cols-[20rem_minmax(0,1fr)]" : "hidden"}>
        {shown ? <GateList gates={gates} shown={shown} onChoose={setChosen} /> : null}
        {cards.map(({ key, isShown, ...card }) => (
          <div
            key={key}
            hidden={!isShown}
            className={isShown ? "min-w-0 rounded-lg border border-line bg-surface p-4" : ""}
          >
            <GateCard {...card} isShown={isShown} readAt={open.dataUpdatedAt} />
          </div>
        ))}
      </div>
      <UndoToast held={held?.answer ?? null} onUndo={undo} />
    </>
  );
}
