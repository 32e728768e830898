/** A text in several languages. */

import { Plus, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { LANGUAGE_NAMES, LANGUAGES } from "@/i18n";
import { objectOf } from "../shapes";
import { dressed } from "./boxes";
import type { BoxProps } from "./Field";

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
            className={dressed(box.isWrong)}
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

/** Makes a text one of several languages. */
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
