import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";

const SHOWN = 2_000;

/** A value as people read it: text as text, the rest as JSON; long ones on demand. `code`: text in a fixed-width font. */
export function Value({ value, look = "text" }: { value: Json | undefined; look?: "text" | "code" }) {
  const { t } = useTranslation();
  const [whole, setWhole] = useState(false);
  const text = useMemo(() => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "")), [value]);
  if (value === undefined || value === null) return <p className="text-ink-faint">–</p>;
  const isLong = text.length > SHOWN;
  return (
    <div>
      <pre
        className={`overflow-auto rounded-md bg-sunken p-2.5 text-xs break-words whitespace-pre-wrap ${typeof value === "string" && look === "text" ? "font-sans text-sm" : "font-mono"}`}
      >
        {isLong && !whole ? `${text.slice(0, SHOWN)}…` : text}
      </pre>
      {isLong ? (
        <button type="button" onClick={() => setWhole(!whole)} className="mt-1 min-h-6 text-xs text-accent underline">
          {whole ? t("value.less") : t("value.more", { count: text.length })}
        </button>
      ) : null}
    </div>
  );
}

export function Section({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <section className="mt-4 first:mt-0">
      <h3 className="mb-1 text-xs font-semibold tracking-wide text-ink-faint uppercase">{title}</h3>
      {children}
    </section>
  );
}
