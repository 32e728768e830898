import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Ban, Columns2, Pause, Play, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, ask } from "@/api/http";
import type { ExecutionEntry, Schemas } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { useMay } from "@/components/useMay";

export type ManyVerb = Schemas["BulkBody"]["verb"];
export type BulkReport = Schemas["BulkResults"]["executions"][number];

/** What became of some, and of what verb. */
export interface BulkResult {
  verb: ManyVerb;
  executions: readonly BulkReport[];
}

/** In which statuses a verb means something: the server tells so of each; this only leaves out what none would take. */
const FITTING: Record<ManyVerb, readonly ExecutionEntry["status"][]> = {
  pause: ["running", "waiting"],
  resume: ["paused", "interrupted", "stopped"],
  retry: ["failed"],
  cancel: ["pending", "running", "stopped", "waiting", "paused", "interrupted"],
  delete: ["completed", "failed", "cancelled"],
};
const ICONS = { pause: Pause, resume: Play, retry: RotateCcw, cancel: Ban, delete: Trash2 } as const;
const VERBS: readonly ManyVerb[] = ["pause", "resume", "retry", "cancel", "delete"];

/** What can be done to those that are ticked. */
export function ManyVerbs(props: {
  chosen: readonly ExecutionEntry[];
  onDone: (became: BulkResult) => void;
  onFailed: (why: ApiError) => void;
  onCompare: (first: string, second: string) => void;
}) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const isOperator = useMay("operator");
  const isAdmin = useMay("admin");
  const [asked, setAsked] = useState<"cancel" | "delete" | null>(null);
  const fitting = (verb: ManyVerb) => props.chosen.filter((one) => FITTING[verb].includes(one.status));
  const act = async (verb: ManyVerb) => {
    const executions = props.chosen.map((one) => one.executionId);
    const became = await ask<Schemas["BulkResults"]>("/api/workflows/executions/bulk", { body: { verb, executions } });
    props.onDone({ verb, ...became });
    await client.invalidateQueries({ queryKey: ["executions"] });
  };
  const press = useMutation<void, ApiError, ManyVerb>({ mutationFn: act, onError: props.onFailed });
  const [first, second] = props.chosen;
  return (
    <>
      {first && second && props.chosen.length === 2 ? (
        <Button onClick={() => props.onCompare(second.executionId, first.executionId)}>
          <Columns2 className="size-4" aria-hidden /> {t("executions.compare")}
        </Button>
      ) : null}
      {VERBS.filter((verb) => (verb === "delete" ? isAdmin : isOperator) && fitting(verb).length > 0).map((verb) => {
        const Icon = ICONS[verb];
        const isFinal = verb === "cancel" || verb === "delete";
        return (
          <Button
            key={verb}
            kind={isFinal ? "danger" : "plain"}
            className={isFinal ? "bg-surface" : ""}
            disabled={press.isPending}
            onClick={() => (isFinal ? setAsked(verb) : press.mutate(verb))}
          >
            <Icon className="size-4" aria-hidden /> {t(`execution.${verb}`)} ({fitting(verb).length})
          </Button>
        );
      })}
      {asked ? (
        <Confirm
          title={t(`executions.${asked}Sure`, { count: fitting(asked).length })}
          about={t(`execution.${asked}About`)}
          deed={t(`executions.${asked}Deed`, { count: fitting(asked).length })}
          keep={asked === "cancel" ? t("execution.goesOn") : undefined}
          act={() => act(asked)}
          onClose={() => setAsked(null)}
        />
      ) : null}
    </>
  );
}
