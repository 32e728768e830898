import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";

const CHARS_SHOWN = 2_000;

/** A readable value: text as it is, anything else as JSON. Long values are cut until the user expands them. `code`
 * shows text in a monospaced font. */
export function Value({ value, look = "text" }: { value: Json | undefined; look?: "text" | "code" }) {
  const { t } = useTranslation();
  const [isExpanded, setExpanded] = useState(false);
  const text = useMemo(() => (typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "")), [value]);
  if (value === undefined || value === null) return <p className="text-ink-faint">–</p>;
  const isLong = text.length > CHARS_SHOWN;
  return (
    <div>
      <pre
        className={`overflow-auto rounded-md bg-sunken p-2.5 text-xs break-words whitespace-pre-wrap ${typeof value === "string" && look === "text" ? "font-sans text-sm" : "font-mono"}`}
      >
        {isLong && !isExpanded ? `${text.slice(0, CHARS_SHOWN)}…` : text}
      </pre>
      {isLong ? (
        <button
          type="button"
          onClick={() => setExpanded(!isExpanded)}
          className="mt-1 min-h-6 text-xs text-accent underline"
        >
          {isExpanded ? t("value.less") : t("value.more", { count: text.length })}
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
