import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Ban, Columns2, Pause, Play, RotateCcw, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiError, apiRequest } from "@/api/http";
import type { ExecutionEntry, Schemas } from "@/api/views";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { useHasRole } from "@/components/useHasRole";

export type BulkVerb = Schemas["BulkBody"]["verb"];
export type BulkReport = Schemas["BulkResults"]["executions"][number];

/** The result of one verb on several executions. */
export interface BulkResult {
  verb: BulkVerb;
  executions: readonly BulkReport[];
}

/** The statuses in which a verb can apply. The server decides for each execution; this only hides verbs that none of
 * them would accept. */
const APPLICABLE: Record<BulkVerb, readonly ExecutionEntry["status"][]> = {
  pause: ["running", "waiting"],
  resume: ["paused", "interrupted", "stopped"],
  retry: ["failed"],
  cancel: ["pending", "running", "stopped", "waiting", "paused", "interrupted"],
  delete: ["completed", "failed", "cancelled"],
};
const ICONS = { pause: Pause, resume: Play, retry: RotateCcw, cancel: Ban, delete: Trash2 } as const;
const VERBS: readonly BulkVerb[] = ["pause", "resume", "retry", "cancel", "delete"];

/** The actions on the selected executions. */
export function BulkActions(props: {
  chosen: readonly ExecutionEntry[];
  onDone: (result: BulkResult) => void;
  onFailed: (why: ApiError) => void;
  onCompare: (first: string, second: string) => void;
}) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const isOperator = useHasRole("operator");
  const isAdmin = useHasRole("admin");
  const [toConfirm, setToConfirm] = useState<"cancel" | "delete" | null>(null);
  const applicable = (verb: BulkVerb) => props.chosen.filter((one) => APPLICABLE[verb].includes(one.status));
  const act = async (verb: BulkVerb) => {
    const executions = props.chosen.map((one) => one.executionId);
    const result = await apiRequest<Schemas["BulkResults"]>("/api/workflows/executions/bulk", {
      body: { verb, executions },
    });
    props.onDone({ verb, ...result });
    await client.invalidateQueries({ queryKey: ["executions"] });
  };
  const press = useMutation<void, ApiError, BulkVerb>({ mutationFn: act, onError: props.onFailed });
  // The older execution is on the left, as `before`.
  const [first, second] = [...props.chosen].sort((one, other) => one.startedAt - other.startedAt);
  return (
    <>
      {first && second && props.chosen.length === 2 ? (
        <Button onClick={() => props.onCompare(first.executionId, second.executionId)}>
          <Columns2 className="size-4" aria-hidden /> {t("executions.compare")}
        </Button>
      ) : null}
      {VERBS.filter((verb) => (verb === "delete" ? isAdmin : isOperator) && applicable(verb).length > 0).map((verb) => {
        const Icon = ICONS[verb];
        const isFinal = verb === "cancel" || verb === "delete";
        return (
          <Button
            key={verb}
            kind={isFinal ? "danger" : "plain"}
            className={isFinal ? "bg-surface" : ""}
            disabled={press.isPending}
            onClick={() => (isFinal ? setToConfirm(verb) : press.mutate(verb))}
          >
            <Icon className="size-4" aria-hidden /> {t(`execution.${verb}`)} ({applicable(verb).length})
          </Button>
        );
      })}
      {toConfirm ? (
        <Confirm
          title={t(`executions.${toConfirm}Sure`, { count: applicable(toConfirm).length })}
          about={t(`execution.${toConfirm}About`)}
          confirmLabel={t(`executions.${toConfirm}Confirm`, { count: applicable(toConfirm).length })}
          cancelLabel={toConfirm === "cancel" ? t("execution.goesOn") : undefined}
          action={() => act(toConfirm)}
          onClose={() => setToConfirm(null)}
        />
      ) : null}
    </>
  );
}
