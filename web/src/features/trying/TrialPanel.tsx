/** The displayed partial run: its status, open human tasks, controls and outcome. */

import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Ban, ExternalLink, Play, StepForward, X } from "lucide-react";
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import { ApiError } from "@/api/http";
import { control, execution } from "@/api/queries";
import { ENDED, type Execution, type JsonObject } from "@/api/views";
import { money } from "@/components/amounts";
import { Button } from "@/components/Button";
import { IconButton, iconLook } from "@/components/IconButton";
import { Status } from "@/components/Status";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import { useEditor } from "@/features/editor/editorContext";
import { stepName, useNodeName } from "@/graph/model/nodeNames";
import { Outcome } from "../execution/Outcome";
import { StepPanel } from "../execution/StepPanel";
import { Gates } from "../inbox/Gates";
import { tryoutOf, useTryout } from "./tryout";

type PausedExecution = Execution & { pausedBefore?: string | null };

export function TrialPanel({ id, trial }: { id: string; trial: string }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  const client = useQueryClient();
  const { node, draft, pick } = useEditor();
  const known = useQuery({ ...execution(trial), retry: false });
  const log = useTryout(id, (now) => now.log);
  const act = useMutation<Execution, ApiError, { verb: "resume" | "cancel"; body?: JsonObject }>({
    mutationFn: ({ verb, body }) => control(trial, verb, body ?? {}),
    onSuccess: (next) => {
      client.setQueryData(["execution", trial], next);
      log?.refresh();
    },
  });
  const now = known.data as PausedExecution | undefined;
  const clear = () => tryoutOf(id).getState().showExecution(null);
  const isGone = known.error instanceof ApiError && known.error.status === 404;
  useEffect(() => {
    // The execution was deleted, so there is nothing to show.
    if (isGone) tryoutOf(id).getState().showExecution(null);
  }, [id, isGone]);
  if (known.isError) return isGone ? null : <ErrorMessage error={known.error} onRetry={() => void known.refetch()} />;
  if (!now) return <Loading />;
  return (
    <section aria-label={t("try.shown")} className="rounded-md border border-line bg-raised px-4 pt-3">
      <div className="flex flex-wrap items-center gap-2">
        <Status status={now.status} />
        {now.usage.costUsd === null ? null : (
          <span className="text-xs text-ink-faint tabular-nums">{money(now.usage.costUsd)}</span>
        )}
        <span className="ml-auto flex gap-1">
          <Link
            to="/executions/$id"
            params={{ id: trial }}
            aria-label={t("try.open")}
            title={t("try.open")}
            className={iconLook()}
          >
            <ExternalLink className="size-4" aria-hidden />
          </Link>
          {ENDED.has(now.status) ? <IconButton icon={X} name={t("try.clear")} onClick={clear} /> : null}
        </span>
      </div>
      <div aria-live="polite">
        {now.pausedBefore ? (
          <p className="mt-2">{t("try.pausedBefore", { step: stepName(now.pausedBefore, nameOf) })}</p>
        ) : null}
      </div>
      {ENDED.has(now.status) ? null : (
        <div className="mt-2 flex flex-wrap gap-2">
          {now.status === "paused" ? (
            <>
              <Button onClick={() => act.mutate({ verb: "resume", body: { step: true } })} disabled={act.isPending}>
                <StepForward className="size-4" aria-hidden /> {t("try.step")}
              </Button>
              <Button onClick={() => act.mutate({ verb: "resume" })} disabled={act.isPending}>
                <Play className="size-4" aria-hidden /> {t("try.resume")}
              </Button>
            </>
          ) : null}
          <Button kind="danger" onClick={() => act.mutate({ verb: "cancel" })} disabled={act.isPending}>
            <Ban className="size-4" aria-hidden /> {t("try.cancel")}
          </Button>
        </div>
      )}
      {act.isError ? <ErrorMessage error={act.error} /> : null}
      <Gates execution={now} className="mt-3 rounded-md border border-waiting/50 p-3" onDone={() => log?.refresh()} />
      <div className="-mx-4">
        {node && log ? (
          <StepPanel
            execution={trial}
            node={node.id}
            step={null}
            focus={null}
            timeline={log.timeline}
            live={log.live}
            definition={draft.shown}
          />
        ) : (
          <Outcome execution={now} upTo={null} onPick={(one) => pick({ kind: "node", id: one })} />
        )}
      </div>
    </section>
  );
}
