import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { LabelledField } from "./LabelledField";

/** Parse JSON; undefined if the text is invalid. */
export function jsonIn(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
}

/** A field for a JSON value. */
export function JsonField(props: {
  name: string;
  about?: string;
  text: string;
  onChange: (text: string) => void;
  rows?: number;
}) {
  const { t } = useTranslation();
  const isWrong = props.text.trim() !== "" && jsonIn(props.text) === undefined;
  return (
    <LabelledField name={props.name} about={props.about} error={isWrong ? t("json.wrong") : undefined}>
      {(its) => (
        <textarea
          {...its}
          className={`${its.className} font-mono text-xs`}
          rows={props.rows ?? 8}
          spellCheck={false}
          value={props.text}
          onChange={(event) => props.onChange(event.target.value)}
        />
      )}
    </LabelledField>
  );
}
