import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { LabelledField } from "@/components/LabelledField";
import { Changes } from "@/values/Changes";
import { changesIn, isObject, type ValueChange } from "@/values/changes";
import { fieldsSet } from "./edits";

type Wrong = { kind: "wrong" | "noFields" } | { kind: "wrongAt"; line: string; column: string };

export interface Edited {
  text: string;
  change: (text: string) => void;
  /** Why the text is no data; null where it is. */
  wrong: Wrong | null;
  changes: ValueChange[];
  /** The fields that differ, as they are put. */
  set: JsonObject;
}

/** An execution that goes on changes its data: what was typed is compared with the data as they were then, so that
 * only what somebody changed is put. */
export function useEdited(now: JsonObject): Edited {
  const [typed, setTyped] = useState<{ text: string; over: JsonObject } | null>(null);
  const state = typed?.over ?? now;
  const text = useMemo(() => typed?.text ?? JSON.stringify(state, null, 2), [typed, state]);
  const read = useMemo(() => parsed(text), [text]);
  const value = read.value ?? state;
  return {
    text,
    change: (text) => setTyped({ text, over: state }),
    wrong: read.wrong,
    changes: changesIn(state, value),
    set: fieldsSet(state, value),
  };
}

function parsed(text: string): { value?: JsonObject; wrong: Wrong | null } {
  try {
    const value = JSON.parse(text) as Json;
    return isObject(value) ? { value, wrong: null } : { wrong: { kind: "noFields" } };
  } catch (why) {
    // Browsers say what is wrong in English; where it is, most of them say alike.
    const [, line, column] = /line (\d+) column (\d+)/.exec(String(why)) ?? [];
    return { wrong: line && column ? { kind: "wrongAt", line, column } : { kind: "wrong" } };
  }
}

/** The data as text to be changed, and what changes. */
export function EditedState({ edited }: { edited: Edited }) {
  const { t } = useTranslation();
  return (
    <details open={edited.changes.length > 0 || edited.wrong !== null || undefined}>
      <summary className="min-h-6 cursor-pointer font-medium">{t("edited.title")}</summary>
      <div className="mt-2 grid gap-3 md:grid-cols-2">
        <LabelledField
          name={t("edited.data")}
          wrong={edited.wrong ? t(`edited.${edited.wrong.kind}`, { ...edited.wrong }) : undefined}
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
