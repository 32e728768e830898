import type { FieldProps, RJSFSchema } from "@rjsf/utils";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { LabelledField } from "@/components/LabelledField";

/** Field for a value of any type: valid JSON is parsed, other input is a string. */
export function AnythingField(props: FieldProps<unknown, RJSFSchema>) {
  const { t } = useTranslation();
  const [text, setText] = useState(asText(props.formData));
  const type = (next: string) => {
    setText(next);
    props.onChange(parsedValue(next), props.fieldPathId.path);
  };
  return (
    <LabelledField
      name={props.schema.title ?? props.name}
      about={[props.schema.description, t("form.anything")].filter(Boolean).join(" ")}
      required={props.required ?? false}
    >
      {(its) => (
        <textarea
          {...its}
          rows={2}
          spellCheck={false}
          disabled={props.disabled}
          value={text}
          onChange={(event) => type(event.target.value)}
        />
      )}
    </LabelledField>
  );
}

function asText(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function parsedValue(text: string): unknown {
  if (text.trim() === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
