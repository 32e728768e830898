import { Wrench } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Problem } from "@/api/http";
import { Button } from "@/components/Button";
import { ErrorDetail, ServerText } from "@/components/ErrorDetail";
import { ErrorMessage } from "@/components/StatusMessage";
import { arrowName, useNodeName } from "@/graph/model/nodeNames";
import { fixesOf, fixOf } from "../document/fixes";
import { pickedAt } from "../document/pointers";
import { useEditor } from "../editorContext";

const SEVERITIES = ["error", "warning", "info"] as const;
const COLOURS = { error: "text-failed", warning: "text-waiting", info: "text-accent" };

/** Problems of the draft, with links to their fields, and fixes where those are certain. */
export default function ProblemsPanel() {
  const { t } = useTranslation();
  const { checked, draft, saved } = useEditor();
  // Fixes of other dialects apply to the author's document, not to the native definition on the screen.
  const isNative = saved.dialect === "native";
  const mended = isNative ? checked.problems.filter((one) => fixOf(one, draft.shown)) : [];
  return (
    <section aria-live="polite" aria-label={t("workflows.problems")} className="space-y-4">
      {checked.error ? <ErrorMessage error={checked.error} /> : null}
      {!checked.error && checked.problems.length === 0 ? (
        <p className="text-done">{t("workflows.noProblems")}</p>
      ) : null}
      {mended.length > 1 ? (
        <Button onClick={() => draft.act(...fixesOf(mended, draft.shown))}>
          <Wrench className="size-4" /> {t("editor.fixAll", { count: mended.length })}
        </Button>
      ) : null}
      {SEVERITIES.map((severity) => {
        const some = checked.problems.filter((one) => severityOf(one) === severity);
        if (some.length === 0) return null;
        return (
          <section key={severity} aria-label={t(`editor.problemsOf_${severity}`)}>
            <h3 className={`font-semibold ${COLOURS[severity]}`}>
              {t(`editor.problemsOf_${severity}`)} <span className="font-normal">{some.length}</span>
            </h3>
            <ul className="mt-1 divide-y divide-line">
              {some.map((one) => (
                <Entry key={`${one.pointer} ${one.code} ${one.message}`} problem={one} canFix={mended.includes(one)} />
              ))}
            </ul>
          </section>
        );
      })}
    </section>
  );
}

function severityOf(problem: Problem): (typeof SEVERITIES)[number] {
  return problem.severity === "error" || problem.severity === "warning" ? problem.severity : "info";
}

function Entry({ problem, canFix }: { problem: Problem; canFix: boolean }) {
  const { t } = useTranslation();
  const { draft, jump } = useEditor();
  const nameOf = useNodeName();
  const place = pickedAt(problem.pointer, draft.shown);
  return (
    <li className="flex items-start gap-2 py-2 text-sm">
      <div className="min-w-0 flex-1">
        {place ? (
          <p className="font-medium text-ink-soft" title={place.id}>
            <bdi>{place.kind === "node" ? nameOf(place.id) : arrowName(place.id, nameOf)}</bdi>
          </p>
        ) : null}
        <button type="button" onClick={() => jump(problem)} className="text-left break-words hover:underline">
          <ErrorDetail code={problem.code} message={problem.message} />
        </button>
        <ServerText text={problem.hint} look="text-ink-soft" />
        <p className="font-mono text-xs text-ink-faint">
          {problem.code}
          {problem.line === null ? "" : ` :${problem.line}`}
        </p>
      </div>
      {canFix ? (
        <Button className="h-7" onClick={() => draft.act(...(fixOf(problem, draft.shown) ?? []))}>
          <Wrench className="size-3.5" /> {t("editor.fix")}
        </Button>
      ) : null}
    </li>
  );
}
