/** A value that is free to be anything, as JSON: taken as soon as it can be read. */

import { lazy, Suspense, useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import type { BoxProps } from "./fieldContext";

const DocumentEditor = lazy(() => import("@/forms/code/DocumentEditor"));

export function JsonBox(box: BoxProps) {
  const { t } = useTranslation();
  const kept = box.value === undefined ? "" : JSON.stringify(box.value, null, 2);
  const [text, setText] = useState(kept);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    setText((now) => (same(now, kept) ? now : kept));
    setBroken(false);
  }, [kept]);
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

function same(text: string, kept: string): boolean {
  try {
    return JSON.stringify(JSON.parse(text)) === JSON.stringify(kept === "" ? undefined : JSON.parse(kept));
  } catch {
    return text.trim() === kept;
  }
}
