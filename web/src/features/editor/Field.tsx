import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, Text } from "@/api/views";
import { textIn } from "@/i18n";
import type { FieldShape } from "./language";

/** One value of a node. Emptied, it is gone from the document. */
export function Field(props: {
  shape: FieldShape;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}) {
  const { shape, value, onChange } = props;
  const { t } = useTranslation();
  const id = useId();
  const dress = "mt-0.5 w-full rounded-md border border-line-strong bg-surface px-2 py-1.5";
  return (
    <div>
      <label htmlFor={id} className="font-medium">
        {shape.name}
        {shape.required ? <span className="text-failed"> *</span> : null}
      </label>
      {shape.control === "boolean" ? (
        <input
          id={id}
          type="checkbox"
          checked={value === true}
          onChange={(event) => onChange(event.target.checked ? true : undefined)}
          className="ml-2 size-4 align-middle"
        />
      ) : shape.control === "choice" ? (
        <select
          id={id}
          value={typeof value === "string" ? value : ""}
          onChange={(event) => onChange(event.target.value || undefined)}
          className={dress}
        >
          <option value="">{t("editor.unset")}</option>
          {shape.choices.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      ) : shape.control === "number" ? (
        <input
          id={id}
          type="number"
          value={typeof value === "number" ? value : ""}
          onChange={(event) => onChange(event.target.value === "" ? undefined : Number(event.target.value))}
          className={dress}
        />
      ) : shape.control === "words" ? (
        <Words id={id} value={value} onChange={onChange} className={dress} />
      ) : shape.control === "json" || (value !== undefined && typeof value === "object" && value !== null) ? (
        <JsonText id={id} value={value} onChange={onChange} className={`${dress} font-mono text-xs`} />
      ) : (
        <PlainText id={id} isLong={shape.control === "long"} value={value} onChange={onChange} className={dress} />
      )}
      {shape.about ? <p className="mt-0.5 text-xs text-ink-faint">{shape.about}</p> : null}
    </div>
  );
}

interface Inner {
  id: string;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  className: string;
}

function PlainText({ id, value, onChange, className, isLong }: Inner & { isLong: boolean }) {
  const text = value === undefined || value === null ? "" : textIn(value as Text, "en", String(value));
  const change = (next: string) => onChange(next === "" ? undefined : next);
  return isLong ? (
    <textarea
      id={id}
      rows={Math.min(14, Math.max(3, text.split("\n").length + 1))}
      value={text}
      onChange={(event) => change(event.target.value)}
      className={className}
    />
  ) : (
    <input id={id} value={text} onChange={(event) => change(event.target.value)} className={className} />
  );
}

/** Several words, one a line. */
function Words({ id, value, onChange, className }: Inner) {
  const kept = Array.isArray(value) ? value.map(String).join("\n") : "";
  const [text, setText] = useState(kept);
  useEffect(() => setText((now) => (lines(now).join("\n") === kept ? now : kept)), [kept]);
  return (
    <textarea
      id={id}
      rows={Math.max(2, text.split("\n").length)}
      value={text}
      onChange={(event) => {
        setText(event.target.value);
        const words = lines(event.target.value);
        onChange(words.length > 0 ? words : undefined);
      }}
      className={className}
    />
  );
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((one) => one.trim())
    .filter(Boolean);
}

/** A value as JSON: taken as soon as it can be read. */
function JsonText({ id, value, onChange, className }: Inner) {
  const { t } = useTranslation();
  const kept = value === undefined ? "" : JSON.stringify(value, null, 2);
  const [text, setText] = useState(kept);
  const [wrong, setWrong] = useState(false);
  useEffect(() => {
    setText((now) => (same(now, kept) ? now : kept));
    setWrong(false);
  }, [kept]);
  return (
    <>
      <textarea
        id={id}
        rows={Math.min(16, Math.max(2, text.split("\n").length))}
        spellCheck={false}
        aria-invalid={wrong}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          if (!event.target.value.trim()) {
            setWrong(false);
            onChange(undefined);
            return;
          }
          try {
            onChange(JSON.parse(event.target.value) as Json);
            setWrong(false);
          } catch {
            setWrong(true);
          }
        }}
        className={className}
      />
      {wrong ? <p className="text-xs text-failed">{t("editor.noJson")}</p> : null}
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
