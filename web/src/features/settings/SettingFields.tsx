import { type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { LabelledField } from "@/components/LabelledField";
import { SuggestionInput } from "@/components/SuggestionInput";
import { variablesOf, variablesText } from "./settings";

const LANGUAGES = [
  { name: "en", about: "English" },
  { name: "de", about: "Deutsch" },
];

interface Field<T> {
  value: T;
  change: (value: Json) => void;
  error: ReactNode;
}

export function LanguageField({ value, change, error }: Field<string>) {
  const { t } = useTranslation();
  return (
    <LabelledField name={t("settings.language")} about={t("settings.languageAbout")} error={error} required>
      {(its) => <SuggestionInput {...its} value={value} suggestions={LANGUAGES} onType={change} onChoose={change} />}
    </LabelledField>
  );
}

export function VariablesField({ value, change, error }: Field<Json>) {
  const { t } = useTranslation();
  const [text, setText] = useState(() => variablesText(value));
  return (
    <LabelledField name={t("settings.variables")} about={t("settings.variablesAbout")} error={error}>
      {(its) => (
        <textarea
          {...its}
          rows={6}
          className={`${its.className} font-mono text-xs`}
          spellCheck={false}
          placeholder="API_URL=https://api.example.com"
          value={text}
          onChange={(event) => {
            setText(event.target.value);
            change(variablesOf(event.target.value));
          }}
        />
      )}
    </LabelledField>
  );
}
