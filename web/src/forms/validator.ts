/**
 * Form validator that interprets schemas; compiled validators need `eval`, which the content security policy forbids.
 */
import { type OutputUnit, Validator } from "@cfworker/json-schema";
import {
  createErrorHandler,
  type RJSFSchema,
  type RJSFValidationError,
  toErrorSchema,
  unwrapErrorHandler,
  type ValidatorType,
  validationDataMerge,
} from "@rjsf/utils";

type Form = unknown;

export const validator: ValidatorType<Form, RJSFSchema> = {
  validateFormData(formData, schema, customValidate, transformErrors, uiSchema) {
    let errors = problemsOf(schema, formData);
    if (transformErrors) errors = transformErrors(errors, uiSchema);
    const found = { errors, errorSchema: toErrorSchema<Form>(errors) };
    if (!customValidate) return found;
    const custom = customValidate(formData, createErrorHandler<Form>(formData as Form), uiSchema);
    return validationDataMerge<Form>(found, unwrapErrorHandler<Form>(custom));
  },
  isValid(schema, formData, rootSchema) {
    const definitions = { ...rootSchema.$defs, ...rootSchema.definitions };
    return problemsOf({ ...schema, $defs: definitions, definitions }, formData).length === 0;
  },
  rawValidation: <Result>(schema: RJSFSchema, formData?: Form) => ({
    errors: problemsOf(schema, formData) as unknown as Result[],
  }),
};

export function problemsOf(schema: RJSFSchema, value: unknown): RJSFValidationError[] {
  // Remove undefined fields, which are missing fields.
  const given = value === undefined ? undefined : JSON.parse(JSON.stringify(value));
  const { errors } = new Validator(schema as ConstructorParameters<typeof Validator>[0], "2020-12", false).validate(
    given,
  );
  return errors.filter(isSpecific).map((unit) => {
    const property = unit.keyword === "required" ? (/"([^"]+)"/.exec(unit.error)?.[1] ?? "") : "";
    const place = unit.instanceLocation.slice(1).split("/").filter(Boolean).map(unescaped);
    const path = [...place, ...(property ? [property] : [])];
    const isMissing = unit.keyword === "type" && valueAt(given, place) === null;
    return {
      name: isMissing ? "required" : unit.keyword,
      message: unit.error,
      params: { limit: valueAt(schema, unit.keywordLocation.slice(1).split("/").filter(Boolean).map(unescaped)) },
      property: path.map((part) => `.${part}`).join(""),
      schemaPath: unit.keywordLocation,
      stack: `${path.join(".")} ${unit.error}`.trim(),
    };
  });
}

/** Drop "a subschema failed" errors: the error inside the subschema is reported too. */
function isSpecific(unit: OutputUnit): boolean {
  return !["properties", "items", "prefixItems", "$ref", "allOf"].includes(unit.keyword);
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((found, part) => (found as Record<string, unknown> | undefined | null)?.[part], value);
}

function unescaped(part: string): string {
  return decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~");
}

export default validator;
