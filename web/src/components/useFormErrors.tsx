/** Errors of a request, at the fields of its form. */
import { type ReactNode, type RefObject, useEffect, useRef } from "react";
import { ApiError, type Problem } from "@/api/http";
import { ServerText } from "./ErrorDetail";

export interface FormErrors {
  /** The error of a field; undefined: it has none. */
  at: (field: string) => ReactNode;
  /** The error, unless all of it stands at fields. */
  rest: unknown;
  /** For the form: the first wrong field gets the focus. */
  form: RefObject<HTMLFormElement | null>;
}

/** The field of a request body: `body/url` is `url`, `path/name` is `name`. */
const fieldInBody = ({ pointer }: Problem): string => /^(?:body|path)\/([^/]+)/.exec(pointer)?.[1] ?? "";

/** Errors by field. `shown`: the fields that the form has now; an error of another one stays in `rest`. */
export function useFormErrors(
  error: unknown,
  shown: readonly string[],
  fieldOf: (problem: Problem) => string = fieldInBody,
): FormErrors {
  const form = useRef<HTMLFormElement>(null);
  const problems = error instanceof ApiError ? error.problems.filter(({ severity }) => severity !== "warning") : [];
  const placed = problems.map((one) => ({ field: fieldOf(one), ...one })).filter(({ field }) => shown.includes(field));
  useEffect(() => {
    if (error) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [error]);
  return {
    at: (field) => {
      const found = placed.filter((one) => one.field === field);
      if (found.length === 0) return undefined;
      return found.map((one) => (
        <ServerText key={one.message} text={[one.message, one.hint].filter(Boolean).join(" ")} look="" />
      ));
    },
    rest: placed.length > 0 && placed.length === problems.length ? null : (error ?? null),
    form,
  };
}
