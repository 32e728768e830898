/** What can be tried of the node that is picked: run it, run to it, pin what it brought, stop before it. */
import { CircleDot, Pin, PinOff, Play, SkipForward } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode } from "@/api/views";
import { Button } from "@/components/Button";
import { useNodeName } from "@/graph/model/nodeNames";
import { isPinnable, isRun } from "./lastRuns";
import { PinnedValue } from "./PinnedValue";
import { tryoutOf, useTryout } from "./tryout";
import type { TrialVerbs } from "./useTrial";

export function NodeTrial({ id, node, verbs }: { id: string; node: DefinitionNode; verbs: TrialVerbs }) {
  const { t } = useTranslation();
  const called = useNodeName();
  const pinned = useTryout(id, (now) => now.pins[node.id]);
  const isStop = useTryout(id, (now) => now.breakpoints.includes(node.id));
  const acts = tryoutOf(id).getState();
  const brought = verbs.brought(node.id);
  const isBusy = verbs.run.isPending;
  if (!isRun(node.type)) return <p className="text-ink-faint">{t("try.pick")}</p>;
  return (
    <section aria-label={t("try.node", { node: called(node.id) })} className="rounded-md border border-line p-3">
      <h3 className="line-clamp-2 font-medium wrap-anywhere" title={node.id}>
        <bdi>{called(node.id)}</bdi>
      </h3>
      <div className="mt-2 flex flex-wrap gap-2">
        <Button onClick={() => verbs.run.mutate({ until: node.id, fresh: false })} disabled={isBusy}>
          <Play className="size-4" aria-hidden /> {t("try.onlyThis")}
        </Button>
        <Button onClick={() => verbs.run.mutate({ until: node.id })} disabled={isBusy}>
          <SkipForward className="size-4" aria-hidden /> {t("try.toThis")}
        </Button>
        <Button aria-pressed={isStop} onClick={() => acts.stopAt(node.id, !isStop)}>
          <CircleDot className={`size-4 ${isStop ? "text-failed" : ""}`} aria-hidden />{" "}
          {isStop ? t("try.unstop") : t("try.stop")}
        </Button>
        {!isPinnable(node.type) ? null : pinned === undefined ? (
          <Button onClick={() => void verbs.pin(node)} title={brought.length > 0 ? t("try.pinAbout") : ""}>
            <Pin className="size-4" aria-hidden /> {brought.length > 0 ? t("try.pin") : t("try.pinOwn")}
          </Button>
        ) : (
          <Button onClick={() => acts.unpin(node.id)}>
            <PinOff className="size-4" aria-hidden /> {t("try.unpin")}
          </Button>
        )}
      </div>
      <p className="mt-2 text-xs text-ink-faint">{t("try.onlyThisAbout")}</p>
      {pinned === undefined ? null : <PinnedValue key={node.id} id={id} node={node} value={pinned} known={brought} />}
    </section>
  );
}
