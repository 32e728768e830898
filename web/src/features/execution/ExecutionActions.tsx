import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Ban, Download, GitFork, MessageSquare, Pause, PenLine, Play, Repeat, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { control, executionPath, removeExecution, start, type Verb } from "@/api/queries";
import { type Definition, ENDED, type Execution } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { IconButton, iconLook } from "@/components/IconButton";
import { ErrorMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { uniqueId } from "@/uniqueId";
import { StartDialog } from "../workflows/StartDialog";
import { ForkDialog } from "./ForkDialog";
import { limitIn } from "./limit";
import { RaiseDialog } from "./RaiseDialog";
import { SteerDialog } from "./SteerDialog";

const ACTIONS: Record<Execution["status"], readonly Verb[]> = {
  pending: ["cancel"],
  running: ["pause", "cancel"],
  stopped: ["resume", "cancel"],
  waiting: ["pause", "cancel"],
  paused: ["resume", "cancel"],
  interrupted: ["resume", "cancel"],
  completed: [],
  failed: ["retry"],
  cancelled: [],
};
const ICONS: Partial<Record<Verb, typeof Pause>> = { pause: Pause, resume: Play, cancel: Ban, retry: RotateCcw };

type OpenDialog = "fork" | "steer" | "raise" | "cancel" | "delete" | "start";

/** The actions that are possible on an execution now. `at` is the row on display, or null for the present state. */
export function ExecutionActions(props: {
  execution: Execution;
  at: number | null;
  definition: Definition | undefined;
}) {
  const { t } = useTranslation();
  const one = props.execution;
  const client = useQueryClient();
  const navigate = useNavigate();
  const isOperator = useHasRole("operator");
  const isAdmin = useHasRole("admin");
  const [openDialog, setOpenDialog] = useState<OpenDialog | null>(null);
  const config = props.definition?.config as { humanInLoop?: string } | undefined;
  const isSteerable = config?.humanInLoop === "real_time";
  const close = () => setOpenDialog(null);
  const limit = limitIn(one);
  const update = (next: Execution) => client.setQueryData(["execution", one.executionId], next);
  const act = useMutation({ mutationFn: (verb: Verb) => control(one.executionId, verb), onSuccess: update });
  const remove = async () => {
    await removeExecution(one.executionId);
    await client.invalidateQueries({ queryKey: ["executions"] });
    await navigate({ to: "/executions" });
  };
  const press = (verb: Verb) => {
    if (verb === "cancel") setOpenDialog("cancel");
    else if (verb === "resume" && limit) setOpenDialog("raise");
    else act.mutate(verb);
  };
  return (
    <div className="flex flex-wrap items-center gap-2">
      {isOperator
        ? ACTIONS[one.status].map((verb) => {
            const Icon = ICONS[verb] ?? Play;
            return (
              <Button
                key={verb}
                kind={verb === "cancel" ? "danger" : "plain"}
                onClick={() => press(verb)}
                disabled={act.isPending}
              >
                <Icon className="size-4" /> {t(`execution.${verb}`)}
              </Button>
            );
          })
        : null}
      {isOperator && isSteerable && !ENDED.has(one.status) ? (
        <Button onClick={() => setOpenDialog("steer")} title={t("execution.steerAbout")}>
          <MessageSquare className="size-4" /> {t("execution.steer")}
        </Button>
      ) : null}
      {isOperator ? <RunAgain execution={one} onEdit={() => setOpenDialog("start")} /> : null}
      {isOperator ? (
        <Button onClick={() => setOpenDialog("fork")} title={t("execution.forkAbout")}>
          <GitFork className="size-4" /> {props.at === null ? t("execution.fork") : t("execution.forkHere")}
        </Button>
      ) : null}
      {isOperator ? (
        <a
          href={`${executionPath(one.executionId)}/export`}
          download={`${one.executionId}.jsonl`}
          aria-label={t("execution.export")}
          title={t("execution.export")}
          className={iconLook("plain")}
        >
          <Download className="size-4" />
        </a>
      ) : null}
      {isAdmin && ENDED.has(one.status) ? (
        <IconButton icon={Trash2} name={t("execution.delete")} kind="danger" onClick={() => setOpenDialog("delete")} />
      ) : null}
      {act.isError ? <ErrorMessage error={act.error} /> : null}
      {openDialog === "cancel" ? (
        <Confirm
          title={t("execution.cancelSure")}
          about={t("execution.cancelAbout")}
          confirmLabel={t("execution.cancelConfirm")}
          cancelLabel={t("execution.goesOn")}
          action={() => control(one.executionId, "cancel").then(update)}
          onClose={close}
        />
      ) : null}
      {openDialog === "delete" ? (
        <Confirm
          title={t("execution.deleteSure")}
          about={t("execution.deleteAbout")}
          confirmLabel={t("execution.delete")}
          action={remove}
          onClose={close}
        />
      ) : null}
      {openDialog === "raise" && limit ? (
        <RaiseDialog execution={one} limit={limit} onClose={close} onDone={update} />
      ) : null}
      {openDialog === "steer" ? (
        <SteerDialog execution={one} definition={props.definition} onClose={close} onDone={update} />
      ) : null}
      {openDialog === "start" ? <StartDialog workflow={one.workflowId} input={one.input} onClose={close} /> : null}
      {openDialog === "fork" ? <ForkDialog execution={one} at={props.at} onClose={close} /> : null}
    </div>
  );
}

/** Start the workflow again: with the same input, or after the user edited it. */
function RunAgain({ execution, onEdit }: { execution: Execution; onEdit: () => void }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const again = useMutation({
    mutationFn: () => start(execution.workflowId, execution.input, uniqueId()),
    onSuccess: ({ executionId }) => navigate({ to: "/executions/$id", params: { id: executionId } }),
  });
  return (
    <>
      <Button onClick={() => again.mutate()} disabled={again.isPending} title={t("execution.againAbout")}>
        <Repeat className="size-4" /> {t("execution.again")}
      </Button>
      <IconButton icon={PenLine} kind="plain" name={t("execution.againEdited")} onClick={onEdit} />
      {again.isError ? <ErrorMessage error={again.error} /> : null}
    </>
  );
}
