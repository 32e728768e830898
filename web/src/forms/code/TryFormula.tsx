/** Evaluate a formula with sample values and show its result or error. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorDetail } from "@/components/ErrorDetail";
import { ErrorMessage } from "@/components/StatusMessage";
import type { FormulaScope } from "@/features/editor/document/formulaScope";
import { type FormulaSyntax, objectOf } from "@/features/editor/document/shapes";
import DocumentEditor from "./DocumentEditor";
import { checkFormula, evaluateFormula, valuesFor } from "./formulas";

interface Props {
  text: string;
  spelled: FormulaSyntax;
  known: FormulaScope;
  /** Field values of the last execution; null without an execution. */
  sample: JsonObject | null;
}

export default function TryFormula({ text, spelled, known, sample }: Props) {
  const { t } = useTranslation();
  const checked = useQuery({
    queryKey: ["expressions", "check", text, spelled, known.dialect, known.localNames],
    queryFn: ({ signal }) => checkFormula(text, spelled, { ...known, schemas: {} }, signal),
    placeholderData: (before) => before,
  });
  const [typed, setTyped] = useState<string | null>(null);
  const suggested = valuesFor(checked.data?.reads ?? [], sample ?? {});
  const shown = typed ?? JSON.stringify(suggested, null, 2);
  const values = readOf(shown);
  const evaluated = useQuery({
    queryKey: ["expressions", "evaluate", text, spelled, known.dialect, known.localNames, values],
    queryFn: ({ signal }) => evaluateFormula(text, spelled, known, values ?? {}, signal),
    enabled: values !== null && text.trim() !== "",
    placeholderData: (before) => before,
  });
  // If the formula reads other names, add them to the values that the user typed.
  const names = Object.keys(suggested).join(" ");
  // biome-ignore lint/correctness/useExhaustiveDependencies: only when the names change
  useEffect(() => {
    setTyped((now) => {
      const known = now === null ? null : readOf(now);
      return known === null ? now : JSON.stringify({ ...suggested, ...known }, null, 2);
    });
  }, [names]);
  return (
    <div className="mt-1 space-y-2 rounded-md border border-line bg-sunken p-2">
      <div className="flex items-center gap-2">
        <p className="flex-1 text-sm font-medium">{t("formula.values")}</p>
        {sample && typed !== null ? (
          <Button kind="quiet" className="h-6 px-2 text-xs" onClick={() => setTyped(null)}>
            {t("formula.fromLast")}
          </Button>
        ) : null}
      </div>
      {/* Not before the names are known, because late values would replace text that the user is typing. */}
      {checked.isPending ? null : (
        <DocumentEditor isSmall format="json" label={t("formula.values")} value={shown} onChange={setTyped} />
      )}
      <output aria-label={t("formula.gives")} className="block text-sm">
        {values === null ? (
          <span className="text-failed">{t("editor.noJson")}</span>
        ) : evaluated.error ? (
          <ErrorMessage error={evaluated.error} />
        ) : evaluated.data ? (
          <FormulaResult data={evaluated.data} />
        ) : null}
      </output>
    </div>
  );
}

function FormulaResult({
  data,
}: {
  data: {
    ok: boolean;
    value?: unknown;
    missing: string[];
    failure: { code: string; message: string; hint: string } | null;
  };
}) {
  const { t } = useTranslation();
  if (data.failure)
    return (
      <ErrorDetail
        code={data.failure.code}
        message={data.failure.message}
        hint={data.failure.hint}
        look="text-failed"
      />
    );
  const value = data.value as Json;
  return (
    <>
      <span className="text-ink-soft">{t("formula.gives")} </span>
      <span className="font-mono text-xs break-words whitespace-pre-wrap">
        {typeof value === "string" ? value || '""' : JSON.stringify(value, null, 1)}
      </span>
      {data.missing.length > 0 ? (
        <span className="block text-waiting">{t("formula.missing", { names: data.missing.join(", ") })}</span>
      ) : null}
    </>
  );
}

function readOf(text: string): JsonObject | null {
  try {
    const value = JSON.parse(text || "{}") as Json;
    return value !== null && typeof value === "object" && !Array.isArray(value) ? objectOf(value) : null;
  } catch {
    return null;
  }
}
