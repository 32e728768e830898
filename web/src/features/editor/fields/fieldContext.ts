/** Context of the fields of one form: problems, the names that formulas can read, and field labels. */
import { createContext, useContext } from "react";
import { useTranslation } from "react-i18next";
import type { Problem } from "@/api/http";
import type { Json, JsonObject } from "@/api/views";
import type { InsertPath } from "@/values/ValueTree";
import type { FormulaScope } from "../document/formulaScope";

/** Props of every kind of input. */
export interface BoxProps {
  id: string;
  labelledBy: string;
  describedBy: string | undefined;
  isWrong: boolean;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  at: string;
  name: string;
}

export interface Form {
  problems: readonly Problem[];
  known: FormulaScope;
  /** Ids of the nodes that can be referenced. */
  nodes: readonly string[];
  /** Load the field values of the last execution, for trying formulas. */
  sample: () => Promise<JsonObject | null>;
}

const FormContext = createContext<Form | null>(null);

export const FormProvider = FormContext.Provider;

export function useForm(): Form {
  const form = useContext(FormContext);
  if (!form) throw new Error("A field belongs into a form.");
  return form;
}

/** Called with the formula that receives the focus: values beside the form can be inserted there. */
export const InsertTargetContext = createContext<((target: InsertPath) => void) | null>(null);

/** Problems at a pointer; with `isWhole` also those inside it, for values without fields of their own. */
export function useProblems(at: string, isWhole: boolean): Problem[] {
  const { problems } = useForm();
  return problems.filter((one) => one.pointer === at || (isWhole && one.pointer.startsWith(`${at}/`)));
}

/** Label of a field: its translation, otherwise its name as words. */
export function useFieldLabel(): (name: string) => string {
  const { t } = useTranslation();
  return (name) => t(`field.${name}`, { defaultValue: asWords(name) });
}

export function asWords(name: string): string {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, "$1 $2").replaceAll(/[_-]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1).toLowerCase();
}

export function pointerTo(at: string, key: string | number): string {
  return `${at}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
