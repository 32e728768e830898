/** A JSON value as a tree: objects and lists expand and collapse, long ones show more on demand. */
import { ChevronRight } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";

const SHOWN = 50;
const OPEN_DEPTH = 2;
const TEXT_SHOWN = 1_000;

export function JsonTree({ value }: { value: Json }) {
  return (
    <div className="overflow-auto rounded-md bg-sunken p-2.5 font-mono text-xs">
      <Branch name={null} value={value} depth={0} />
    </div>
  );
}

function Branch(props: { name: string | null; value: Json; depth: number }) {
  const { name, value, depth } = props;
  const { t } = useTranslation();
  const [open, setOpen] = useState(depth < OPEN_DEPTH);
  const [most, setMost] = useState(SHOWN);
  if (value === null || typeof value !== "object")
    return (
      <div className="flex gap-2 py-0.5 pl-5">
        <Name name={name} />
        <Leaf value={value} />
      </div>
    );
  const isList = Array.isArray(value);
  const parts: [string, Json][] = isList ? value.map((one, at) => [String(at), one]) : Object.entries(value);
  return (
    <div>
      <button
        type="button"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        className="flex min-h-6 w-full items-center gap-1 rounded text-left hover:bg-surface"
      >
        <ChevronRight className={`size-4 shrink-0 text-ink-faint ${open ? "rotate-90" : ""}`} aria-hidden />
        <Name name={name} />
        <span className="text-ink-faint">{t(isList ? "json.list" : "json.object", { count: parts.length })}</span>
      </button>
      {open ? (
        <div className="ml-2 border-l border-line pl-2">
          {parts.slice(0, most).map(([key, one]) => (
            <Branch key={key} name={key} value={one} depth={depth + 1} />
          ))}
          {parts.length > most ? (
            <button type="button" onClick={() => setMost(most * 4)} className="min-h-6 pl-5 text-accent underline">
              {t("json.more", { count: parts.length - most })}
            </button>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}

function Name({ name }: { name: string | null }) {
  return name === null ? null : <span className="shrink-0 text-accent">{name}:</span>;
}

function Leaf({ value }: { value: null | boolean | number | string }) {
  if (typeof value !== "string") return <span className="text-waiting">{String(value)}</span>;
  const shown = value.length > TEXT_SHOWN ? `${value.slice(0, TEXT_SHOWN)}…` : value;
  return (
    <span
      className="min-w-0 whitespace-pre-wrap wrap-anywhere"
      title={value.length > TEXT_SHOWN ? String(value.length) : undefined}
    >
      {shown}
    </span>
  );
}
