/** Context of the fields of one form: problems, the names that formulas can read, and the labels of fields. */
import { createContext, useContext } from "react";
import { useTranslation } from "react-i18next";
import type { Problem } from "@/api/http";
import type { Json, JsonObject } from "@/api/views";
import type { Known } from "../document/known";

/** What each kind of input receives. */
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
  known: Known;
  /** Ids of the nodes that can be named. */
  nodes: readonly string[];
  /** What the fields held in the last execution, to try formulas with; asked when it is needed. */
  sample: () => Promise<JsonObject | null>;
}

const Shared = createContext<Form | null>(null);

export const FormShared = Shared.Provider;

export function useForm(): Form {
  const form = useContext(Shared);
  if (!form) throw new Error("A field belongs into a form.");
  return form;
}

/** What is wrong at a pointer; of what is inside it too, where that has no fields of its own. */
export function useWrong(at: string, isWhole: boolean): Problem[] {
  const { problems } = useForm();
  return problems.filter((one) => one.pointer === at || (isWhole && one.pointer.startsWith(`${at}/`)));
}

/** How a field is called: in the language of the page where there is a word, else by its own name, in words. */
export function useCalled(): (name: string) => string {
  const { t } = useTranslation();
  return (name) => t(`field.${name}`, { defaultValue: inWords(name) });
}

export function inWords(name: string): string {
  const words = name.replaceAll(/([a-z\d])([A-Z])/g, "$1 $2").replaceAll(/[_-]/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1).toLowerCase();
}

export function pointerTo(at: string, key: string | number): string {
  return `${at}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}
