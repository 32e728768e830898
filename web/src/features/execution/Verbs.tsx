import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Ban, Download, GitFork, MessageSquare, Pause, Play, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { control, executionPath, removeExecution, type Verb } from "@/api/queries";
import { type Definition, ENDED, type Execution } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { IconButton, iconLook } from "@/components/IconButton";
import { ErrorMessage } from "@/components/StatusMessage";
import { useMay } from "@/components/useMay";
import { ForkDialog } from "./ForkDialog";
import { limitIn } from "./limit";
import { RaiseDialog } from "./RaiseDialog";
import { SteerDialog } from "./SteerDialog";

const OFFERED: Record<Execution["status"], readonly Verb[]> = {
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

type Asked = "fork" | "steer" | "raise" | "cancel" | "delete";

/** What can be done to an execution now. `at`: the row that is looked at, where it is not the last. */
export function Verbs(props: { execution: Execution; at: number | null; definition: Definition | undefined }) {
  const { t } = useTranslation();
  const one = props.execution;
  const client = useQueryClient();
  const navigate = useNavigate();
  const isOperator = useMay("operator");
  const isAdmin = useMay("admin");
  const [asked, setAsked] = useState<Asked | null>(null);
  const config = props.definition?.config as { humanInLoop?: string } | undefined;
  const isSteered = config?.humanInLoop === "real_time";
  const close = () => setAsked(null);
  const limit = limitIn(one);
  const took = (next: Execution) => client.setQueryData(["execution", one.executionId], next);
  const act = useMutation({ mutationFn: (verb: Verb) => control(one.executionId, verb), onSuccess: took });
  const remove = async () => {
    await removeExecution(one.executionId);
    await client.invalidateQueries({ queryKey: ["executions"] });
    await navigate({ to: "/executions" });
  };
  const press = (verb: Verb) => {
    if (verb === "cancel") setAsked("cancel");
    else if (verb === "resume" && limit) setAsked("raise");
    else act.mutate(verb);
  };
  return (
    <div className="flex flex-wrap items-center gap-2">
      {isOperator
        ? OFFERED[one.status].map((verb) => {
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
      {isOperator && isSteered && !ENDED.has(one.status) ? (
        <Button onClick={() => setAsked("steer")} title={t("execution.steerAbout")}>
          <MessageSquare className="size-4" /> {t("execution.steer")}
        </Button>
      ) : null}
      {isOperator ? (
        <Button onClick={() => setAsked("fork")} title={t("execution.forkAbout")}>
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
        <IconButton icon={Trash2} name={t("execution.delete")} kind="danger" onClick={() => setAsked("delete")} />
      ) : null}
      {act.isError ? <ErrorMessage why={act.error} /> : null}
      {asked === "cancel" ? (
        <Confirm
          title={t("execution.cancelSure")}
          about={t("execution.cancelAbout")}
          deed={t("execution.cancelDeed")}
          keep={t("execution.goesOn")}
          act={() => control(one.executionId, "cancel").then(took)}
          onClose={close}
        />
      ) : null}
      {asked === "delete" ? (
        <Confirm
          title={t("execution.deleteSure")}
          about={t("execution.deleteAbout")}
          deed={t("execution.delete")}
          act={remove}
          onClose={close}
        />
      ) : null}
      {asked === "raise" && limit ? <RaiseDialog execution={one} limit={limit} onClose={close} onDone={took} /> : null}
      {asked === "steer" ? (
        <SteerDialog execution={one} definition={props.definition} onClose={close} onDone={took} />
      ) : null}
      {asked === "fork" ? <ForkDialog execution={one} at={props.at} onClose={close} /> : null}
    </div>
  );
}
