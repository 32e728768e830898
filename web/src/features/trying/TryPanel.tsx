/** Panel that runs the unsaved workflow; the canvas shows its progress. */

import { Calculator, Play } from "lucide-react";
import { lazy, Suspense, useRef } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Loading } from "@/components/StatusMessage";
import { useEditor } from "@/features/editor/editorContext";
import type { FormValidity } from "@/forms/SchemaForm";
import { Estimate } from "./Estimate";
import { MockList } from "./MockList";
import { NodeTrial } from "./NodeTrial";
import { ScrollIntoView } from "./ScrollIntoView";
import { StartError } from "./StartError";
import { TrialPanel } from "./TrialPanel";
import { tryoutOf, useTryout } from "./tryout";
import { useTrial } from "./useTrial";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

export default function TryPanel() {
  const { t } = useTranslation();
  const { id, draft, node } = useEditor();
  const verbs = useTrial();
  const { input, execution, startError } = useTryout(id, (now) => now);
  const acts = tryoutOf(id).getState();
  const fits = useRef<FormValidity>(null);
  /** The form shows input problems at their fields; the server reports all others. */
  const ifValid = (act: () => void) => () => {
    if (fits.current?.showProblems() !== false) act();
  };
  const run = () => {
    verbs.cost.reset();
    verbs.run.mutate({});
  };
  const estimate = verbs.cost.data;
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
          onChange={acts.setInput}
          onSubmit={run}
          busy={verbs.run.isPending}
          validity={fits}
        />
      </Suspense>
      <div className="flex flex-wrap gap-2">
        <Button kind="primary" onClick={ifValid(run)} disabled={verbs.run.isPending}>
          <Play className="size-4" aria-hidden /> {t("try.all")}
        </Button>
        <Button onClick={ifValid(() => verbs.cost.mutate())} disabled={verbs.cost.isPending}>
          <Calculator className="size-4" aria-hidden /> {t("try.estimate")}
        </Button>
      </div>
      {startError ? (
        <ScrollIntoView>
          <StartError why={startError} />
        </ScrollIntoView>
      ) : null}
      {verbs.cost.isError ? (
        <ScrollIntoView>
          <StartError why={verbs.cost.error} />
        </ScrollIntoView>
      ) : null}
      {estimate ? (
        <ScrollIntoView key={verbs.cost.submittedAt}>
          <Estimate found={estimate.found} isOld={!verbs.isCurrent(estimate)} onClose={verbs.cost.reset} />
        </ScrollIntoView>
      ) : null}
      {execution === null ? null : (
        <ScrollIntoView key={execution}>
          <TrialPanel id={id} trial={execution} />
        </ScrollIntoView>
      )}
      {node ? <NodeTrial id={id} node={node} verbs={verbs} /> : <p className="text-ink-faint">{t("try.pick")}</p>}
      <MockList id={id} />
    </div>
  );
}
