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
const fieldInBody = ({ pointer }: Pick<Problem, "pointer">): string =>
  /^(?:body|path)\/([^/]+)/.exec(pointer)?.[1] ?? "";

/** The problems of an error; of one without a list, the error itself. */
function problemsOf(error: ApiError): Pick<Problem, "code" | "pointer" | "message" | "hint">[] {
  const { code, message, hint, problems } = error;
  if (problems.length === 0) return [{ code, pointer: "", message, hint }];
  return problems.filter(({ severity }) => severity !== "warning");
}

/** Errors by field. `shown`: the fields that the form has now; an error of another one stays in `rest`. */
export function useFormErrors(
  error: unknown,
  shown: readonly string[],
  fieldOf: (problem: Pick<Problem, "code" | "pointer">) => string = fieldInBody,
): FormErrors {
  const form = useRef<HTMLFormElement>(null);
  const problems = error instanceof ApiError ? problemsOf(error) : [];
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
