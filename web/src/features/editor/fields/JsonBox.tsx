/** Editor for any value as JSON; valid input is applied immediately. */

import { lazy, Suspense, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import type { BoxProps } from "./fieldContext";

const DocumentEditor = lazy(() => import("@/forms/code/DocumentEditor"));

export function JsonBox(box: BoxProps) {
  const { t } = useTranslation();
  const storedText = box.value === undefined ? "" : JSON.stringify(box.value, null, 2);
  const [text, setText] = useState(storedText);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    setText((now) => (isSameJson(now, storedText) ? now : storedText));
    setBroken(false);
  }, [storedText]);
  const change = (next: string) => {
    setText(next);
    try {
      box.onChange(next.trim() ? (JSON.parse(next) as Json) : undefined);
      setBroken(false);
    } catch {
      setBroken(true);
    }
  };
  return (
    <>
      <Suspense
        fallback={
          <pre data-coming className="rounded-md border border-line p-2 font-mono text-xs">
            {text}
          </pre>
        }
      >
        <DocumentEditor isSmall format="json" label={box.name} value={text} onChange={change} />
      </Suspense>
      {isBroken ? <p className="text-xs text-failed">{t("editor.noJson")}</p> : null}
    </>
  );
}

function isSameJson(text: string, stored: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(stored === "" ? undefined : JSON.parse(stored));
  } catch {
    return text.trim() === stored;
  }
}
