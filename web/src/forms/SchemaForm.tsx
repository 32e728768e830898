import Form from "@rjsf/core";
import { englishStringTranslator, type RJSFSchema, type RJSFValidationError, TranslatableString } from "@rjsf/utils";
import type { TFunction } from "i18next";
import { type Ref, useImperativeHandle, useMemo, useRef } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject, Text } from "@/api/views";
import { Button } from "@/components/Button";
import { textIn } from "@/i18n";
import { AnythingField } from "./AnythingField";
import { templates } from "./formTemplates";
import "./form.css";
import { layoutOf } from "./layout";
import { problemsOf, validator } from "./validator";

const FIELDS = { anything: AnythingField };
/** Translation keys of the texts that the form library shows. */
const LIBRARY_TEXTS: Partial<Record<TranslatableString, string>> = {
  [TranslatableString.YesLabel]: "form.yes",
  [TranslatableString.NoLabel]: "form.no",
  [TranslatableString.ArrayItemTitle]: "form.entry",
  [TranslatableString.OptionPrefix]: "form.option",
  [TranslatableString.TitleOptionPrefix]: "form.optionOf",
  [TranslatableString.PreviewLabel]: "form.preview",
  [TranslatableString.RemoveButton]: "form.remove",
};

/** Validation of the form from outside. */
export interface FormValidity {
  isValid: () => boolean;
  /** Validate, show problems at their fields, and focus the first of them. */
  showProblems: () => boolean;
}

/** Form generated from a JSON Schema: for inputs, answers to human tasks, and node properties. */
export function SchemaForm(props: {
  schema: JsonObject;
  value: Json;
  onChange: (value: Json) => void;
  onSubmit?: (value: Json) => void;
  submit?: string;
  /** Lets a button outside the form submit it. */
  id?: string;
  busy?: boolean;
  disabled?: boolean;
  /** For callers that use the value without submitting the form. */
  validity?: Ref<FormValidity>;
}) {
  const { t, i18n } = useTranslation();
  const schema = useMemo(() => localized(props.schema, i18n.language) as RJSFSchema, [props.schema, i18n.language]);
  const layout = useMemo(
    () => ({ ...layoutOf(schema, t("form.entry")), "ui:submitButtonOptions": { norender: true } }),
    [schema, t],
  );
  const form = useRef<Form>(null);
  useImperativeHandle(
    props.validity,
    () => ({
      isValid: () => problemsOf(schema, props.value).length === 0,
      showProblems: () => form.current?.validateForm() ?? true,
    }),
    [schema, props.value],
  );
  return (
    <Form
      ref={form}
      {...(props.id ? { id: props.id } : {})}
      className="schema-form"
      schema={schema}
      uiSchema={layout}
      validator={validator}
      formData={props.value}
      disabled={props.disabled === true || props.busy === true}
      onChange={({ formData }) => props.onChange(formData as Json)}
      fields={FIELDS}
      templates={templates}
      translateString={(text, values) =>
        text === TranslatableString.NewStringDefault
          ? ""
          : LIBRARY_TEXTS[text]
            ? t(LIBRARY_TEXTS[text], { name: values?.[0], nth: values?.[1] ?? values?.[0] })
            : englishStringTranslator(text, values)
      }
      // Problems are shown at their fields; without a handler the library also logs them.
      onError={() => undefined}
      focusOnFirstError
      onSubmit={({ formData }) => props.onSubmit?.(formData as Json)}
      transformErrors={(errors) => errors.map((one) => translatedError(one, t))}
      showErrorList={false}
      noHtml5Validate
      omitExtraData={false}
      experimental_defaultFormStateBehavior={{ emptyObjectFields: "skipEmptyDefaults" }}
    >
      {props.submit ? (
        <div className="mt-3 flex justify-end">
          <Button kind="primary" type="submit" disabled={props.busy}>
            {props.submit}
          </Button>
        </div>
      ) : (
        // Replaces the library's submit button.
        <span />
      )}
    </Form>
  );
}

function translatedError(error: RJSFValidationError, t: TFunction): RJSFValidationError {
  const { name = "", message = "", params } = error;
  return { ...error, message: t(`form.${name}`, { defaultValue: message, limit: params?.limit }) };
}

/** Replace titles and descriptions by `x-title` and `x-description`, which hold texts by language. */
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
