/** A readable value: rendered (Markdown, fields), as text, or as a JSON tree; with copying. Large values are folded. */
import { Check, Copy } from "lucide-react";
import { lazy, type ReactNode, Suspense, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { copyToClipboard } from "@/components/clipboard";
import { IconButton } from "@/components/IconButton";
import { JsonTree } from "@/components/JsonTree";
import { Segments } from "@/components/Segments";
import { isObject } from "@/values/changes";
import { defaultMode, type Mode, modesOf, parsedJson, textOf } from "./valueModes";

const Markdown = lazy(() => import("@/components/Markdown"));

const CHARS_SHOWN = 2_000;
const DEPTH_MAX = 3;
/** Shorter values have no tools: what is shown is all there is. */
const TOOLS_FROM = 60;

/** `code` shows text in a monospaced font. */
export function Value({ value, look = "text" }: { value: Json | undefined; look?: "text" | "code" }) {
  const { t } = useTranslation();
  const [isExpanded, setExpanded] = useState(false);
  const [chosen, choose] = useState<Mode | null>(null);
  const text = useMemo(() => textOf(value), [value]);
  if (value === undefined || value === null) return <p className="text-ink-faint">–</p>;
  const modes = modesOf(value, text);
  const mode = chosen ?? (look === "code" ? "raw" : defaultMode(value, text));
  const isCut = text.length > CHARS_SHOWN && mode !== "json";
  const shown = isCut && !isExpanded ? `${text.slice(0, CHARS_SHOWN)}…` : text;
  return (
    <div>
      {text.length >= TOOLS_FROM || text.includes("\n") ? (
        <div className="mb-0.5 flex items-center justify-end gap-1">
          <Segments
            label={t("value.show")}
            choices={modes.map((one) => ({ id: one, name: t(`value.${one}`) }))}
            chosen={mode}
            onChoose={choose}
          />
          <CopyIcon text={text} />
        </div>
      ) : null}
      {mode === "json" ? (
        <JsonTree value={typeof value === "string" ? (parsedJson(value) ?? value) : value} />
      ) : mode === "rendered" ? (
        <div className="overflow-auto rounded-md bg-sunken p-2.5">
          <Rendered value={typeof value === "string" ? shown : value} depth={0} />
        </div>
      ) : (
        <pre
          className={`overflow-auto rounded-md bg-sunken p-2.5 text-xs break-words whitespace-pre-wrap ${typeof value === "string" && look === "text" ? "font-sans text-sm" : "font-mono"}`}
        >
          {shown}
        </pre>
      )}
      {isCut && (mode === "raw" || typeof value === "string") ? (
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

/** Texts as Markdown, objects as fields, lists as items; deeper values as a tree. */
function Rendered({ value, depth }: { value: Json; depth: number }): ReactNode {
  if (typeof value === "string")
    return (
      <Suspense fallback={<p className="whitespace-pre-wrap">{value}</p>}>
        <Markdown text={value} />
      </Suspense>
    );
  if (value === null || typeof value !== "object") return <span className="tabular-nums">{String(value)}</span>;
  if (depth >= DEPTH_MAX) return <JsonTree value={value} />;
  if (isObject(value))
    return (
      <dl className="space-y-1.5">
        {Object.entries(value).map(([name, one]) => (
          <div key={name}>
            <dt className="text-xs font-semibold break-words text-ink-soft">{name}</dt>
            <dd className="min-w-0">
              <Rendered value={one} depth={depth + 1} />
            </dd>
          </div>
        ))}
      </dl>
    );
  return (
    <ul className="list-disc space-y-1 pl-5">
      {(value as Json[]).map((one, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: items have no identity besides their index
        <li key={at}>
          <Rendered value={one} depth={depth + 1} />
        </li>
      ))}
    </ul>
  );
}

function CopyIcon({ text }: { text: string }) {
  const { t } = useTranslation();
  const [isCopied, setCopied] = useState(false);
  return (
    <>
      <IconButton
        icon={isCopied ? Check : Copy}
        size="small"
        name={t("value.copy")}
        onClick={() => void copyToClipboard(text).then(setCopied)}
      />
      <span role="status" className="sr-only">
        {isCopied ? t("copy.done") : ""}
      </span>
    </>
  );
}

export function Section({ title, children }: { title: string; children: ReactNode }) {
  return (
    <section className="mt-4 first:mt-0">
      <h3 className="mb-1 text-xs font-semibold tracking-wide text-ink-faint uppercase">{title}</h3>
      {children}
    </section>
  );
}
