/** Trying what is on the screen, beside the canvas that shows how it goes. */

import { Calculator, Play } from "lucide-react";
import { lazy, Suspense, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Loading } from "@/components/StatusMessage";
import { useEditor } from "@/features/editor/editorContext";
import type { Fits } from "@/forms/SchemaForm";
import { Estimate } from "./Estimate";
import { MockList } from "./MockList";
import { NodeTrial } from "./NodeTrial";
import { ScrollIntoView } from "./ScrollIntoView";
import { StartError } from "./StartError";
import { TrialShown } from "./TrialShown";
import { tryoutOf, useTryout } from "./tryout";
import { useTrial } from "./useTrial";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

export default function TryPanel() {
  const { t } = useTranslation();
  const { id, draft, node } = useEditor();
  const verbs = useTrial();
  const { input, execution, refused } = useTryout(id, (now) => now);
  const acts = tryoutOf(id).getState();
  const fits = useRef<Fits>(null);
  /** What is wrong with the input is told at its fields; whatever else, by the server. */
  const ifItFits = (act: () => void) => () => {
    if (fits.current?.tell() !== false) act();
  };
  const run = () => {
    verbs.cost.reset();
    verbs.run.mutate({});
  };
  const told = verbs.cost.data;
  return (
    <div className="space-y-4">
      <div>
        <h2 className="font-semibold">{t("try.title")}</h2>
        <p className="text-ink-soft">{t("try.about")}</p>
      </div>
      <Suspense fallback={<Loading />}>
        <SchemaForm
          schema={draft.shown.input ?? { type: "object" }}
          value={input}
          onChange={acts.give}
          onSubmit={run}
          busy={verbs.run.isPending}
          fits={fits}
        />
      </Suspense>
      <div className="flex flex-wrap gap-2">
        <Button kind="primary" onClick={ifItFits(run)} disabled={verbs.run.isPending}>
          <Play className="size-4" aria-hidden /> {t("try.all")}
        </Button>
        <Button onClick={ifItFits(() => verbs.cost.mutate())} disabled={verbs.cost.isPending}>
          <Calculator className="size-4" aria-hidden /> {t("try.estimate")}
        </Button>
      </div>
      {refused ? (
        <ScrollIntoView>
          <StartError why={refused} />
        </ScrollIntoView>
      ) : null}
      {verbs.cost.isError ? (
        <ScrollIntoView>
          <StartError why={verbs.cost.error} />
        </ScrollIntoView>
      ) : null}
      {told ? (
        <ScrollIntoView key={verbs.cost.submittedAt}>
          <Estimate found={told.found} isOld={!verbs.isOfNow(told)} onClose={verbs.cost.reset} />
        </ScrollIntoView>
      ) : null}
      {execution === null ? null : (
        <ScrollIntoView key={execution}>
          <TrialShown id={id} trial={execution} />
        </ScrollIntoView>
      )}
      {node ? <NodeTrial id={id} node={node} verbs={verbs} /> : <p className="text-ink-faint">{t("try.pick")}</p>}
      <MockList id={id} />
    </div>
  );
}
