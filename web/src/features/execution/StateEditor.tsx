import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { LabelledField } from "@/components/LabelledField";
import { Changes } from "@/values/Changes";
import { changesIn, isObject, type ValueChange } from "@/values/changes";
import { changedFields } from "./changedFields";

type JsonError = { kind: "wrong" | "noFields" } | { kind: "wrongAt"; line: string; column: string };

export interface EditedState {
  text: string;
  change: (text: string) => void;
  /** Why the text is not a JSON object; null if it is one. */
  error: JsonError | null;
  changes: ValueChange[];
  /** The changed fields, in the form that the API expects. */
  set: JsonObject;
}

/** Edit the data of an execution. A running execution changes its data meanwhile: the text is compared with the data as
 * they were when typing began, so that only the fields that the user changed are sent. */
export function useEditedState(now: JsonObject): EditedState {
  const [edit, setTyped] = useState<{ text: string; base: JsonObject } | null>(null);
  const state = edit?.base ?? now;
  const text = useMemo(() => edit?.text ?? JSON.stringify(state, null, 2), [edit, state]);
  const read = useMemo(() => parsed(text), [text]);
  const value = read.value ?? state;
  return {
    text,
    change: (text) => setTyped({ text, base: state }),
    error: read.error,
    changes: changesIn(state, value),
    set: changedFields(state, value),
  };
}

function parsed(text: string): { value?: JsonObject; error: JsonError | null } {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? { value, error: null } : { error: { kind: "noFields" } };
  } catch (why) {
    // Browsers word the error in English; the position has the same form in most of them.
    const [, line, column] = /line (\d+) column (\d+)/.exec(String(why)) ?? [];
    return { error: line && column ? { kind: "wrongAt", line, column } : { kind: "wrong" } };
  }
}

/** An editor for the data as JSON text, beside the list of changes. */
export function StateEditor({ edited }: { edited: EditedState }) {
  const { t } = useTranslation();
  return (
    <details open={edited.changes.length > 0 || edited.error !== null || undefined}>
      <summary className="min-h-6 cursor-pointer font-medium">{t("edited.title")}</summary>
      <div className="mt-2 grid gap-3 md:grid-cols-2">
        <LabelledField
          name={t("edited.data")}
          error={edited.error ? t(`edited.${edited.error.kind}`, { ...edited.error }) : undefined}
        >
          {({ className, ...its }) => (
            <textarea
              {...its}
              className={`${className} font-mono text-xs`}
              rows={14}
              spellCheck={false}
              value={edited.text}
              onChange={(event) => edited.change(event.target.value)}
            />
          )}
        </LabelledField>
        <div>
          <p className="mb-0.5 font-medium">{t("edited.changes")}</p>
          <Changes changes={edited.changes} />
        </div>
      </div>
    </details>
  );
}
