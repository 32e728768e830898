/** Basic input controls. */

import { Plus, X } from "lucide-react";
import { useEffect, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { LANGUAGE_NAMES, LANGUAGES } from "@/i18n";
import { useServerTexts } from "@/i18n/given";
import { objectOf } from "../document/shapes";
import type { BoxProps } from "./fieldContext";

export const FIELD_STYLE = "w-full rounded-md border bg-surface px-2 py-1.5";

export function fieldStyle(isWrong: boolean): string {
  return `${FIELD_STYLE} ${isWrong ? "border-failed" : "border-line-strong"}`;
}

export function ariaProps(box: BoxProps) {
  return { id: box.id, "aria-describedby": box.describedBy, "aria-invalid": box.isWrong };
}

export function TextBox(box: BoxProps & { kind: "text" | "long" | "duration" | "size"; isCode?: boolean }) {
  const { t } = useTranslation();
  const { value, onChange, kind } = box;
  if (value !== null && typeof value === "object") return <LocalizedText {...box} isLong={kind === "long"} />;
  const text = value === undefined || value === null ? "" : String(value);
  const change = (next: string) => onChange(next === "" ? undefined : next);
  if (kind === "long")
    return (
      <textarea
        {...ariaProps(box)}
        rows={Math.min(14, Math.max(2, text.split("\n").length + 1))}
        value={text}
        spellCheck={!box.isCode}
        onChange={(event) => change(event.target.value)}
        className={`${fieldStyle(box.isWrong)} resize-y ${box.isCode ? "font-mono text-xs" : ""}`}
      />
    );
  const example = kind === "duration" ? t("editor.durationExample") : kind === "size" ? t("editor.sizeExample") : "";
  return (
    <input
      {...ariaProps(box)}
      value={text}
      placeholder={example}
      onChange={(event) => change(event.target.value)}
      className={fieldStyle(box.isWrong)}
    />
  );
}

export function BooleanBox(box: BoxProps) {
  return (
    <input
      {...ariaProps(box)}
      type="checkbox"
      checked={box.value === true}
      onChange={(event) => box.onChange(event.target.checked ? true : box.value === undefined ? undefined : false)}
      className="size-4"
    />
  );
}

export function NumberBox(box: BoxProps & { least: number | null; most: number | null; isWhole: boolean }) {
  return (
    <input
      {...ariaProps(box)}
      type="number"
      step={box.isWhole ? 1 : "any"}
      {...(box.least === null ? {} : { min: box.least })}
      {...(box.most === null ? {} : { max: box.most })}
      value={typeof box.value === "number" ? box.value : ""}
      onChange={(event) => box.onChange(event.target.value === "" ? undefined : Number(event.target.value))}
      className={fieldStyle(box.isWrong)}
    />
  );
}

export function Choice(box: BoxProps & { field: string; choices: string[] }) {
  const { t } = useTranslation();
  const given = useServerTexts();
  const value = typeof box.value === "string" ? box.value : "";
  const choices = value && !box.choices.includes(value) ? [...box.choices, value] : box.choices;
  return (
    <select
      {...ariaProps(box)}
      value={value}
      onChange={(event) => box.onChange(event.target.value || undefined)}
      className={fieldStyle(box.isWrong)}
    >
      <option value="">{t("editor.unset")}</option>
      {choices.map((one) => (
        <option key={one} value={one}>
          {given.choice(box.field, one)}
        </option>
      ))}
    </select>
  );
}

/** Checkboxes for a list of fixed choices. */
export function Choices(box: BoxProps & { field: string; choices: string[] }) {
  const given = useServerTexts();
  const picked = Array.isArray(box.value) ? box.value.map(String) : [];
  return (
    <fieldset aria-labelledby={box.labelledBy} className="flex flex-wrap gap-x-4 gap-y-1">
      {box.choices.map((one) => (
        <label key={one} className="flex min-h-6 items-center gap-1.5">
          <input
            type="checkbox"
            className="size-4"
            checked={picked.includes(one)}
            onChange={(event) => {
              const next = box.choices.filter((other) =>
                other === one ? event.target.checked : picked.includes(other),
              );
              box.onChange(next.length > 0 ? next : undefined);
            }}
          />
          {given.choice(box.field, one)}
        </label>
      ))}
    </fieldset>
  );
}

/** List of strings, one per line. */
export function Words(box: BoxProps) {
  const stored = Array.isArray(box.value) ? box.value.map(String).join("\n") : "";
  const [text, setText] = useState(stored);
  useEffect(() => setText((now) => (lines(now).join("\n") === stored ? now : stored)), [stored]);
  const { t } = useTranslation();
  return (
    <textarea
      {...ariaProps(box)}
      aria-labelledby={box.labelledBy}
      placeholder={t("editor.onePerLine")}
      rows={Math.max(2, text.split("\n").length)}
      value={text}
      onChange={(event) => {
        setText(event.target.value);
        const words = lines(event.target.value);
        box.onChange(words.length > 0 ? words : undefined);
      }}
      className={fieldStyle(box.isWrong)}
    />
  );
}

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((one) => one.trim())
    .filter(Boolean);
}

