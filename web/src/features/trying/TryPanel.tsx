/** Trying what is on the screen, beside the canvas that shows how it goes. */

import { Calculator, CircleDot, Pin, Play, X } from "lucide-react";
import { lazy, Suspense } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { Failed, Loading } from "@/components/Told";
import { useWork } from "../editor/work";
import { Estimate } from "./Estimate";
import { NodeTrial } from "./NodeTrial";
import { TrialShown } from "./TrialShown";
import { tryoutOf, useTryout } from "./tryout";
import { useTrial } from "./useTrial";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

export default function TryPanel() {
  const { t } = useTranslation();
  const { id, draft, node } = useWork();
  const verbs = useTrial();
  const { input, execution, refused } = useTryout(id, (now) => now);
  const acts = tryoutOf(id).getState();
  return (
    <div className="space-y-4">
      <div>
        <h2 className="font-semibold">{t("try.title")}</h2>
        <p className="text-ink-soft">{t("try.about")}</p>
      </div>
      <Suspense fallback={<Loading />}>
        <SchemaForm schema={draft.shown.input ?? { type: "object" }} value={input} onChange={acts.give} />
      </Suspense>
      <div className="flex flex-wrap gap-2">
        <Button kind="primary" onClick={() => verbs.run.mutate({})} disabled={verbs.run.isPending}>
          <Play className="size-4" aria-hidden /> {t("try.all")}
        </Button>
        <Button onClick={() => verbs.cost.mutate()} disabled={verbs.cost.isPending}>
          <Calculator className="size-4" aria-hidden /> {t("try.estimate")}
        </Button>
      </div>
      {refused ? <Failed why={refused} /> : null}
      {execution === null ? null : <TrialShown id={id} trial={execution} />}
      {verbs.cost.isError ? <Failed why={verbs.cost.error} /> : null}
      {verbs.cost.data ? <Estimate found={verbs.cost.data} /> : null}
      {node ? <NodeTrial id={id} node={node} verbs={verbs} /> : <p className="text-ink-faint">{t("try.pick")}</p>}
      <Placed id={id} />
    </div>
  );
}

/** All pins and breakpoints, to be looked at and taken away. */
function Placed({ id }: { id: string }) {
  const { t } = useTranslation();
  const { pick, draft } = useWork();
  const { pins, breakpoints } = useTryout(id, (now) => now);
  const acts = tryoutOf(id).getState();
  const placed = [
    ...Object.keys(pins).map((node) => ({ node, icon: Pin, word: "unpinNamed", drop: () => acts.unpin(node) })),
    ...breakpoints.map((node) => ({
      node,
      icon: CircleDot,
      word: "unstopNamed",
      drop: () => acts.stopAt(node, false),
    })),
  ];
  if (placed.length === 0) return null;
  return (
    <ul aria-label={t("try.placed")} className="divide-y divide-line rounded-md border border-line">
      {placed.map((one) => (
        <li key={`${one.word} ${one.node}`} className="flex items-center gap-2 px-3 py-1">
          <one.icon className="size-4 shrink-0 text-ink-faint" aria-hidden />
          <button
            type="button"
            onClick={() => pick({ kind: "node", id: one.node })}
            className="min-h-6 min-w-0 flex-1 truncate text-left hover:underline"
          >
            <bdi>{one.node}</bdi>
            {draft.shown.nodes.some((node) => node.id === one.node) ? null : (
              <span className="text-ink-faint"> {t("try.gone")}</span>
            )}
          </button>
          <IconButton icon={X} name={t(`try.${one.word}`, { node: one.node })} size="small" onClick={one.drop} />
        </li>
      ))}
    </ul>
  );
}
