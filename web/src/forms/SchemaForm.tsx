import Form from "@rjsf/core";
import type { RJSFSchema, RJSFValidationError, UiSchema } from "@rjsf/utils";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject, Text } from "@/api/views";
import { Button } from "@/components/Button";
import { textIn } from "@/i18n";
import "./form.css";
import { validator } from "./validator";

/** A form made of a JSON Schema: for inputs, answers of people, and the properties of nodes. */
export function SchemaForm(props: {
  schema: JsonObject;
  value: Json;
  onChange: (value: Json) => void;
  onSubmit?: (value: Json) => void;
  submit?: string;
  busy?: boolean;
  disabled?: boolean;
}) {
  const { t, i18n } = useTranslation();
  const schema = useMemo(() => localized(props.schema, i18n.language) as RJSFSchema, [props.schema, i18n.language]);
  const layout = useMemo(() => layoutOf(schema), [schema]);
  return (
    <Form
      className="schema-form"
      schema={schema}
      uiSchema={layout}
      validator={validator}
      formData={props.value}
      disabled={props.disabled === true || props.busy === true}
      onChange={({ formData }) => props.onChange(formData as Json)}
      onSubmit={({ formData }) => props.onSubmit?.(formData as Json)}
      transformErrors={(errors) => errors.map((one) => said(one, t))}
      showErrorList={false}
      noHtml5Validate
      omitExtraData={false}
      experimental_defaultFormStateBehavior={{ emptyObjectFields: "skipEmptyDefaults" }}
    >
      {props.submit ? (
        <div className="flex justify-end">
          <Button kind="primary" type="submit" disabled={props.busy}>
            {props.submit}
          </Button>
        </div>
      ) : (
        // No button of its own.
        <span />
      )}
    </Form>
  );
}

function said(error: RJSFValidationError, t: (key: string, otherwise: string) => string): RJSFValidationError {
  return { ...error, message: t(`form.${error.name}`, error.message ?? "") };
}

/** Long texts get room; what has no type yet is written as text. */
function layoutOf(schema: RJSFSchema): UiSchema {
  const found: UiSchema = { "ui:submitButtonOptions": { norender: true } };
  for (const [name, part] of Object.entries(schema.properties ?? {})) {
    if (typeof part !== "object") continue;
    if (part.type === "string" && !part.enum && !part.format && (part.maxLength ?? 1000) > 200)
      found[name] = { "ui:widget": "textarea", "ui:options": { rows: 3 } };
    else if (part.type === "object" && part.properties) found[name] = layoutOf(part);
  }
  return found;
}

/** `x-title` and `x-description` hold texts by language. */
function localized(schema: unknown, language: string): unknown {
  if (Array.isArray(schema)) return schema.map((one) => localized(one, language));
  if (schema === null || typeof schema !== "object") return schema;
  const found: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(schema)) found[key] = localized(value, language);
  for (const key of ["title", "description"]) {
    const text = (schema as Record<string, unknown>)[`x-${key}`] ?? found[key];
    if (text !== undefined && (typeof text === "string" || isTexts(text))) found[key] = textIn(text as Text, language);
  }
  return found;
}

function isTexts(value: unknown): boolean {
  return value !== null && typeof value === "object" && Object.values(value).every((one) => typeof one === "string");
}