/** Any value: JSON such as a number, true or a list is parsed; other input is a string. */
export function ValueBox(box: BoxProps) {
  const { t } = useTranslation();
  const stored = textOfValue(box.value);
  const [text, setText] = useState(stored);
  useEffect(() => setText((now) => (textOfValue(valueOfText(now)) === stored ? now : stored)), [stored]);
  return (
    <textarea
      {...ariaProps(box)}
      rows={Math.min(10, Math.max(1, text.split("\n").length))}
      value={text}
      spellCheck={false}
      placeholder={t("editor.anyValue")}
      onChange={(event) => {
        setText(event.target.value);
        box.onChange(valueOfText(event.target.value));
      }}
      className={`${fieldStyle(box.isWrong)} resize-y font-mono text-xs`}
    />
  );
}

/** A string that would parse as another value is quoted. */
export function textOfValue(value: Json | undefined): string {
  if (value === undefined) return "";
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  return valueOfText(value) === value ? value : JSON.stringify(value);
}

export function valueOfText(text: string): Json | undefined {
  if (text === "") return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** A text in several languages. */
export function LocalizedText(box: BoxProps & { isLong: boolean }) {
  const { t } = useTranslation();
  const texts = objectOf(box.value);
  const free = LANGUAGES.filter((one) => !(one in texts));
  const Part = box.isLong ? "textarea" : "input";
  const change = (language: string, text: string | undefined) => {
    const rest = Object.fromEntries(Object.entries(texts).filter(([name]) => name !== language || text !== undefined));
    const next = text === undefined ? rest : { ...rest, [language]: text };
    box.onChange(Object.keys(next).length > 0 ? next : undefined);
  };
  return (
    <fieldset aria-labelledby={box.labelledBy} className="space-y-1">
      {Object.entries(texts).map(([language, text], at) => (
        <div key={language} className="flex items-start gap-1">
          <span className="w-8 pt-1.5 font-mono text-xs text-ink-faint">{language}</span>
          <Part
            {...(at === 0 ? { id: box.id } : {})}
            aria-label={`${box.name} (${language})`}
            lang={language}
            value={String(text ?? "")}
            onChange={(event) => change(language, event.target.value)}
            className={fieldStyle(box.isWrong)}
          />
          <IconButton
            icon={X}
            name={t("editor.takeOut", { name: language })}
            onClick={() => change(language, undefined)}
          />
        </div>
      ))}
      {free.map((language) => (
        <Button key={language} kind="quiet" className="h-6 px-2 text-xs" onClick={() => change(language, "")}>
          <Plus className="size-3" aria-hidden /> <span lang={language}>{LANGUAGE_NAMES[language]}</span>
        </Button>
      ))}
    </fieldset>
  );
}

/** Button that turns a text into one with several languages. */
export function Localize({ box, language }: { box: BoxProps; language: string }) {
  const { t } = useTranslation();
  if (box.value !== undefined && typeof box.value !== "string") return null;
  return (
    <Button
      kind="quiet"
      className="mt-0.5 h-6 px-2 text-xs"
      onClick={() => box.onChange({ [language]: box.value ?? "", [language === "en" ? "de" : "en"]: "" })}
    >
      <Plus className="size-3" /> {t("editor.localize")}
    </Button>
  );
}
