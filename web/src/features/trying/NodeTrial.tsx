/** Partial-run actions of the selected node: run it, run up to it, mock its result, set a breakpoint before it. */
import { CircleDot, Pin, PinOff, Play, SkipForward } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode } from "@/api/views";
import { Button } from "@/components/Button";
import { useNodeName } from "@/graph/model/nodeNames";
import { isPinnable, isRunnable } from "./lastRuns";
import { PinnedValue } from "./PinnedValue";
import { tryoutOf, useTryout } from "./tryout";
import type { TrialVerbs } from "./useTrial";

export function NodeTrial({ id, node, verbs }: { id: string; node: DefinitionNode; verbs: TrialVerbs }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  const pinned = useTryout(id, (now) => now.pins[node.id]);
  const hasBreakpoint = useTryout(id, (now) => now.breakpoints.includes(node.id));
  const acts = tryoutOf(id).getState();
  const results = verbs.resultsOf(node.id);
  const isBusy = verbs.run.isPending;
  if (!isRunnable(node.type)) return <p className="text-ink-faint">{t("try.pick")}</p>;
  return (
    <section aria-label={t("try.node", { node: nameOf(node.id) })} className="rounded-md border border-line p-3">
      <h3 className="line-clamp-2 font-medium wrap-anywhere" title={node.id}>
        <bdi>{nameOf(node.id)}</bdi>
      </h3>
      <div className="mt-2 flex flex-wrap gap-2">
        <Button onClick={() => verbs.run.mutate({ until: node.id, fresh: false })} disabled={isBusy}>
          <Play className="size-4" aria-hidden /> {t("try.onlyThis")}
        </Button>
        <Button onClick={() => verbs.run.mutate({ until: node.id })} disabled={isBusy}>
          <SkipForward className="size-4" aria-hidden /> {t("try.toThis")}
        </Button>
        <Button aria-pressed={hasBreakpoint} onClick={() => acts.setBreakpoint(node.id, !hasBreakpoint)}>
          <CircleDot className={`size-4 ${hasBreakpoint ? "text-failed" : ""}`} aria-hidden />{" "}
          {hasBreakpoint ? t("try.unstop") : t("try.stop")}
        </Button>
        {!isPinnable(node.type) ? null : pinned === undefined ? (
          <Button onClick={() => void verbs.pin(node)} title={results.length > 0 ? t("try.pinAbout") : ""}>
            <Pin className="size-4" aria-hidden /> {results.length > 0 ? t("try.pin") : t("try.pinOwn")}
          </Button>
        ) : (
          <Button onClick={() => acts.unpin(node.id)}>
            <PinOff className="size-4" aria-hidden /> {t("try.unpin")}
          </Button>
        )}
      </div>
      <p className="mt-2 text-xs text-ink-faint">{t("try.onlyThisAbout")}</p>
      {pinned === undefined ? null : <PinnedValue key={node.id} id={id} node={node} value={pinned} known={results} />}
    </section>
  );
}
