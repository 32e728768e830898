import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { LabelledField } from "@/components/LabelledField";
import { SuggestionInput } from "@/components/SuggestionInput";
import { variablesOf, variablesText } from "./settings";

const LANGUAGES = [
  { name: "en", about: "English" },
  { name: "de", about: "Deutsch" },
];

export function LanguageField({ value, change }: { value: string; change: (value: Json) => void }) {
  const { t } = useTranslation();
  return (
    <LabelledField name={t("settings.language")} about={t("settings.languageAbout")} required>
      {(its) => <SuggestionInput {...its} value={value} suggestions={LANGUAGES} onType={change} onChoose={change} />}
    </LabelledField>
  );
}

export function VariablesField({ value, change }: { value: Json; change: (value: Json) => void }) {
  const { t } = useTranslation();
  const [text, setText] = useState(() => variablesText(value));
  return (
    <LabelledField name={t("settings.variables")} about={t("settings.variablesAbout")}>
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
